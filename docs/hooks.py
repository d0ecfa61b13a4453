"""What the site takes from outside docs/ when it is built, and how its anchors are called.

The changelog, the guide for contributors, the laboratory's notes, the records of the benchmarks, the notebooks and the
examples stay where they are and become pages. Links are written so that they hold in the repository; here they are
turned to where the pages are on the site.
"""

from __future__ import annotations

import json
import os
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)\s]*)?\))")


# -- Pages from outside docs/ ------------------------------------------------------------------------------------------


def outside_pages() -> dict[str, str]:
    """File in the repository -> page on the site."""
    pages = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "paper/NOTES.md": "results/notes.md"}
    for path in sorted(ROOT.glob("benchmarks/*.md")):
        pages[f"benchmarks/{path.name}"] = f"benchmarks/{path.name}"
    for path in sorted(ROOT.glob("docs/notebooks/*.ipynb")):
        pages[f"docs/notebooks/{path.name}"] = f"notebooks/{path.stem}.md"
    for path in sorted(ROOT.glob("examples/**/*.py")):
        if path.name != "__init__.py":
            pages[str(path.relative_to(ROOT))] = f"examples/{path.stem}.md"
    return pages


def outside_text(source: str) -> str:
    """The Markdown of such a page; a program is shown as it is, under its own first words."""
    text = (ROOT / source).read_text(encoding="utf-8")
    if source.endswith(".ipynb"):
        return str(runpy.run_path(str(ROOT / "docs/notebooks.py"))["as_markdown"](json.loads(text)))
    if not source.endswith(".py"):
        return text
    return f"# {source}\n\n```python\n{text}```\n"


def turn_links(text: str, source: str) -> str:
    """Links of `source`, a path in the repository, as they must read on the site."""
    pages = outside_pages()
    here = place(source, pages)

    def turn(found: re.Match[str]) -> str:
        target = os.path.normpath(os.path.join(os.path.dirname(source), found[2]))
        return found[1] + os.path.relpath(place(target, pages), os.path.dirname(here) or ".") + found[3]

    return LINK.sub(turn, text)


def place(path: str, pages: dict[str, str]) -> str:
    """Where a file of the repository is on the site."""
    return pages.get(path) or path.removeprefix("docs/")


# -- The hooks themselves ----------------------------------------------------------------------------------------------


def on_config(config: Any) -> Any:
    """Anchors as on GitHub; a page that mkdocs.yml does not name joins the section where others of its folder are."""
    config.mdx_configs["toc"] = {**config.mdx_configs.get("toc", {}), "slugify": slug}
    on_site = [path.relative_to(ROOT / "docs").as_posix() for path in sorted(ROOT.glob("docs/**/*.md"))]
    add_to_sections(config.nav, [*on_site, *outside_pages().values()])
    return config


def add_to_sections(nav: list[Any], pages: list[str]) -> None:
    """Add what is missing to the sections of `nav`, nested ones too, which is changed."""
    sections = list(_sections(nav))
    named = {page for section in sections for page in _pages(section)}
    for page in pages:
        folder = os.path.dirname(page)
        home = [section for section in sections if folder in map(os.path.dirname, _pages(section))]
        if page not in named and folder and home:
            home[-1].append({heading(page): page})


def _sections(nav: list[Any]) -> Iterator[list[Any]]:
    """A list of entries, and all lists within it."""
    yield nav
    for entry in nav:
        for value in entry.values() if isinstance(entry, dict) else ():
            if isinstance(value, list):
                yield from _sections(value)


def _pages(section: list[Any]) -> list[str]:
    """The pages that a section lists itself."""
    entries = [next(iter(entry.values())) if isinstance(entry, dict) else entry for entry in section]
    return [entry for entry in entries if isinstance(entry, str)]


def slug(title: str, separator: str = "-") -> str:
    """The anchor of a heading on GitHub."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", separator)


def heading(page: str) -> str:
    """What a page is called: its first heading."""
    sources = {target: source for source, target in outside_pages().items()}
    source = sources.get(page, f"docs/{page}")
    return re.search(r"^# (.*)$", outside_text(source), re.MULTILINE)[1]  # type: ignore[index]


def on_files(files: Any, config: Any) -> Any:
    """Add the pages from outside docs/."""
    from mkdocs.structure.files import File

    for source, target in outside_pages().items():
        files.append(File.generated(config, target, content=turn_links(outside_text(source), source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Turn the links of a page in docs/."""
    del config, files
    return markdown if page.file.generated_by else turn_links(markdown, f"docs/{page.file.src_uri}")
