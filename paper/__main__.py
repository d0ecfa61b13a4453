"""The laboratory, from the root of the repository: the paper's tables beside ours, their runs, and what is shipped."""

from __future__ import annotations

from collections.abc import Sequence

import tyro

from muster.cli.main import exit_on_error
from paper.ship import Ship
from paper.tables.command import Tables
from paper.train import Train

COMMANDS = {"tables": Tables, "train": Train, "ship": Ship}


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command of the laboratory."""
    with exit_on_error("paper"):
        tyro.extras.subcommand_cli_from_dict(COMMANDS, prog="python -m paper", description=__doc__, args=argv).run()


if __name__ == "__main__":
    main()
