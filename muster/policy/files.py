"""Policy files: safetensors with a JSON header, validated before use."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.assign.settings import InferenceSettings
from muster.custom import is_custom
from muster.errors import InputError, ModelFileError
from muster.models.critic import NETWORKS, EntityCritic
from muster.models.direct import parameter_shapes
from muster.models.spec import ModelSpec, Parameters
from muster.policy.settings import NoiseSettings
from muster.storage import check_regular, write_atomically

FORMAT = "muster-policy"
VERSION = 3
READABLE = (1, 2, 3)
"""In version 1 LP had no local search: its effort "fast" is "paper" now. Up to version 2 some settings and their values
had other names."""
CRITIC = "learner/critic/"
"""Prefix of the critic's arrays in the checkpoint of a run."""
BEST = "best.safetensors"
"""File of a run's policy, whose name is that of the folder."""
LARGEST_FILE = 64 * 2**20
MOST_TENSORS, MOST_IN_CHECKPOINT = 1000, 10_000
CHECKPOINT = "checkpoint.safetensors"
"""File from which a run resumes."""
SEAL = "seal"
"""Header entry with a hash of all others; early files have none."""


class PolicyFile(NamedTuple):
    """Contents of a policy file."""

    name: str
    spec: ModelSpec
    parameters: Parameters
    inference: InferenceSettings
    noise: NoiseSettings
    header: dict[str, Any]


def write_policy(path: str | Path, policy: PolicyFile) -> None:
    """Write a policy file, replacing an existing one atomically."""
    from safetensors.numpy import save

    header = {
        **{name: value for name, value in policy.header.items() if name != SEAL},
        "format": FORMAT,
        "version": VERSION,
        "spec": policy.spec.as_dict(),
        "inference": _plain(policy.inference),
        "noise": _plain(policy.noise),
        "hash": fingerprint(policy.parameters),
    }
    header[SEAL] = _seal(header)
    write_atomically(Path(path), save(policy.parameters, metadata={"muster": json.dumps(header)}))


def read_policy(path: str | Path) -> PolicyFile:
    """Read a policy file, or the best policy of a run's folder."""
    path = Path(path)
    if path.is_dir():
        path = path / BEST
        if not path.exists():
            begun = (path.parent / "config.toml").exists()
            why = "holds a run that has saved no policy yet; see --resume" if begun else "is not the folder of a run"
            raise ModelFileError(f"{path.parent} {why}: it has no {BEST}")
    if not path.exists():
        raise ModelFileError(f"no policy file {path}")
    check_regular(path, ModelFileError)
    size = path.stat().st_size
    if size > LARGEST_FILE:
        raise ModelFileError(f"{path} has {size:,} bytes; policy files have at most {LARGEST_FILE:,}")
    header, tensors = _read(path)
    if header.get("format") != FORMAT:
        raise ModelFileError(f"{path} is a safetensors file but not a muster policy")
    if header.get("version") not in READABLE:
        raise ModelFileError(
            f"{path} has policy format {header.get('version')!r}, this muster reads {READABLE[0]} to {READABLE[-1]}; "
            "use the muster that wrote it, or train anew"
        )
    try:
        spec = _spec(header)
        inference = _inference(header)
        noise = _noise(header)
    except (KeyError, TypeError, InputError) as error:
        raise ModelFileError(f"{path} has a damaged header ({error})") from None
    _check(path, spec, tensors)
    if header.get("hash") != fingerprint(tensors):
        raise ModelFileError(f"{path} was changed after it was written: its numbers do not match its hash")
    if header.get(SEAL, "") not in ("", _seal(header)):
        raise ModelFileError(f"{path} was changed after it was written: its header does not match its seal")
    name = path.parent.resolve().name if path.name == BEST else path.stem
    return PolicyFile(name, spec, tensors, inference, noise, header)


def _spec(header: dict[str, Any]) -> ModelSpec:
    named = dict(header["spec"])
    # Early files lack `fewest_agents`; in these environments no agent is ever missing.
    stay = str(header.get("env", "")).partition(":")[0] in ("rescue", "pursuit")
    if stay and named.get("pair_scale") == "size" and "fewest_agents" not in named:
        named["fewest_agents"] = named["trained_agents"]
    return ModelSpec(**named)


def _inference(header: dict[str, Any]) -> InferenceSettings:
    named = dict(header["inference"])
    if header["version"] < 3:
        renamed = {"plan": "routes", "longest": "makespan"}
        named = {name: renamed.get(value, value) for name, value in named.items()}
        named = {"assign_all" if name == "forced" else name: value for name, value in named.items()}
    settings = InferenceSettings(**named)
    if header["version"] == 1 and settings.method == "lp":
        settings = dataclasses.replace(settings, effort="paper")
    return settings


def _noise(header: dict[str, Any]) -> NoiseSettings:
    named = dict(header["noise"])
    if header["version"] < 3:
        # None stood for the default; noise on learned limits or shared by all agents is no setting any more.
        named = {name: value for name, value in named.items() if name not in ("limits", "together")}
        named = {"distribution" if name == "innovations" else name: value for name, value in named.items()}
        named = {name: value for name, value in named.items() if value is not None}
    return NoiseSettings(**named)


def fingerprint(tensors: dict[str, NDArray[Any]]) -> str:
    """SHA-256 over names, shapes and values of arrays."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        digest.update(f"{name}{array.shape}{array.dtype}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _seal(header: dict[str, Any]) -> str:
    """SHA-256 over the header without its seal."""
    return hashlib.sha256(json.dumps({k: v for k, v in header.items() if k != SEAL}).encode()).hexdigest()


def _plain(settings: Any) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in settings.__slots__}


def _read(path: Path) -> tuple[dict[str, Any], Parameters]:
    try:
        tensors, metadata = read_arrays(path, MOST_TENSORS)
        header = json.loads(metadata.get("muster", "{}"))
    except (ValueError, TypeError, RecursionError) as error:
        raise ModelFileError(f"{path} is not a policy file, or damaged ({in_a_line(error)})") from None
    if not isinstance(header, dict):
        raise ModelFileError(f"{path} has a damaged header")
    return header, tensors


def read_arrays(path: Path, most: int, prefix: str = "") -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Arrays of a safetensors file whose names begin with `prefix`, by the rest of their names; and its metadata.

    ValueError where it is no such file, or has more than `most` arrays, which would take seconds to read.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            arrays = file.read(min(length, path.stat().st_size)).count(b'"data_offsets"')
        if arrays > most:
            raise ValueError(f"{arrays:,} arrays")
        with safe_open(str(path), framework="numpy") as tensors:
            names = [name for name in tensors.keys() if name.startswith(prefix)]  # noqa: SIM118
            found = {name.removeprefix(prefix): tensors.get_tensor(name) for name in names}
            return found, tensors.metadata() or {}
    except (SafetensorError, OSError, TypeError, AttributeError) as error:
        raise ValueError(str(error)) from None


def in_a_line(error: Exception) -> str:
    """Message of an error, shortened to one line."""
    return " ".join(str(error).split())[:200]


def _check(path: Path, spec: ModelSpec, tensors: Parameters) -> None:
    # The shapes of a custom model are known to its class, which is imported only when the policy acts.
    shapes = {name: array.shape for name, array in tensors.items()} if is_custom(spec.kind) else parameter_shapes(spec)
    missing = [name for name in shapes if name not in tensors]
    foreign = [name for name in tensors if name not in shapes and not (spec.kind == "pem" and name.startswith("grid."))]
    if missing or foreign:
        raise ModelFileError(
            f"{path} does not fit its header: missing {missing or 'none'}, unknown {foreign or 'none'}"
        )
    for name, array in tensors.items():
        if name in shapes and not is_custom(spec.kind) and (array.shape != shapes[name] or array.dtype != np.float32):
            raise ModelFileError(f"{path}: {name} must be float32 {shapes[name]}, got {array.dtype} {array.shape}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelFileError(f"{path}: {name} holds NaN or infinity")


def run_critic(folder: str | Path) -> EntityCritic | None:
    """The critic in the folder of a run by ppo or a2c; None where there is none."""
    path = Path(folder) / CHECKPOINT
    if not path.exists():
        return None
    try:
        arrays, _ = read_arrays(path, MOST_IN_CHECKPOINT, CRITIC)
    except ValueError as error:
        raise ModelFileError(f"{path} is damaged ({in_a_line(error)})") from None
    return EntityCritic(arrays) if all(f"{net}.0.weight" in arrays for net in NETWORKS) else None
