"""The commit of the code, where git knows it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from muster import checkout


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=someone", "-c", "user.email=someone@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package that lies in a checkout of its own."""
    found = tmp_path / "muster"
    found.mkdir()
    (found / "code.py").write_text("a = 1\n")
    monkeypatch.setattr(checkout, "PACKAGE", found)
    checkout.code_commit.cache_clear()
    yield found
    checkout.code_commit.cache_clear()


def commit_all(package: Path) -> str:
    git(package.parent, "add", ".")
    git(package.parent, "commit", "-m", "one")
    told = subprocess.run(["git", "-C", str(package), "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return told.stdout[:12]


def test_code_has_its_commit_and_says_when_it_was_changed(package):
    git(package.parent, "init")
    commit = commit_all(package)
    assert checkout.code_commit() == commit
    (package / "code.py").write_text("a = 2\n")
    checkout.code_commit.cache_clear()
    assert checkout.code_commit() == f"{commit}, changed"


def test_installed_code_has_none_though_a_folder_above_is_a_repository(package):
    git(package.parent.parent, "init")
    assert checkout.code_commit() is None


def test_without_git_there_is_none(package, monkeypatch):
    git(package.parent, "init")
    commit_all(package)
    monkeypatch.setenv("PATH", "")
    assert checkout.code_commit() is None
