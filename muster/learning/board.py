"""Rows of a run as TensorBoard reads them, without torch: its own writer would be half of a short run's time."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any


class Board:
    """Writes numbers and sentences into a folder; raises ImportError where TensorBoard is not installed."""

    def __init__(self, folder: Path) -> None:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._writer = EventFileWriter(str(folder))

    def add(self, row: dict[str, Any], step: int) -> None:
        """Add the figures of one step."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [(_sentence if isinstance(value, str) else _number)(name, value) for name, value in row.items()]
        self._writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))

    def close(self) -> None:
        """Write what is still to be written."""
        self._writer.close()


def _number(name: str, value: float) -> Any:
    from tensorboard.compat.proto.summary_pb2 import Summary

    return Summary.Value(tag=name, simple_value=float(value))


def _sentence(name: str, value: str) -> Any:
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

    one = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    text = TensorProto(dtype="DT_STRING", string_val=[value.encode()], tensor_shape=one)
    kind = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
    return Summary.Value(tag=f"{name}/text_summary", metadata=kind, tensor=text)
