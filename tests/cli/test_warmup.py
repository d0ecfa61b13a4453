from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import get_args

import pytest

from muster.assign import assign
from muster.assign.settings import Method
from muster.cli import compilers, warmup
from muster.cli.compilers import Part
from muster.cli.main import main
from muster.envs.registry import EXAMPLES, make
from muster.errors import MusterError


def test_every_procedure_world_rule_and_learner_is_warmed_up():
    names = [part.name for part in warmup.parts()]
    assert len(set(names)) == len(names)
    for method in get_args(Method):
        assert f"inference, {method}" in names
    for env in EXAMPLES:
        assert {f"{env}, {rule}" for rule in make(env).baselines()} < set(names)
    assert {"learning, es", "learning, imitate", "service, JSON", "fleet, recorded days", *warmup.VARIANTS} < set(names)


def test_what_is_warmed_up_for_lp_has_to_be_rounded_and_proven():
    found = assign(**warmup.ROUNDED, method="lp", effort="paper")
    assert found.status == "rounded"
    # Were it small enough to look at all assignments, the kernels of proofs would not be compiled.
    assert assign(**warmup.ROUNDED, method="lp", effort="fast").status == "local_optimum"
    assert assign(**warmup.ROUNDED, method="lp", effort="exact").status == "optimal"


def test_each_part_is_named_and_timed_and_the_folder_is_told(capsys, monkeypatch):
    done = []
    parts = [Part("one", lambda: done.append(1)), Part("two", lambda: done.append(2))]
    monkeypatch.setattr(warmup, "parts", lambda: parts)
    main(["warmup", "--workers", "1"])
    said = capsys.readouterr().out
    assert done == [1, 2]
    for words in ("one … 0.0 s", "two … 0.0 s", "all ready after", "kept in"):
        assert words in said


def test_a_replay_and_a_learner_of_the_smallest_world_can_be_used():
    uses = {part.name: part.use for part in warmup.parts()}
    uses[f"{EXAMPLES[0]}, replay"]()
    uses["learning, es"]()
    uses["fleet, recorded days"]()


def test_a_part_waits_only_for_those_that_are_there_and_come_before_it():
    seen = set()
    for part in warmup.parts():
        assert set(part.after) <= seen
        seen.add(part.name)


@pytest.fixture
def own_parts(tmp_path, monkeypatch):
    """Parts that processes can import: a good one, one that waits for it, and two that fail."""
    (tmp_path / "own_parts.py").write_text(
        "import os\n"
        "from pathlib import Path\n"
        "from muster.cli.compilers import Part\n"
        "kept = Path(__file__).with_name('kept')\n"
        "def first():\n    print('no answer')\n    kept.write_text('kept')\n"
        "PARTS = [\n"
        "    Part('second', lambda: kept.read_text(), ('first',)),\n"
        "    Part('first', first),\n"
        "    Part('wrong', lambda: 1 / 0),\n"
        "    Part('ended', lambda: os.kill(os.getpid(), 9)),\n"
        "]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(
        compilers, "BOOT", compilers.BOOT.replace("muster.cli.warmup import parts", "own_parts import PARTS")
        .replace("serve(parts())", "serve(PARTS)")
    )  # fmt: skip
    return {part.name: part for part in importlib.import_module("own_parts").PARTS}


def test_processes_compile_what_is_shared_first(own_parts):
    told = []
    compilers.compile_with(2, [own_parts["second"], own_parts["first"]], lambda name, seconds: told.append(name))
    assert told == ["first", "second"]


@pytest.mark.parametrize(
    ("name", "words"), [("wrong", "wrong could not be used: ZeroDivisionError"), ("ended", "was ended by signal 9")]
)
def test_what_goes_wrong_in_a_process_is_told_in_a_sentence(own_parts, name, words):
    with pytest.raises(MusterError, match=words):
        compilers.compile_with(2, [own_parts["first"], own_parts[name]], lambda name, seconds: None)


def test_listing_the_parts_compiles_next_to_nothing():
    # Every process lists them; a fleet's city is all that is made for it.
    code = "from muster.cli.warmup import parts; list(parts())"
    with tempfile.TemporaryDirectory() as empty:
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"NUMBA_CACHE_DIR": empty}, capture_output=True, check=True
        )
        assert {path.name.partition(".")[0] for path in Path(empty).rglob("*.nbi")} <= {"worth"}
