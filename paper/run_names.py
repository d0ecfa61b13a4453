"""Names of training runs and of the policies that they leave.

`battle-w15v17-quad-dm-es-s0` is an environment, what was trained on, inference, model, learner and seed. Words between
model and learner name a variant, `fleet-24-lp-dm-noprior-es-s0`, which is a method of its own.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from pathlib import Path

from muster.errors import InputError

PAPER = Path(__file__).resolve().parent
INFERENCES = ("amax", "lp", "quad", "routes")
LEARNERS = ("ppo", "a2c", "es", "srl", "imitation")

_FORM = re.compile(
    rf"([a-z]+)-([a-z0-9]+)-({'|'.join(INFERENCES)})-(dm|pem|context|linear)"
    rf"(?:-([a-z0-9]+(?:-[a-z0-9]+)*?))?-({'|'.join(LEARNERS)})-s(\d{{1,9}})"
)
_EXAMPLES = {
    "rescue": "rescue-2x4-quad-dm-ppo-s0",
    "battle": "battle-w15v17-quad-dm-es-s0",
    "pursuit": "pursuit-4x2-quad-dm-es-s0",
    "fleet": "fleet-24-lp-dm-es-s0",
    "couriers": "couriers-3x6-lp-linear-es-s0",
    "warehouse": "warehouse-4x12-lp-linear-es-s0",
    "field": "field-6x18-lp-linear-es-s0",
    "foraging": "foraging-8x8-lp-linear-es-s0",
    "satellites": "satellites-36x50-lp-linear-es-s0",
}


@dataclass(frozen=True, slots=True)
class RunName:
    """The parts of a run's name."""

    env: str
    train: str
    """Size or scenario trained on."""
    inference: str
    model: str
    variant: str
    """Words that set a run apart from the usual settings; "" for none."""
    learner: str
    seed: int

    @classmethod
    def parse(cls, text: str, env: str) -> RunName:
        """Read the name of a run in the environment `env`; refuse any other."""
        found = _FORM.fullmatch(text)
        if not found or found[1] != env:
            raise InputError(
                f"{text!r} is not named like {_EXAMPLES[env]}: {env}, what was trained on, {'|'.join(INFERENCES)}, "
                f"dm|pem|context|linear, words for a variant or none, {'|'.join(LEARNERS)}, and s with the seed"
            )
        env, train, inference, model, variant, learner, seed = found.groups(default="")
        return cls(env, train, inference, model, variant, learner, int(seed))

    @property
    def method(self) -> str:
        """Inference, model and variant: "quad-dm", "quad-dm-raw"."""
        return "-".join(part for part in (self.inference, self.model, self.variant) if part)


def policy_files(folder: Path, env: str, only: str = "*") -> dict[Path, RunName]:
    """The policies in a folder whose names match the pattern `only`, seeds in numerical order."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r} of policies to evaluate")
    found = {path: RunName.parse(path.stem, env) for path in folder.glob("*.safetensors")}
    kept = [path for path in found if fnmatch.fnmatch(path.stem, only)]
    return {path: found[path] for path in sorted(kept, key=lambda p: (p.stem.rpartition("-s")[0], found[p].seed))}


_OLD_WORDS = {"imitate": "imitation", "plan": "routes", "rule": "baseline"}


def of_today(name: str) -> str:
    """The name of today for a policy, method or learner in the records from before 0.2.0, "quad-dm-played-a2c-s0".

    a2c was what is now ppo, unless "played" or "raw" says that the paper's own update was used.
    """
    if not re.search(r"\b(played|raw)\b", name):
        name = re.sub(r"\ba2c\b", "ppo", name)
    name = name.replace("-played", "")
    return re.sub(r"\w+", lambda word: _OLD_WORDS.get(word[0], word[0]), name)
