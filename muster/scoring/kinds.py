"""The kinds of scoring models. Nothing heavy: the command line reads it."""

from __future__ import annotations

from typing import Literal

ModelKind = Literal["dm", "pem"]
