"""The command line: parse, call the library, print."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol

from muster.errors import MusterError

# Command -> where its settings dataclass lives.
COMMANDS = {
    "demo": "muster.commands.demo:Demo",
    "envs": "muster.commands.envs:Envs",
    "policies": "muster.commands.policies:Policies",
    "solve": "muster.commands.solve:Solve",
    "train": "muster.commands.train:Train",
    "evaluate": "muster.commands.evaluate:Evaluate",
    "compare": "muster.commands.compare:Compare",
    "scale": "muster.commands.scale:Scale",
    "play": "muster.commands.play:Play",
    "check": "muster.commands.check:Check",
    "bench": "muster.commands.bench:Bench",
    "tables": "muster.commands.tables:Tables",
    "plot": "muster.commands.plot:Plot",
}


class Command(Protocol):
    """What the command line needs of a command."""

    def run(self) -> None:
        """Do it; raise MusterError for a user's mistake."""


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of `muster`; leaves with status 2 and one clear sentence on a user's mistake."""
    import tyro

    # A user's own environment, `module:Class`, is looked for where the command is called.
    if "" not in sys.path:
        sys.path.insert(0, "")
    arguments = list(sys.argv[1:] if argv is None else argv)
    # Only the named command's module is imported; help on everything imports them all.
    chosen = {name: COMMANDS[name] for name in arguments[:1] if name in COMMANDS} or COMMANDS
    loaded: dict[str, Any] = {name: _load(target) for name, target in chosen.items()}
    try:
        if len(loaded) == 1 and hasattr(loaded[arguments[0]], "from_arguments"):
            loaded[arguments[0]].from_arguments(arguments[1:]).run()
            return
        command: Command = tyro.extras.subcommand_cli_from_dict(
            loaded, prog="muster", description=__import__("muster").__doc__, args=arguments or ["--help"]
        )
        command.run()
    except MusterError as error:
        print(f"muster: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("muster: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    except BrokenPipeError:
        # The reader (head, less) went away: nothing is wrong and nobody listens.
        sys.stderr.close()
        raise SystemExit(0) from None


def _load(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
