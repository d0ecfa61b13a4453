"""The runs of the paper's Table 1, for train.py: what each is told, and for how long."""

from __future__ import annotations

# The actor-critic of the tables learns from choices, as it comes. "played" is the paper's own update.
CHOICES = ["--a2c.likelihood", "choices", "--evaluate-every", "1000000000"]
RESCUE_CHOICES = [*CHOICES, "--log-every", "50000"]
# On 2x4 a model that reads no positions on the map carries further: after 0.7 CPU minutes (seed 90) it took 11.75, 9.64
# and 8.09 steps on 2,000 episodes of no table (evaluation seed 777), one that reads them 11.75, 9.81 and 8.36. Learned
# on 5x10 it was no better. With twice the usual noise it took 11.81, 9.59 and 8.10 after 1.5 minutes (10,000 episodes).
# On 5x10 three seeds with twice the noise took 9.52, 9.49 and 9.42 (4,000 such episodes), 9.42, 9.40 and 9.47 without.
LOCAL = ["--form", "local", "--pair-scale", "size", "--a2c.noise.sigma", "1"]

# The paper's update: its settings did best on training reward in paper/search; the rate falls to 0 so that runs end
# on a policy that has settled. The positional model's CNN allows fewer and smaller updates.
RESCUE_PLAYED = [
    "--a2c.likelihood",
    "played",
    "--a2c.noise.sigma",
    "0.3",
    "--a2c.schedule",
    "cosine",
    "--log-every",
    "200000",
]
# With 150 scores a state the gradient is noisier than with 24: at 0.001 one of two seeds on 5x10 never finished an
# episode again, and the other stood still after 400,000 steps.
LARGER = ["--a2c.policy-rate", "0.0003"]
PEM_PLAYED = ["--a2c.envs", "32", "--a2c.low-precision", "--log-every", "20000", "--evaluate-every", "200000"]
PEM_PLAYED += ["--a2c.schedule", "cosine", "--a2c.noise.sigma", "0.3", "--a2c.likelihood", "played"]
# From choices a positional model learns in a few ten thousand states: small updates, from scratch.
PEM = [*CHOICES, "--a2c.envs", "32", "--log-every", "5000"]

# Positional models that imitate the direct QUAD policy of their size, in the states that they visit themselves. They
# start from the LP policy of their size, whose h they correct: the CNN's inputs start at zero. A CPU without bfloat16
# learns from some 500 states a second, so updates are small and many.
DISTILLED = ["--imitate.envs", "64", "--imitate.rate", "0.002", "--log-every", "5000", "--evaluate-every", "1000000000"]
DISTILLED_LOSS = {"amax": "cross-entropy", "lp": "fenchel-young", "quad": "fenchel-young"}
# The optimum leaves open who goes where when others decide how long it takes: most of what students do otherwise costs
# nothing. QUAD learns where it does: after 0.5 CPU minutes (seed 90, 10,000 episodes of evaluation seed 777) it took
# 9.321 steps so; a run of before, which learned from all states for 1.9 minutes by the planner of routes, took 9.355.
# LP took 10.010 so, and 9.976 from all states (0.3 minutes) where the student alone is followed; 9.875 (0.4 minutes) if
# it reads positions from the middle of all that are left, which tells it who is far from the others.
IMITATED = ["--teacher", "topline", "--log-every", "20000", "--evaluate-every", "1000000000"]
LESSONS = {
    "quad": ["--imitate.regret"],
    "lp": ["--centred", "--imitate.teacher-share", "0", "--imitate.noisy-share", "0"],
}
RESCUE_A2C = {"dm": RESCUE_CHOICES, "dm-played": RESCUE_PLAYED, "pem": PEM, "pem-played": PEM_PLAYED}

# CPU minutes by size, procedure, model (with words for a variant) and learner; seeds by model and learner.
RESCUE_MINUTES = {
    ("2x4", "quad", "dm", "a2c"): 1.5,
    ("2x4", "lp", "dm", "a2c"): 0.5,
    ("2x4", "amax", "dm", "a2c"): 0.3,
    ("5x10", "quad", "dm", "a2c"): 3.0,
    ("5x10", "lp", "dm", "a2c"): 0.5,
    ("5x10", "amax", "dm", "a2c"): 0.5,
    ("2x4", "quad", "dm-played", "a2c"): 4.0,
    ("2x4", "lp", "dm-played", "a2c"): 2.0,
    ("2x4", "amax", "dm-played", "a2c"): 0.5,
    ("5x10", "quad", "dm-played", "a2c"): 2.5,
    ("5x10", "lp", "dm-played", "a2c"): 1.0,
    ("5x10", "amax", "dm-played", "a2c"): 0.5,
    ("2x4", "quad", "dm", "es"): 2.0,
    ("2x4", "lp", "dm", "es"): 1.0,
    ("2x4", "amax", "dm", "es"): 1.0,
    ("5x10", "quad", "dm", "es"): 5.0,
    ("5x10", "lp", "dm", "es"): 1.5,
    ("5x10", "amax", "dm", "es"): 1.5,
    ("2x4", "quad", "pem", "a2c"): 3.0,
    ("2x4", "quad", "pem-played", "a2c"): 5.0,
    ("2x4", "lp", "pem", "a2c"): 3.0,
    ("2x4", "lp", "pem-played", "a2c"): 5.0,
    ("2x4", "amax", "pem", "a2c"): 3.0,
    ("2x4", "amax", "pem-played", "a2c"): 3.0,
    ("5x10", "quad", "pem", "a2c"): 3.0,
    ("5x10", "quad", "pem-played", "a2c"): 3.0,
    ("5x10", "lp", "pem", "a2c"): 3.0,
    ("5x10", "lp", "pem-played", "a2c"): 3.0,
    ("5x10", "amax", "pem", "a2c"): 3.0,
    ("5x10", "amax", "pem-played", "a2c"): 3.0,
    ("5x10", "quad", "dm", "imitate"): 1.0,
    ("5x10", "lp", "dm", "imitate"): 0.4,
    ("2x4", "amax", "pem-distilled", "imitate"): 2.0,
    ("5x10", "amax", "pem-distilled", "imitate"): 2.0,
    ("2x4", "quad", "pem-distilled", "imitate"): 2.0,
    ("5x10", "quad", "pem-distilled", "imitate"): 2.0,
    ("2x4", "lp", "pem-distilled", "imitate"): 2.0,
    ("5x10", "lp", "pem-distilled", "imitate"): 2.0,
}
# The paper's features, coordinates without relative positions, with sigma 1.
RAW = ["--no-pair-features", "--a2c.likelihood", "played", "--a2c.noise.sigma", "1", "--log-every", "200000"]
RAW_MINUTES = {"quad": 2.0}
RESCUE_SEEDS = {
    ("dm", "a2c"): 3,
    ("dm-played", "a2c"): 3,
    ("dm", "es"): 1,
    ("pem", "a2c"): 3,
    ("pem-played", "a2c"): 1,
    ("dm", "imitate"): 3,
    ("pem-distilled", "imitate"): 3,
}


def rescue_runs() -> dict[str, list[str]]:
    """Name and arguments of every run of Table 1, but for structured learning."""
    found = {}
    for (size, inference, model, learner), minutes in RESCUE_MINUTES.items():
        for seed in range(RESCUE_SEEDS[model, learner]):
            extra = RESCUE_A2C[model] if learner == "a2c" else []
            if size == "5x10" and model.endswith("-played"):
                extra = extra + LARGER
            if (size, inference, model, learner) == ("2x4", "quad", "dm", "a2c"):
                extra = extra + LOCAL
            if learner == "imitate":
                extra = imitation(size, inference, model)
            found[f"rescue-{size}-{inference}-{model}-{learner}-s{seed}"] = [
                f"rescue:{size}",
                *("--inference", inference, "--model", model.partition("-")[0], "--learner", learner),
                *("--minutes", str(minutes), "--seed", str(seed)),
                *extra,
            ]
    for inference, minutes in RAW_MINUTES.items():
        found[f"rescue-2x4-{inference}-dm-raw-a2c-s0"] = [
            "rescue:2x4",
            *("--inference", inference, "--minutes", str(minutes), "--seed", "0"),
            *RAW,
        ]
    return found


def imitation(size: str, inference: str, model: str) -> list[str]:
    """Teacher and settings: the optimum for direct models, the direct QUAD policy for positional ones."""
    if model == "dm":
        return [*IMITATED, *LESSONS[inference]]
    start = ["--teacher", f"rescue-{size}-quad-dm", "--from", f"rescue-{size}-lp-dm"]
    return [*start, "--imitate.loss", DISTILLED_LOSS[inference], *DISTILLED]
