"""What the service reads of requests."""

from numpy import float32, float64
from numpy.typing import NDArray

def lift_numbers(text: bytes, values: NDArray[float64]) -> tuple[bytes, list[tuple[int, int, int, bool]]]: ...
def are_within(values: NDArray[float32], low: NDArray[float32], high: NDArray[float32]) -> bool: ...
