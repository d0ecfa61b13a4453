"""The kinds of scoring models. Nothing heavy: the command line reads it."""

from __future__ import annotations

from typing import Literal

ModelKind = Literal["dm", "pem", "context"]
Form = Literal["plain", "local"]
"""plain: the model reads all features; local: none that says where on the map, and g fades with distance."""
PairScale = Literal["none", "size", "fade"]
"""By what g is multiplied, so that it keeps its meaning at other sizes (see muster.models.reach)."""
Learned = Literal["capacities", "contributions"]
"""What a model may learn beside scores."""
