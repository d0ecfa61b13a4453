"""Scoring models: observation in, scores h(agent, task) and g(task, task) out."""

from __future__ import annotations

from typing import Literal

# Nothing heavy here: the command line reads it.
ModelKind = Literal["dm", "pem", "context", "linear"]
Form = Literal["plain", "paper", "centred", "local"]
"""What a model reads of positions (muster.learning.settings)."""
PairScale = Literal["none", "size", "fade"]
"""By what g is multiplied, so that it keeps its meaning at other sizes (muster.models.pair_scale)."""
Learned = Literal["capacities", "contributions"]
"""What a model may learn beside scores."""
ContextFeature = Literal["agent_gap", "task_gap", "partner_wait"]
"""Features of a pair that any observation has (muster.models.context_features)."""
