"""Policies as folders, pushed and pulled."""

from __future__ import annotations

import json

import numpy as np
import pytest

import muster
from muster.errors import InputError, ModelFileError

NAME = "rescue-2x4-quad-dm"


@pytest.mark.parametrize("place", ["here", "memory"])
def test_a_policy_comes_back_from_where_it_was_pushed(place, tmp_path):
    if place == "memory":
        pytest.importorskip("fsspec")
    address = tmp_path / "folder" if place == "here" else "memory://hub/policy"
    muster.push(NAME, address)
    muster.push(NAME, address)
    with pytest.raises(InputError, match="has another policy; give another address, or force=True"):
        muster.push("rescue-small-quad-dm", address)
    pulled = muster.pull(address, tmp_path / "pulled")
    own = muster.load(NAME)
    assert all(np.array_equal(array, own.parameters[name]) for name, array in pulled.parameters.items())
    card = json.loads((tmp_path / "pulled" / "card.json").read_text())
    assert card["results"]
    assert "| learner |" in (tmp_path / "pulled" / "README.md").read_text()
    muster.push("rescue-small-quad-dm", address, force=True)
    assert muster.pull(address, tmp_path / "pulled").spec != own.spec
    assert muster.evaluate(pulled, "rescue:2x4", 8).mean == muster.evaluate(own, "rescue:2x4", 8).mean


def test_what_is_not_there_or_was_changed_is_refused(tmp_path):
    pytest.importorskip("fsspec")
    with pytest.raises(InputError, match="no folder of a policy at memory://nowhere"):
        muster.pull("memory://nowhere", tmp_path / "a")
    with pytest.raises(InputError, match="is no address that fsspec can open"):
        muster.pull("nowhere://x", tmp_path / "b")
    muster.push(muster.load(NAME), tmp_path / "c")
    file = tmp_path / "c" / "best.safetensors"
    file.write_bytes(file.read_bytes()[:-4] + b"\0\0\0\1")
    with pytest.raises(ModelFileError, match="was changed after it was written"):
        muster.pull(tmp_path / "c", tmp_path / "d")
