"""Damaged policy, checkpoint, replay, settings and record files: refused, or as they were; never a crash."""

from __future__ import annotations

import io
import json
import pickle
import resource
import struct
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from muster.errors import MusterError
from muster.evaluation.replay import Replay, record
from muster.learning.run import Run, stored_settings
from muster.learning.settings import ESSettings, TrainSettings
from muster.learning.train import run_training
from muster.policy.files import fingerprint
from muster.policy.learned import LearnedPolicy
from paper.tables.engine import RECORDS
from paper.tables.pursuit import Pursuit

SECONDS, MEGABYTES = 1.0, 200
TEXT = ("replay", "config", "record")
"""Kinds that people may write: another number in one of them is another text, and no damage."""


@dataclass
class Report:
    """What came of damaged files of one kind."""

    counts: Counter[str] = field(default_factory=Counter)
    """refused; same: nothing that counts was hit; other: a text that says something else."""
    bad: list[str] = field(default_factory=list)
    slowest: float = 0.0


def make_samples(folder: Path) -> dict[str, Path]:
    """One sound file of each kind."""
    run = folder / "run"
    settings = TrainSettings("rescue:1x2", learner="es", steps=200, log_every=50, es=ESSettings(pairs=1, episodes=2))
    run_training(settings, run)
    replay = folder / "replay.json"
    replay.write_text(json.dumps(record("closest", "rescue:2x3,grid=6").as_dict()))
    table = folder / "record.json"
    table.write_bytes((RECORDS / "pursuit.json").read_bytes())
    return {
        "policy": run / "best.safetensors",
        "checkpoint": run / "checkpoint.safetensors",
        "config": run / "config.toml",
        "replay": replay,
        "record": table,
    }


def read(kind: str, path: Path) -> Any:
    """All that a file of some kind says, in a form that can be compared."""
    if kind == "policy":
        policy = LearnedPolicy.load(path)
        header = {name: value for name, value in policy.header.items() if name not in ("seal", "hash")}
        return fingerprint(policy.parameters), str(policy.spec), str(policy.inference), str(policy.noise), str(header)
    if kind == "checkpoint":
        run = Run(path.parent)
        found = run.load_checkpoint()
        assert found is not None
        return fingerprint(found[0]), json.dumps(found[1]), json.dumps(run.rows)
    if kind == "config":
        return stored_settings(path.parent)
    if kind == "replay":
        return str(Replay.load(path).as_dict())
    return Pursuit().load(path)


def flip_bits(data: bytes, rng: np.random.Generator) -> bytes:
    """Some bits turned, at random places."""
    changed = bytearray(data)
    for place in rng.integers(0, len(data), rng.integers(1, 5)):
        changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def truncate(data: bytes, rng: np.random.Generator) -> bytes:
    """Cut off somewhere."""
    return data[: int(rng.integers(0, len(data)))]


def wrong_size(data: bytes, rng: np.random.Generator) -> bytes:
    """A piece doubled, left out, or foreign bytes put in."""
    at, length = int(rng.integers(0, len(data))), int(rng.integers(1, 200))
    piece = [data[at : at + length] * 2, b"", rng.bytes(length)][int(rng.integers(3))]
    return data[:at] + piece + data[at + length :]


def garbage(data: bytes, rng: np.random.Generator) -> bytes:
    """Nothing but noise, of some length."""
    return rng.bytes(int(rng.integers(0, 2 * len(data))))


def huge_header(data: bytes, rng: np.random.Generator) -> bytes:
    """A safetensors file that says its header is far longer than it is."""
    return struct.pack("<Q", int(rng.choice([2**62, 2**40, 10**8, len(data)]))) + data[8:]


def zipped(data: bytes, rng: np.random.Generator) -> bytes:
    """A zip file under a wrong name."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("best.safetensors", data[: int(rng.integers(1, len(data)))])
    return out.getvalue()


def pickled(data: bytes, rng: np.random.Generator) -> bytes:
    """A pickle under a wrong name."""
    return pickle.dumps({"weights": data[: int(rng.integers(1, 99))]})


def nested(data: bytes, rng: np.random.Generator) -> bytes:
    """Brackets in brackets, deeper than any reader goes; as JSON, and as the metadata of a safetensors file."""
    depth = int(rng.integers(2000, 100_000))
    if not data.lstrip().startswith(b"{") and rng.random() < 0.5:
        return b"x = " + b"[" * depth
    header = json.dumps({"__metadata__": {"muster": "[" * depth, "hash": ""}}).encode()
    return struct.pack("<Q", len(header)) + header if rng.random() < 0.5 else b"[" * depth


WAYS: tuple[Callable[[bytes, np.random.Generator], bytes], ...] = (
    flip_bits,
    flip_bits,
    truncate,
    wrong_size,
    garbage,
    huge_header,
    zipped,
    pickled,
    nested,
)


def campaign(folder: Path, count: int, seed: int = 0) -> dict[str, Report]:
    """Damage `count` files, all kinds in turn, and read each."""
    samples = make_samples(folder)
    sound = {kind: read(kind, path) for kind, path in samples.items()}
    whole = {kind: path.read_bytes() for kind, path in samples.items()}
    found = {kind: Report() for kind in samples}
    rng = np.random.default_rng(seed)
    for number in range(count):
        kind = list(samples)[number % len(samples)]
        way = WAYS[int(rng.integers(len(WAYS)))]
        try_one(found[kind], kind, samples[kind], way(whole[kind], rng), sound[kind], f"{way.__name__} {number}")
        samples[kind].write_bytes(whole[kind])
    return found


def try_one(report: Report, kind: str, path: Path, data: bytes, sound: Any, label: str) -> None:
    """Read one damaged file and note what came of it."""
    path.write_bytes(data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    try:
        same = read(kind, path) == sound
        outcome = "same" if same else "other"
        if not same and kind not in TEXT:
            report.bad.append(f"{label}: a {kind} that was changed was taken")
    except MusterError as refusal:
        outcome = "refused"
        if "\n" in str(refusal) or len(str(refusal)) > 2000:
            report.bad.append(f"{label}: {kind} refused in {len(str(refusal))} letters: {str(refusal)[:80]!r}")
    except Exception as error:
        outcome = "crashed"
        report.bad.append(f"{label}: {kind} {type(error).__name__} {str(error)[:80]}")
    took = time.process_time() - began
    grew = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    report.counts[outcome] += 1
    report.slowest = max(report.slowest, took)
    if took > SECONDS or grew > MEGABYTES:
        report.bad.append(f"{label}: {kind} took {took:.1f} s and {grew:.0f} MB")


def crafted(folder: Path) -> list[tuple[str, str, bytes]]:
    """(kind, name, file) of what chance does not make: many empty tensors, and weights that are no numbers."""
    from safetensors import safe_open
    from safetensors.numpy import save

    made = []
    for kind, name in (("policy", "best"), ("checkpoint", "checkpoint")):
        path = folder / "run" / f"{name}.safetensors"
        with safe_open(str(path), framework="numpy") as file:
            metadata = file.metadata()
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        empty = {f"t{k}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for k in range(300_000)}
        header = json.dumps({"__metadata__": metadata, **empty}).encode()
        made.append((kind, "300,000 empty tensors", struct.pack("<Q", len(header)) + header))
        poisoned = {key: np.full_like(a, np.nan) if a.dtype.kind == "f" else a for key, a in tensors.items()}
        made.append((kind, "weights that are NaN", save(poisoned, metadata=metadata)))
        made.append((kind, "no metadata", save(tensors)))
        halved = {key: a[: len(a) // 2] if a.ndim else a for key, a in tensors.items()}
        made.append((kind, "arrays of half the size", save(halved, metadata=metadata)))
    return made


def crafted_campaign(folder: Path) -> dict[str, Report]:
    """Read each of the crafted files, in the folder that `campaign` used."""
    found = {"policy": Report(), "checkpoint": Report()}
    paths = {"policy": folder / "run" / "best.safetensors", "checkpoint": folder / "run" / "checkpoint.safetensors"}
    sound = {kind: read(kind, path) for kind, path in paths.items()}
    whole = {kind: path.read_bytes() for kind, path in paths.items()}
    for kind, name, data in crafted(folder):
        try_one(found[kind], kind, paths[kind], data, sound[kind], name)
        paths[kind].write_bytes(whole[kind])
    return found
