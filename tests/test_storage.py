"""Files are whole or not there; a folder has one writer at a time; what cannot be written is said in a sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from muster.errors import InputError
from muster.storage import make_folder, sole_writer, write_atomically

HOLD = """
import sys, time
from pathlib import Path
from muster.storage import sole_writer
with sole_writer(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_file_is_replaced_at_once(tmp_path):
    path = tmp_path / "a" / "b"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert [entry.name for entry in path.parent.iterdir()] == ["b"]


@pytest.mark.parametrize("place", ["file/run", "/proc/nothing"])
def test_a_place_that_cannot_be_written_is_named(place, tmp_path):
    (tmp_path / "file").write_text("")
    folder = tmp_path / place
    with pytest.raises(InputError, match=f"cannot write .*{Path(place).name}"):
        make_folder(folder)
    with pytest.raises(InputError, match=f"cannot write .*{Path(place).name}"):
        write_atomically(folder / "x", b"")
    with pytest.raises(InputError, match="cannot write"), sole_writer(folder):
        pass


def test_a_second_writer_is_told_who_the_first_is(tmp_path):
    told = pytest.raises(InputError, match=r"written to by process \d+ on .+ since")
    with sole_writer(tmp_path), told, sole_writer(tmp_path):
        pass
    with sole_writer(tmp_path):  # let go of in between
        pass


def test_the_lock_of_a_process_that_was_killed_is_gone(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    with pytest.raises(InputError, match=f"written to by process {child.pid} "), sole_writer(tmp_path):
        pass
    child.kill()
    child.wait()
    child.stdout.close()
    with sole_writer(tmp_path):
        pass


def test_a_file_in_place_of_a_folder_is_named(tmp_path):
    file = tmp_path / "run"
    file.touch()
    with pytest.raises(InputError, match=f"cannot write into {file}: it is a file"), sole_writer(file):
        pass
