"""Steps a second of the envs on one core: with random assignments, with a heuristic's, with a learned policy's.

Seconds are those of the processor, so that whatever else the machine does takes nothing from anyone.
"""

from __future__ import annotations

import json as json_format
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import muster
from muster.envs.registry import make
from muster.envs.vector import BatchEnv
from muster.errors import MusterError
from muster.policy.names import resolve
from muster.rng import episode_seeds

BATCH = 256
SECONDS = 2.0
ENVS = ("rescue:2x4", "rescue:5x10", "rescue:8x15", "rescue:20x40,grid=32", "fleet:24,city=small")
LEARNED = (("fleet:24,city=small", "fleet-24-lp-dm"),)
"""Environment and the policy that decides in it: environment, network and inference together."""
BATTLES = (
    ("battle:m10v10", "c", 256),
    ("battle:m10v11", "c", 256),
    ("battle:w15v17", "wcnoks", 256),
    ("battle:w80v82", "wcnoks", 64),
)
"""Environment, heuristic and battles in a batch; as many as the peer beside it has."""
PEERS_PYTHON = Path(".venv-peers/bin/python")
PEERS_HELP = "to measure peers, make an environment with them: make peers (or set MUSTER_PEERS to its python)"

Row = dict[str, Any]


def run(json: bool = False) -> None:
    """Steps a second of the environments alone, then of the peers, in one go.

    Args:
        json: print one JSON object.

    """
    with one_core():
        rows = [row for name in ENVS if (row := measure(name))]
        rows += [measure_battles(*battle) for battle in BATTLES]
        rows += [measure_learned(*pair) for pair in LEARNED]
        peers, note = measure_peers()
    ours = {row["env"]: row["steps_per_second"] for row in rows}
    for peer in peers:
        if "steps_per_second" in peer:
            peer["muster_times_faster"] = ours[peer["beside"]] / peer["steps_per_second"]
    found = {"machine": machine(), "batch": BATCH, "environments": rows, "peers": peers, "note": note}
    print(json_format.dumps(found) if json else "\n".join(table(found)))


def measure(env_name: str) -> Row | None:
    """Steps a second, alone and with the observation; None for an environment that is not installed."""
    try:
        env = make(env_name, BATCH)
    except MusterError:
        return None
    # Rescue is observed as coordinates, which random assignments do not even need; a fleet as its policies read it.
    env.show(pair_features=not env_name.startswith("rescue"))
    return {
        "env": env_name,
        "steps_per_second": rate(env, observing=False),
        "with_observation_per_second": rate(env, observing=True),
    }


def rate(env: BatchEnv, observing: bool) -> float:
    """Env steps per second of CPU; assignments and seeds are drawn beforehand, and ended episodes begin again."""
    drawn = np.random.default_rng(0).integers(env.n_tasks, size=(64, env.n_envs, env.n_agents))
    seeds = episode_seeds(0, np.arange(16 * env.n_envs))
    # The first rounds compile.
    rounds, began = -3, 0.0
    while rounds < 3 or time.process_time() - began < SECONDS:
        if rounds == 0:
            began = time.process_time()
        if observing:
            env.observe()
        result = env.step(drawn[rounds % 64])
        ended = np.flatnonzero(result.terminated | result.truncated)
        if ended.size:
            first = rounds % 15 * env.n_envs
            env.reset(ended, seeds[first : first + ended.size])
        rounds += 1
    return rounds * env.n_envs / (time.process_time() - began)


def measure_battles(env_name: str, policy_name: str, batch: int) -> Row:
    """Decisions a second, the heuristic's own included, once every battle has ended and begun anew at least once.

    By then the batch is a fair mixture: a crowd at close quarters costs more than the march before.
    """
    env = make(env_name, batch)
    policy = env.baselines()[policy_name](env)
    slots = np.arange(batch)
    seeds = episode_seeds(0, slots)
    env.reset(slots, seeds)
    policy.reset(slots, seeds)
    began, rounds, episode = 0.0, 0, batch
    fresh = np.ones(batch, dtype=bool)
    while began == 0.0 or time.process_time() - began < SECONDS:
        # The heuristics look inside the environment and need no observation.
        result = env.step(policy.act(None))  # type: ignore[arg-type]
        rounds += 1
        ended = np.flatnonzero(result.terminated | result.truncated)
        if ended.size:
            seeds = episode_seeds(0, episode + np.arange(ended.size))
            episode += ended.size
            env.reset(ended, seeds)
            policy.reset(ended, seeds)
            fresh[ended] = False
        if began == 0.0 and not fresh.any():
            began, rounds = time.process_time(), 0
    rate = rounds * batch / (time.process_time() - began)
    return {"env": env_name, "policy": policy_name, "batch": batch, "steps_per_second": rate}


def measure_learned(env_name: str, policy_name: str) -> Row:
    """Decisions a second with everything in it: observing, scoring, inference, the step."""
    env = make(env_name, BATCH)
    policy = resolve(policy_name, env)
    slots = np.arange(BATCH)
    # The first round compiles.
    began, rounds, episode = 0.0, -1, 0
    while rounds < 3 or time.process_time() - began < SECONDS:
        if rounds == 0:
            began = time.process_time()
        result = env.step(policy.act(env.observe()))
        rounds += 1
        if (result.terminated | result.truncated).all():
            episode += 1
            env.reset(slots, episode_seeds(episode, slots))
    rate = rounds * BATCH / (time.process_time() - began)
    return {"env": env_name, "policy": policy_name, "batch": BATCH, "steps_per_second": rate}


def measure_peers(word: str = "") -> tuple[list[Row], str]:
    """What the peers' own interpreter measures, of those whose name has the word; and a note where there is none."""
    python = os.environ.get("MUSTER_PEERS", str(PEERS_PYTHON))
    if not Path(python).exists():
        return [], f"peers skipped: no {python}; {PEERS_HELP}"
    script = str(Path(__file__).with_name("env_peers.py"))
    done = subprocess.run([python, script, word], capture_output=True, text=True, check=False)
    if done.returncode:
        return [], f"peers skipped: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}"
    return json_format.loads(done.stdout), ""


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this process and its children on one core, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def machine() -> str:
    """Processor, system and versions, for beside the figures."""
    processor = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        processor = names[0] if names else processor
    python = ".".join(map(str, sys.version_info[:3]))
    return f"{processor}, {os.cpu_count()} cores, {platform.system()}, Python {python}, muster {muster.__version__}"


def table(found: dict[str, Any]) -> list[str]:
    """The figures as Markdown tables."""
    head = ["| environment | steps/s | {} | muster is faster by |", "|---|---:|---:|---:|"]
    battles = [row for row in found["environments"] if "policy" in row]
    grids = [row for row in found["environments"] if "policy" not in row]
    lines = [
        f"{found['machine']}. One core; steps per second of CPU.",
        "",
        f"{found['batch']} in a batch, random assignments; peers beside rescue:5x10:",
        "",
        head[0].format("steps/s with observation"),
        head[1],
    ]
    for row in grids:
        rates = f"{row['steps_per_second']:,.0f} | {row['with_observation_per_second']:,.0f}"
        lines.append(f"| {row['env']} | {rates} | |")
    lines += [_peer_line(row) for row in found["peers"] if not row.get("beside", "").startswith("battle")]
    lines += [
        "",
        "With the decisions of a heuristic, or of a learned policy (network and inference), included:",
        "",
        head[0].format("policy / beside"),
        head[1],
    ]
    for row in battles:
        name = f"{row['env']}, {row['batch']} in a batch"
        lines.append(f"| {name} | {row['steps_per_second']:,.0f} | {row['policy']} | |")
    lines += [_peer_line(row) for row in found["peers"] if row.get("beside", "").startswith("battle")]
    return [*lines, "", found["note"]] if found["note"] else lines


def _peer_line(row: Row) -> str:
    if "skipped" in row:
        return f"| {row['env']} | skipped: {row['skipped']} | | |"
    beside = f" {row['beside']}" if row["beside"].startswith("battle") else ""
    return f"| {row['env']} | {row['steps_per_second']:,.0f} |{beside} | {row['muster_times_faster']:,.1f} x |"
