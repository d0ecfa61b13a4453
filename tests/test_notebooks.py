"""The notebooks of the documentation show what they print when they are run today."""

from __future__ import annotations

import json
import re

import pytest

from tests.test_docs import ROOT, program


@pytest.mark.parametrize("path", sorted(ROOT.glob("docs/notebooks/*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_shows(path, tmp_path):
    """Of cells with the tag "trained" all but the numbers, which change with the learner."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    for before, now in zip(kept["cells"], program("notebooks").run(kept, tmp_path)["cells"], strict=True):
        shown, printed = (program("notebooks").output_text(cell) for cell in (before, now))
        if "trained" in before["metadata"].get("tags", ()):
            shown, printed = (re.sub(r"[\d. ]+", " ", text) for text in (shown, printed))
        assert printed == shown, "".join(before["source"])
