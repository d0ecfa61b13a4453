"""Learn to assign agents to tasks on small problems, then coordinate far larger ones without retraining."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

__version__ = "0.2.0"

# Public name -> module that defines it. Loaded on first use, so that `import muster` stays light.
_PUBLIC = {
    # from scores to an assignment
    "assign": "muster.assign",
    "Answer": "muster.assign",
    "check_plan": "muster.assign",
    "Verdict": "muster.assign",
    "Solver": "muster.assign",
    "Problem": "muster.data",
    "Solution": "muster.data",
    "InferenceSettings": "muster.assign.settings",
    # environments, custom ones included
    "make": "muster.envs.registry",
    "Env": "muster.envs.env",
    "Observation": "muster.envs.env",
    "Scene": "muster.envs.scene",
    "BatchEnv": "muster.envs.vector",
    "Step": "muster.envs.vector",
    "BatchObservation": "muster.data",
    "Renderer": "muster.envs.renderer",
    "check_env": "muster.policy.checks",
    # policies
    "load": "muster.policy.names",
    "Policy": "muster.envs.vector",
    "LearnedPolicy": "muster.policy.learned",
    # evaluation
    "evaluate": "muster.evaluation.evaluate",
    "Evaluation": "muster.evaluation.evaluate",
    "compare": "muster.evaluation.compare",
    "Comparison": "muster.evaluation.compare",
    "push": "muster.evaluation.hub",
    "pull": "muster.evaluation.hub",
    # learning
    "train": "muster.learning.train",
    "Learner": "muster.learning.learner",
    "Report": "muster.learning.loop",
    "check_model": "muster.learning.checks",
    "check_inference": "muster.learning.checks",
    "check_learner": "muster.learning.checks",
    "TrainSettings": "muster.learning.settings",
    "PPOSettings": "muster.learning.settings",
    "A2CSettings": "muster.learning.settings",
    "ESSettings": "muster.learning.settings",
    "ImitationSettings": "muster.learning.settings",
    "NoiseSettings": "muster.policy.settings",
    "MusterError": "muster.errors",
    "InputError": "muster.errors",
    "EnvError": "muster.errors",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'muster' has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


# gymnasium expects a package to register its environments on import; without gymnasium that can wait.
if "gymnasium" in sys.modules:
    import_module("muster.envs")
