"""Arrays of several parts in one checkpoint: each part's names begin with its own, and a slash."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray


def under(name: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """A part's arrays as they are named beside those of others."""
    return {f"{name}/{key}": array for key, array in arrays.items()}


def part(arrays: Mapping[str, NDArray[Any]], name: str) -> dict[str, NDArray[Any]]:
    """The arrays of one part, by the names that they have there."""
    return {key.removeprefix(f"{name}/"): array for key, array in arrays.items() if key.startswith(f"{name}/")}
