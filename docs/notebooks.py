"""Notebooks: run them, keep what they print, and turn them into pages of the site.

    python docs/notebooks.py           # run all of docs/notebooks again and keep their output

They are run here as Jupyter would run them, but for magics (only %%writefile), so that neither tests nor the site need
Jupyter. A test runs each and compares what it prints with what is kept.
"""

from __future__ import annotations

import ast
import json
import os
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "notebooks"
Notebook = dict[str, Any]


def run(notebook: Notebook, folder: Path) -> Notebook:
    """The notebook with the outputs of its code cells, run in `folder`."""
    before = Path.cwd()
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = []
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                number = 1 + sum(one["cell_type"] == "code" for one in cells)
                cell = {**cell, "execution_count": number, "outputs": _run_cell("".join(cell["source"]), names, number)}
            cells.append(cell)
    finally:
        os.chdir(before)
        sys.path.remove(str(folder))
    return {**notebook, "cells": cells}


def _run_cell(code: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """What a cell prints, and the value of its last line if that is an expression."""
    if code.startswith("%%writefile "):
        first, _, rest = code.partition("\n")
        Path(first.split()[1]).write_text(rest + "\n", encoding="utf-8")
        return [_stream(f"Writing {first.split()[1]}\n")]
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(StringIO()) as printed:
        exec(compile(tree, "<cell>", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if last else None
    outputs = [_stream(printed.getvalue())] if printed.getvalue() else []
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        outputs.append({"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data})
    return outputs


def _stream(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)}


def output_text(cell: dict[str, Any]) -> str:
    """What a cell shows, as text."""
    parts = ["".join(one["text"] if "text" in one else one["data"]["text/plain"]) for one in cell.get("outputs", [])]
    return "".join(part if part.endswith("\n") else part + "\n" for part in parts)


def as_markdown(notebook: Notebook) -> str:
    """The page of the site: text as it is, code, and what it shows."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        if shown := output_text(cell):
            parts.append(f"```text\n{shown}```")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Run all notebooks and keep their output."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as folder:
            notebook = run(json.loads(path.read_text(encoding="utf-8")), Path(folder))
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(FOLDER.parent.parent))
    main()
