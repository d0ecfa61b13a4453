"""Where the tables' records and policies lie.

The records come with the package and are only read there. A checkout of the repository has the policies as well, and
there a rerun overwrites the committed record; elsewhere it writes where it is told to.
"""

from __future__ import annotations

from pathlib import Path

from muster.errors import InputError

RECORDS = Path(__file__).with_name("records")
CHECKOUT = Path(__file__).resolve().parents[2]


def in_checkout() -> bool:
    """Whether this code lies in the repository, rather than among installed packages."""
    return (CHECKOUT / "pyproject.toml").is_file() and (CHECKOUT / "paper").is_dir()


def committed_record(table: str) -> Path:
    """The record that comes with the package."""
    return RECORDS / f"{table}.json"


def record_to_write(table: str, given: Path | None) -> Path:
    """Where a rerun keeps its record; an installed package is not written to."""
    if given is None and not in_checkout():
        raise InputError(
            f"--rerun does not overwrite the record of an installed muster; say where the new one goes, such as "
            f"--record {table}.json"
        )
    return given or committed_record(table)


def policies_to_play(env: str, given: Path | None) -> Path:
    """The folder of policies that a rerun plays."""
    if given is None and not in_checkout():
        raise InputError(
            f"the policies of this table are in the repository (paper/{env}/policies) and not in the package; run "
            "this in a checkout, or name a folder of your own with --policies"
        )
    folder = given or CHECKOUT / "paper" / env / "policies"
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r} of policies to play")
    return folder
