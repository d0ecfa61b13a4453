"""The policies that come with muster do what they are shipped for: coordinate larger worlds than they saw."""

import pytest

import muster
from muster.policies import SHIPPED, shipped


def test_every_shipped_policy_is_listed_and_loads():
    assert {path.stem for path in SHIPPED.glob("*.safetensors")} == set(shipped())
    for name in shipped():
        assert muster.load(name).header["env"] == f"rescue:{name.split('-')[1]}"


@pytest.mark.parametrize("name", ["rescue-2x4-quad-dm", "rescue-5x10-quad-dm"])
def test_shipped_quad_policies_beat_the_linear_programme_on_distances_at_a_size_never_seen(name):
    learned, linear = (muster.evaluate(policy, "rescue:8x15", episodes=300) for policy in (name, "lp-distance"))
    assert learned.failed == 0
    assert learned.mean < linear.mean
