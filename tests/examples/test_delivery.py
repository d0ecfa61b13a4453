from __future__ import annotations

import muster


def test_filling_crews_beats_running_to_the_nearest_parcel():
    fullest, nearest = (
        muster.evaluate(baseline, "examples.delivery:Delivery", 60) for baseline in ("fullest", "nearest")
    )
    assert fullest.failed == 0
    assert fullest.mean < nearest.mean
