"""A replay as one file, opened from the disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import muster
from muster.evaluation.captions import label, verdict
from muster.evaluation.replay import record
from muster.evaluation.writers import writer
from tests.browser.conftest import look_around

ENVIRONMENTS = [
    ("rescue:4x7", ("topline", "closest")),
    ("battle:w5v6", ("c", "wcnoks")),
    ("pursuit:4x2", ("closest", "lp-distance")),
    ("fleet:24,city=small", ("greedy", "match")),
    ("examples.warehouse:Warehouse", ("worth", "nearest")),
]


@pytest.mark.parametrize(("env", "policies"), ENVIRONMENTS)
def test_every_environment_plays_from_a_file(page: Any, tmp_path: Path, env: str, policies: tuple[str, str]):
    batch_env = muster.make(env)
    replays = [record(policy, batch_env, seed=1) for policy in policies]
    path = tmp_path / "replay.html"
    writer(path, 2)(replays, batch_env, path)
    page.goto(path.as_uri())
    page.wait_for_function("() => !document.querySelector('.clock')?.textContent.startsWith('step 0')")
    assert page.locator("figcaption strong").all_inner_texts() == [label(policy, env) for policy in policies]
    assert page.title() == f"{verdict(replays, ['', '']).title} ({batch_env.name})"
    page.locator("body").press("Home")
    page.locator("body").press("ArrowRight")
    assert page.locator(".clock").inner_text().startswith("step 1 of")
    first = replays[0].assignments[1]
    shown = ", ".join(f"{k} → {'none' if task < 0 else task}" for k, task in enumerate(first[:20].tolist()))
    assert shown in (page.locator("canvas").first.get_attribute("aria-label") or "")
    look_around(page, f"replay-{env.partition(':')[0]}")
