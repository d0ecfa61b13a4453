from __future__ import annotations

import pytest

from muster.learning.run import TensorBoard

reading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


def test_rows_are_what_tensorboard_reads(tmp_path):
    board = TensorBoard(tmp_path)
    board.add({"reward": 0.5, "outcome/rescue:2x4": 12}, 7)
    board.add({"reward": 0.75, "remark": "a sentence"}, 14)
    board.close()
    read = reading.EventAccumulator(str(tmp_path))
    read.Reload()
    assert [(event.step, event.value) for event in read.Scalars("reward")] == [(7, 0.5), (14, 0.75)]
    assert [event.value for event in read.Scalars("outcome/rescue:2x4")] == [12.0]
    (remark,) = read.Tensors("remark/text_summary")
    assert (remark.step, list(remark.tensor_proto.string_val)) == (14, [b"a sentence"])
