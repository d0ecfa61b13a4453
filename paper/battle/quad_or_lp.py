"""What QUAD's lead over LP with wraiths depends on: the same trained policies, evaluated in several ways.

    python -m paper.battle.quad_or_lp [--battles 400] [--seed 9]

Every policy battle-w15v17-{lp,quad}-dm-* is evaluated on w15v17 and w30v34 as it was trained; with exploration noise;
with the paper's effort and the authors' own rounding; and, if it is a QUAD policy, by LP on its h alone. Writes
paper/battle/quad_or_lp.json; `--markdown` prints the means over seeds from there.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from muster.evaluation.evaluate import evaluate
from muster.policy.learned import LearnedPolicy
from paper.run_names import policy_files

HERE = Path(__file__).resolve().parent
RECORD = HERE / "quad_or_lp.json"
SCENARIOS = ("w15v17", "w30v34")


def ways(path: Path, inference: str) -> dict[str, LearnedPolicy]:
    """The policy in each way of evaluating it."""
    policy = LearnedPolicy.load(path)
    found = {
        "as trained": policy,
        "with noise": policy.with_noise(),
        "original rounding": policy.with_inference(effort="paper", rounding="original"),
    }
    if inference == "quad":
        found["LP on its h"] = policy.without_task_scores()
    return found


def evaluate_all(battles: int, seed: int) -> list[dict[str, Any]]:
    """Win rate of every policy in every way."""
    cells = []
    for path, name in policy_files(HERE / "policies", "battle", "battle-w15v17-*").items():
        if name.inference == "amax" or name.variant:
            continue
        for way in ways(path, name.inference):
            for scenario in SCENARIOS:
                policy = ways(path, name.inference)[way]
                found = evaluate(policy, f"battle:{scenario}", battles, seed)
                cells.append(
                    {
                        "policy": path.stem,
                        "inference": name.inference,
                        "learner": name.learner,
                        "way": way,
                        "scenario": scenario,
                        "win_rate": found.mean,
                    }
                )
                print(json.dumps(cells[-1]), flush=True)
    return cells


def markdown(document: dict[str, Any]) -> str:
    """Mean over seeds, least and greatest in brackets."""
    grouped: dict[tuple[str, str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for cell in document["cells"]:
        grouped[cell["learner"], cell["way"], cell["inference"]][cell["scenario"]].append(cell["win_rate"])
    lines = [f"| learner | evaluated | policy | seeds | {' | '.join(SCENARIOS)} |", "|---|---|---|---|" + "---|" * 2]
    for (learner, way, inference), rates in sorted(grouped.items()):
        cells = [f"{sum(r) / len(r):.3f} ({min(r):.3f} to {max(r):.3f})" for r in (rates[s] for s in SCENARIOS)]
        seeds = len(rates[SCENARIOS[0]])
        lines.append(f"| {learner} | {way} | {inference.upper()} | {seeds} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Evaluate, or print the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--battles", type=int, default=400)
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--markdown", action="store_true")
    asked = parser.parse_args()
    if not asked.markdown:
        cells = evaluate_all(asked.battles, asked.seed)
        document = {"battles": asked.battles, "seed": asked.seed, "cells": cells}
        RECORD.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(markdown(json.loads(RECORD.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
