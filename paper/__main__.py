"""The laboratory: `python -m paper tables …` from the root of the repository."""

from __future__ import annotations

from collections.abc import Sequence

import tyro

from muster.cli.main import exit_on_error
from paper.tables.command import Tables


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command of the laboratory."""
    with exit_on_error("paper"):
        tyro.extras.subcommand_cli_from_dict(
            {"tables": Tables}, prog="python -m paper", description=__doc__, args=argv
        ).run()


if __name__ == "__main__":
    main()
