"""The command line: parse, call the library, print."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Protocol

from muster.errors import MusterError, UnknownNameError

# Command -> module:Class of its flags.
COMMANDS = {
    "demo": "muster.cli.demo:Demo",
    "envs": "muster.cli.envs:Envs",
    "policies": "muster.cli.policies:Policies",
    "solve": "muster.cli.solve:Solve",
    "check-plan": "muster.cli.check_plan:CheckPlan",
    "train": "muster.cli.train:Train",
    "search": "muster.cli.search:Search",
    "evaluate": "muster.cli.evaluate:Evaluate",
    "compare": "muster.cli.compare:Compare",
    "scale": "muster.cli.scale:Scale",
    "replay": "muster.cli.replay:Replay",
    "check-env": "muster.cli.check_env:CheckEnv",
    "new": "muster.cli.new:New",
    "plot": "muster.cli.plot:Plot",
    "card": "muster.cli.card:Card",
    "serve": "muster.cli.serve:Serve",
}


class Command(Protocol):
    """A parsed command."""

    def run(self) -> None:
        """Run the command; raises MusterError for a user's mistake."""


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of `muster`."""
    with exit_on_error("muster"):
        _run(list(sys.argv[1:] if argv is None else argv))


@contextmanager
def exit_on_error(program: str) -> Iterator[None]:
    """Exit with status 2 and the error's message on a user's mistake or without memory, with 130 on Ctrl-C."""
    try:
        yield
    except MusterError as error:
        print(f"{program}: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe, which is not an error.
        sys.stderr.close()
        raise SystemExit(0) from None
    except MemoryError as error:
        print(f"{program}: out of memory; use fewer episodes or a smaller problem ({error})", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:
        which = "the output or a file" if error.filename is None else error.filename
        print(f"{program}: cannot use {which}: {error.strerror or error}", file=sys.stderr)
        raise SystemExit(2) from None


def _run(arguments: list[str]) -> None:
    """Parse the arguments and run the command."""
    if arguments[:1] in (["--version"], ["-V"]):
        print(f"muster {import_module('muster').__version__}")
        return
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        raise UnknownNameError("command", arguments[0], COMMANDS)
    # Custom environments, `module:Class`, are imported from the current folder too.
    if "" not in sys.path:
        sys.path.insert(0, "")
    import tyro

    # Only the named command's module is imported; `muster --help` imports them all.
    chosen = {name: COMMANDS[name] for name in arguments[:1] if name in COMMANDS} or COMMANDS
    loaded: dict[str, Any] = {name: _load(target) for name, target in chosen.items()}
    command: Command
    if len(loaded) == 1 and hasattr(loaded[arguments[0]], "from_arguments"):
        command = loaded[arguments[0]].from_arguments(arguments[1:])
    else:
        if len(loaded) == 1:
            from muster.cli.flags import check_arguments

            check_arguments(f"muster {arguments[0]}", loaded[arguments[0]], arguments[1:])
        command = tyro.extras.subcommand_cli_from_dict(
            loaded, prog="muster", description=import_module("muster").__doc__, args=arguments or ["--help"]
        )
    command.run()


def _load(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
