"""Scoring models: observation in, scores h(agent, task) and g(task, task) out."""

from __future__ import annotations

from typing import Literal

# Nothing heavy here: the command line reads it.
ModelKind = Literal["dm", "pem", "context", "linear"]
Form = Literal["plain", "paper", "centred", "local"]
"""How a model reads positions (`TrainSettings.form`)."""
PairScale = Literal["none", "size", "fade"]
"""Factor on g by which it generalises to other sizes (muster.models.pair_scale)."""
Learned = Literal["capacities", "contributions"]
"""Limits that a model may learn beside scores."""
ContextFeature = Literal["agent_gap", "task_gap", "partner_wait"]
"""Features of a pair computed from any observation with a prior (muster.models.context_features)."""
