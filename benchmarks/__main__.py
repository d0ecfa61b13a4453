"""Speed and quality on this machine, beside peers where they are installed.

python -m benchmarks inference|envs|training|routes|minimums|layer|public|marl|service|plain|first_call [--help]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import tyro

from muster.cli.main import exit_on_error
from muster.errors import UnknownNameError

# What is measured, by `run` of the module of that name -> how long it takes.
BENCHMARKS = {
    "inference": "some minutes",
    "envs": "some minutes",
    "training": "some minutes",
    "routes": "up to half an hour, of which OR-Tools takes nearly all",
    "minimums": "a minute or two",
    "public": "half an hour or more",
    "layer": "some minutes, of which PyEPO takes nearly all",
    "marl": "half a CPU minute for each of some 50 runs that the record does not have yet",
    "service": "two minutes",
    "plain": "a few seconds",
    "first_call": "half a minute",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run a benchmark; its flags are the arguments of its function `run`."""
    which, *flags = (sys.argv[1:] if argv is None else list(argv)) or ["--help"]
    with exit_on_error("benchmarks"):
        if which in ("-h", "--help"):
            print(__doc__)
            return
        if which not in BENCHMARKS:
            raise UnknownNameError("benchmark", which, BENCHMARKS)
        if not {"-h", "--help"} & set(flags):
            print(f"benchmarks: this takes {BENCHMARKS[which]}", file=sys.stderr, flush=True)
        tyro.cli(import_module(f"benchmarks.{which}").run, prog=f"python -m benchmarks {which}", args=flags)


if __name__ == "__main__":
    main()
