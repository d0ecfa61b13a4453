"""Kernels of the service: numbers in the body of a request."""

from numpy import float32, float64
from numpy.typing import NDArray

def lift_numbers(text: bytes, values: NDArray[float64]) -> tuple[bytes, list[tuple[int, int, int, bool]]]:
    """Write arrays of numbers that are values of JSON's keys to `values`.

    Returns the text with NaN in their place (empty if it has a NaN of its own), and for each array (first value, rows
    or -1, columns, whether all are integers).
    """

def are_within(values: NDArray[float32], low: NDArray[float32], high: NDArray[float32]) -> bool:
    """Whether every row of values is between the rows low and high."""
