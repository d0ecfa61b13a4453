"""README.md and docs/ hold: Python runs and prints what is shown, commands parse, links have a target."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
import textwrap
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import cache
from importlib import import_module
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import tyro

from muster.cli.main import COMMANDS, main

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
RECORDS = sorted([*ROOT.glob("benchmarks/*.md"), *ROOT.glob("paper/*.md"), *ROOT.glob("docs/notebooks/*.ipynb")])
BLOCK = re.compile(r"^```(\w+)(?: title=\"([\w./-]+)\")?\n(.*?)^```", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:\s]*)(#[^)\s]*)?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
OUTPUT = re.compile(r"\n\n((?:    .*\n)+)")
COMMAND = "    muster "
INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
EVERYWHERE = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())


@EVERYWHERE
def test_python_in_documents_runs(document, monkeypatch, tmp_path):
    """From top to bottom, with the output shown; a block with a title is a file that later blocks may import."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    imported_before = set(sys.modules)
    names: dict[str, object] = {}
    text = document.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        language, file, code = block.groups()
        if file:
            (tmp_path / file).parent.mkdir(exist_ok=True)
            (tmp_path / file).write_text(code, encoding="utf-8")
        elif language == "python":
            with redirect_stdout(StringIO()) as printed:
                exec(compile(code, document.name, "exec"), names)
            if shown := shown_output(text[block.end() :]):
                assert printed.getvalue().startswith(shown), f"shown:\n{shown}\nprinted:\n{printed.getvalue()}"
    if document.parent.name in ("cookbook", "get-started") or document.name == "README.md":
        for line in shell_lines(text):
            run_shortly(line)
    for name in set(sys.modules) - imported_before:
        module = sys.modules[name]
        if str(tmp_path) in str(getattr(module, "__file__", None) or getattr(module, "__path__", "")):
            del sys.modules[name]
    if document.parent.name == "cookbook":
        picture = program("pictures").IMAGES / f"{document.stem}.svg"
        assert picture.read_text(encoding="utf-8") == str(program("pictures").PICTURES[document.stem](names)), (
            f"run python docs/pictures.py {document.stem}"
        )


def run_shortly(line: str) -> None:
    """Run a command of muster as printed, except for the length of training and the number of episodes."""
    shorter = re.sub(r"--(minutes|steps) \S+", "--steps 1000 --evaluate-episodes 4", line)
    shorter = re.sub(r"--learner es", "--learner es --es.pairs 2 --es.episodes 2", shorter)
    program, command, *words = shlex.split(re.sub(r"--episodes \d+", "--episodes 4", shorter))
    if command in ("evaluate", "compare") and "--episodes" not in words:
        words += ["--episodes", "4"]
    if program == "muster" and command in COMMANDS and command not in ("serve", "demo"):
        with redirect_stdout(StringIO()):
            main([command, *words])


def shown_output(text: str) -> str:
    """Output that a page shows after a block: indented lines at the start of `text`, up to an ellipsis."""
    following = OUTPUT.match(text)
    if not following or following[1].startswith(COMMAND):
        return ""
    return textwrap.dedent(following[1]).partition("…")[0]


@pytest.mark.parametrize("document", DOCUMENTS + RECORDS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_and_anchors_have_a_target(document):
    text = FENCE.sub("", document.read_text(encoding="utf-8"))
    for target, anchor in LINK.findall(text):
        path = document.parent / target if target else document
        assert path.exists(), target
        assert not anchor or anchor[1:] in anchors(path), target + anchor


@EVERYWHERE
def test_tables_have_a_header_and_rows_of_its_length(document):
    """Markdown shows a row without a table, or one with a bar within a cell, as text."""
    text = FENCE.sub("", document.read_text(encoding="utf-8"))
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        rows = [re.sub(r"`[^`]*`|\\\|", "", row) for row in table.splitlines()]
        assert len(rows) > 1, table
        assert re.fullmatch(r"\|(?:-+:?\|)+", rows[1]), table
        assert len({row.count("|") for row in rows}) == 1, table


@cache
def anchors(document: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub and the site make them; a repeated heading gets a number."""
    slugs: set[str] = set()
    for title in HEADING.findall(FENCE.sub("", document.read_text(encoding="utf-8"))):
        anchor = program("hooks").slug(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title))
        numbered = [f"{anchor}-{number}" for number in range(1, 100)]
        slugs.add(next(slug for slug in (anchor, *numbered) if slug not in slugs))
    return slugs


@EVERYWHERE
def test_commands_in_documents_parse(document, monkeypatch, tmp_path):
    """A `muster …` in a block is a complete command; one in a sentence has no unknown flag."""
    monkeypatch.chdir(tmp_path)
    text = document.read_text(encoding="utf-8")
    for _, file, code in BLOCK.findall(text):
        if file:
            (tmp_path / file).parent.mkdir(exist_ok=True)
            (tmp_path / file).write_text(code, encoding="utf-8")
    for line in shell_lines(text):
        check_command(line, whole=True)
    if document.name == "CHANGELOG.md":  # names commands of earlier versions, too
        return
    for line in INLINE.findall(BLOCK.sub("", text)):
        if line.startswith(("muster ", "make ")):
            check_command(" ".join(line.split()), whole=False)


def shell_lines(text: str) -> Iterator[str]:
    """Commands in blocks, fenced or indented, without their comments."""
    fenced = [
        line for language, _, code in BLOCK.findall(text) if language in ("bash", "sh") for line in code.split("\n")
    ]
    indented = [line[4:] for line in BLOCK.sub("", text).split("\n") if line.startswith("    ")]
    for line in "\n".join([*fenced, *indented]).replace("\\\n", " ").split("\n"):
        for part in re.split(r"\s(?:\||&&)\s", re.sub(r"(^|\s)#.*", "", line)):
            if part.startswith(("muster ", "make ", "python -m paper", "python -m benchmarks")):
                yield part


def check_command(line: str, whole: bool) -> None:
    """Raise unless the command exists and its arguments parse; `whole`: the line is complete."""
    program, *words = shlex.split(line.partition(" >")[0])
    if program == "make":
        assert f"\n{words[0]}:" in (ROOT / "Makefile").read_text(encoding="utf-8"), line
        return
    if program == "python":
        assert importlib.util.find_spec(words[1]), line
        if words[1] == "paper":
            from paper.__main__ import COMMANDS as PAPER_COMMANDS

            tyro.cli(PAPER_COMMANDS[words[2]], args=words[3:])
        return
    if words[0].isupper() or words[0].startswith("-"):
        return
    assert words[0] in COMMANDS, line
    flags = [word.partition("=")[0] for word in words if word.startswith("--")]
    assert set(flags) <= flags_of(words[0]), line
    left_out = any("…" in word or word.rpartition("/")[2].isupper() for word in words)
    if whole and not left_out:
        parse(words[0], words[1:])


def parse(name: str, words: list[str]) -> None:
    """Parse the arguments as the command line does, without running the command."""
    command = command_class(name)
    # There is no run to resume, so its settings cannot be read.
    words = [word for word in words if word != "--resume"]
    try:
        command.from_arguments(words) if hasattr(command, "from_arguments") else tyro.cli(command, args=words)
    except SystemExit as refusal:
        raise AssertionError(f"muster {name} {shlex.join(words)}") from refusal


def command_class(name: str) -> Any:
    module, _, attribute = COMMANDS[name].partition(":")
    return getattr(import_module(module), attribute)


def flags_of(name: str) -> set[str]:
    flags = {row.split("`")[1] for row in program("generate").rows(command_class(name), flags=True)}
    return {"--help"} | flags | {flag.replace("--", "--no-", 1) for flag in flags}


@cache
def program(name: str) -> ModuleType:
    """A module of docs/: `hooks` of the site, `generate` for the reference, `pictures` of the cookbook."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"docs_{name}"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("line", ["muster evaluat a b", "muster evaluate a b --sed 1", "muster evaluate a", "make tee"])
def test_a_command_that_does_not_exist_is_noticed(line):
    with pytest.raises(AssertionError):
        check_command(line, whole=True)


def test_readme_is_short_and_names_the_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 150
    assert "make demo" in text
    assert "make test" in text


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/cookbook/*.md")), ids=lambda path: path.stem)
def test_a_recipe_has_all_its_parts(page):
    """In this order, and Python between them."""
    text = page.read_text(encoding="utf-8")
    picture = f"](../images/cookbook/{page.stem}.svg)"
    places = [
        text.find(part) for part in ("**Data.**", "**Formulation.**", "```python", picture, "**When not to use it.**")
    ]
    assert -1 not in places
    assert places == sorted(places)


def test_the_smallest_environment_is_small():
    page = (ROOT / "docs/get-started/train.md").read_text(encoding="utf-8")
    files = {file: code for _, file, code in BLOCK.findall(page)}
    assert len(files["lamps.py"].splitlines()) <= 30


def test_the_environment_of_the_guide_is_the_example():
    page = (ROOT / "docs/how-to/custom-environment.md").read_text(encoding="utf-8")
    example = (ROOT / "examples/couriers.py").read_text(encoding="utf-8")
    assert BLOCK.findall(page)[0][2] == example[example.index("import numpy") :]


@pytest.mark.parametrize("page", program("generate").pages(), ids=lambda path: path.stem)
def test_the_reference_is_what_the_code_says(page):
    text = page.read_text(encoding="utf-8")
    assert text == program("generate").made_text(text), f"{page.name} is out of date: run python docs/generate.py"


def test_the_tables_hold_every_setting():
    text = program("generate").settings_tables()
    for kind in (
        "RescueSettings",
        "BattleSettings",
        "PursuitSettings",
        "TrainSettings",
        "A2CSettings",
        "PPOSettings",
        "ESSettings",
        "ImitationSettings",
        "NoiseSettings",
    ):
        assert f"## {kind}\n" in text
    assert "| `gae_lambda` | number, between 0 and 1 | `0.95` | Lambda of generalised advantage estimation" in text


def test_every_setting_and_flag_says_what_it_means():
    tables = program("generate").settings_tables() + program("generate").command_tables()
    assert not [line for line in tables.split("\n") if line.endswith("|  |")]


def test_a_new_page_joins_the_others_of_its_folder():
    nav = [
        {"Home": "index.md"},
        {"Environments": [{"Rescue": "environments/rescue.md"}]},
        {"Changelog": "changelog.md"},
    ]
    program("hooks").add_to_sections(
        nav, ["index.md", "environments/rescue.md", "environments/battle.md", "changelog.md"]
    )
    assert nav[1] == {"Environments": [{"Rescue": "environments/rescue.md"}, {"Battles": "environments/battle.md"}]}
    assert len(nav) == 3


def test_links_are_turned_to_where_pages_are_on_the_site():
    turn = program("hooks").turn_links
    assert turn("[a](../../benchmarks/envs.md#b)", "docs/environments/rescue.md") == "[a](../benchmarks/envs.md#b)"
    assert turn("[a](docs/how-to/custom-environment.md)", "CONTRIBUTING.md") == "[a](how-to/custom-environment.md)"
    assert turn("[a](https://example.org)", "CONTRIBUTING.md") == "[a](https://example.org)"
