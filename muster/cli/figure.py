"""A matplotlib figure that ends up in a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from muster.errors import InputError, MissingExtraError


@contextmanager
def figure_file(out: Path, feature: str) -> Iterator[tuple[Any, Any]]:
    """Yields a figure and its axes, and writes them to `out` at the end.

    What can be known to be wrong is refused at the beginning: the missing extra (which `feature` needs), a kind of file
    that cannot be written, a folder that is not there.
    """
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        raise MissingExtraError(feature, "plot") from None
    figure, axes = pyplot.subplots(figsize=(6.4, 4.2), layout="constrained")
    try:
        kinds = sorted(figure.canvas.get_supported_filetypes())
        if out.suffix[1:].lower() not in kinds:
            raise InputError(f"cannot write {out}: a picture ends in one of .{', .'.join(kinds)}")
        if not out.parent.is_dir():
            raise InputError(f"cannot write {out}: there is no folder {out.parent}")
        yield figure, axes
        try:
            figure.savefig(out, dpi=110)
        except (OSError, ValueError) as error:
            raise InputError(f"cannot write {out}: {error}") from None
    finally:
        pyplot.close(figure)
