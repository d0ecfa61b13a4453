"""What the noise of ES costs at the start of a run, by part of the model: why QUAD needs a smaller one than LP.

    python -m paper.fleet.noise

Profit on the small city of our own of models that begin as the prior, or at random, with noise on all parameters, on
those of h alone and on those of g alone; the mean over 16 candidates and 6 hours.
"""

from __future__ import annotations

import numpy as np

from muster.assign.solver import Solver
from muster.envs.registry import make
from muster.models.direct import DirectModel, init_parameters
from muster.models.spec import ModelSpec
from muster.policy.decision import decide
from muster.rng import episode_seeds

CANDIDATES, HOURS = 16, 6
SIGMAS = (0.02, 0.04, 0.07, 0.15)
PARTS = {"": "h and g", "h.": "h alone", "g.": "g alone"}


def main() -> None:
    """Print a table."""
    env = make("fleet:24,city=small,threads=one", CANDIDATES * HOURS)
    print("| | without noise |", *(f"sigma {sigma} |" for sigma in SIGMAS))
    print("|---|---|" + "---|" * len(SIGMAS))
    for method in ("lp", "quad"):
        for prior in (True, False):
            spec = ModelSpec.of(env.observe(), "dm", method == "quad", prior=prior)
            for part, words in PARTS.items():
                if method == "quad" or not part:
                    row = [profit_of(env, spec, method, part, sigma) for sigma in (0.0, *SIGMAS)]
                    start = "from the prior" if prior else "from nothing"
                    noisy = words if method == "quad" else "h"
                    print(
                        f"| {method}, {start}, noise on {noisy} |", *(f"{profit:.1f} |" for profit in row), flush=True
                    )


def profit_of(env, spec, method: str, part: str, sigma: float) -> float:
    """Mean profit with noise on the parameters whose names begin with `part`."""
    rng = np.random.default_rng(1)
    parameters = {
        name: (
            array + (sigma if name.startswith(part) else 0.0) * rng.standard_normal((CANDIDATES, *array.shape))
        ).astype(np.float32)
        for name, array in init_parameters(spec, np.random.default_rng(0)).items()
    }
    model, solver = DirectModel(parameters, spec.task_scores), Solver(method=method, certify=False, threads=1)
    env.reset(np.arange(env.n_envs), np.tile(episode_seeds(1, np.arange(HOURS)), CANDIDATES))
    for _ in range(env.max_steps):
        env.step(decide(env.observe(), spec, model, solver).assignment)
    return float(env.outcome().mean())


if __name__ == "__main__":
    main()
