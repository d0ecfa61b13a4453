"""The folder of a training run: settings, log, checkpoint, policies. Files are replaced atomically."""

from __future__ import annotations

import csv
import hashlib
import json
import shlex
import time
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from muster.errors import InputError, ModelFileError
from muster.evaluation.card import RUN_CARD
from muster.learning.settings import TrainSettings
from muster.policy.files import CHECKPOINT, MOST_IN_CHECKPOINT, fingerprint, in_a_line, read_arrays
from muster.policy.learned import LearnedPolicy
from muster.settings import from_toml, to_toml
from muster.storage import make_folder, write_atomically, writing

COLUMNS = (
    "steps",
    "updates",
    "episodes",
    "reward",
    "outcome",
    "validation",
    "value_loss",
    "policy_loss",
    "advantage",
    "fitness",
    "fitness_best",
    "loss",
    "agreement",
    "cpu_seconds",
    "steps_per_second",
)
"""First columns of metrics.csv; an environment's own metrics, those by environment and remarks follow."""


def holds_run(folder: Path) -> bool:
    """Whether there is a run in a folder."""
    return (folder / "config.toml").exists()


def resuming(folder: Path) -> str:
    """The command that goes on with the run in a folder."""
    return f"muster train --out {shlex.quote(str(folder))} --resume"


class Run:
    """The files in a run's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[dict[str, Any]] = []
        self._columns = list(COLUMNS)
        self._tensorboard: TensorBoard | Literal[False] | None = None

    @classmethod
    def create(cls, folder: Path, settings: TrainSettings) -> Run:
        """Make the folder of a new run; InputError where it already holds one."""
        cls.refuse_another(folder)
        run = cls(folder)
        write_atomically(folder / "config.toml", to_toml(settings).encode())
        run._write_rows()
        return run

    @staticmethod
    def refuse_another(folder: Path) -> None:
        """Raise InputError where a folder already holds a run."""
        if holds_run(folder):
            raise InputError(
                f"{folder} already holds a run; go on with it ({resuming(folder)}) or choose another --out"
            )

    def undo(self) -> None:
        """Remove the files of `create`, where a run fails before its first update."""
        for name in ("config.toml", "metrics.csv", "metrics.jsonl"):
            with writing(self.folder):
                (self.folder / name).unlink(missing_ok=True)

    def log(self, row: dict[str, Any]) -> None:
        """Add a row to the CSV and JSONL logs and to TensorBoard."""
        self._still_there()
        self.rows.append(row)
        tidy = _tidy(row)
        with writing(self.folder):
            if tidy.keys() - set(self._columns):
                self._write_rows()
            else:
                with (self.folder / "metrics.csv").open("a", newline="") as file:
                    csv.DictWriter(file, self._columns, restval="").writerow(tidy)
                with (self.folder / "metrics.jsonl").open("a") as file:
                    file.write(json.dumps(tidy) + "\n")
            self._show(tidy, row["steps"])

    def amend(self, metrics: dict[str, Any]) -> None:
        """Add metrics to the last row."""
        self._still_there()
        self.rows[-1] |= metrics
        with writing(self.folder):
            self._write_rows()
            self._show(_tidy(metrics), self.rows[-1]["steps"])

    def _show(self, metrics: dict[str, Any], steps: int) -> None:
        """Add metrics to TensorBoard, where it is installed."""
        if self._tensorboard is None:
            self._tensorboard = _open_tensorboard(self.folder)
        if self._tensorboard:
            self._tensorboard.add(metrics, steps)

    def save_checkpoint(self, arrays: dict[str, NDArray[Any]], plain: dict[str, Any]) -> None:
        """Replace the checkpoint, which has the log's rows too, so that log and weights always agree."""
        from safetensors.numpy import save

        self._still_there()
        text = json.dumps({**plain, "rows": [_tidy(row) for row in self.rows]})
        metadata = {"muster": text, "hash": _seal(arrays, text)}
        write_atomically(self.folder / CHECKPOINT, save(arrays, metadata=metadata))

    def load_checkpoint(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
        """Arrays and values of the last checkpoint, with the logs cut back to it; None where there is none."""
        path = self.folder / CHECKPOINT
        if not path.exists():
            self._write_rows()
            return None
        try:
            arrays, metadata = read_arrays(path, MOST_IN_CHECKPOINT)
            # Checkpoints of early versions have no hash.
            if metadata.get("hash", "") not in ("", _seal(arrays, metadata["muster"])):
                raise ValueError("its numbers do not match its hash")
            plain = json.loads(metadata["muster"])
            self.rows = [dict(row) for row in plain.pop("rows")]
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise damaged(path, error) from None
        self._write_rows()
        return arrays, plain

    def save_policy(self, policy: LearnedPolicy, which: str) -> None:
        """Write best.safetensors or last.safetensors."""
        self._still_there()
        if which == "best":  # the present card describes other weights
            with writing(self.folder):
                (self.folder / RUN_CARD).unlink(missing_ok=True)
        policy.save(self.folder / f"{which}.safetensors")

    def finish(self, summary: dict[str, Any]) -> None:
        """Write summary.json and close TensorBoard."""
        self._still_there()
        write_atomically(self.folder / "summary.json", (json.dumps(summary, indent=2) + "\n").encode())
        if self._tensorboard:
            self._tensorboard.close()

    def _still_there(self) -> None:
        """InputError where the folder was removed meanwhile: files written to a new one could not be resumed."""
        if not (self.folder / "config.toml").exists():
            raise InputError(f"cannot write {self.folder}: it, or its config.toml, was removed while the run went on")

    def _write_rows(self) -> None:
        """Write all rows of the log anew, with a column for every metric."""
        make_folder(self.folder)
        rows = [_tidy(row) for row in self.rows]
        self._columns = list(dict.fromkeys([*COLUMNS, *(name for row in rows for name in row)]))
        with writing(self.folder), (self.folder / "metrics.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, self._columns, restval="")
            writer.writeheader()
            writer.writerows(rows)
        with writing(self.folder):
            (self.folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def stored_settings(folder: Path) -> TrainSettings:
    """Settings of the run in a folder."""
    if not holds_run(folder):
        raise InputError(f"{folder} holds no run to resume")
    return from_toml(TrainSettings, folder / "config.toml")


def damaged(path: Path, error: Exception) -> ModelFileError:
    """Error for a checkpoint that cannot be read."""
    return ModelFileError(f"{path} is damaged ({in_a_line(error)}); begin the run anew in another folder")


def _seal(arrays: dict[str, NDArray[Any]], text: str) -> str:
    """SHA-256 over the contents of a checkpoint."""
    return hashlib.sha256((fingerprint(arrays) + text).encode()).hexdigest()


def _tidy(row: dict[str, Any]) -> dict[str, Any]:
    """The row without missing values (NaN)."""
    return {name: value for name, value in row.items() if value == value}


def _open_tensorboard(folder: Path) -> TensorBoard | Literal[False]:
    """A TensorBoard writer, or False where TensorBoard is not installed."""
    try:
        return TensorBoard(folder / "tensorboard")
    except ImportError:
        return False


class TensorBoard:
    """Writer of event files for TensorBoard; ImportError where it is not installed.

    It needs no torch, whose own writer would take half of a short run's time to import.
    """

    def __init__(self, folder: Path) -> None:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._writer = EventFileWriter(str(folder))

    def add(self, row: dict[str, Any], step: int) -> None:
        """Add the metrics of one step."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.plugins.text.summary_v2 import text_pb

        summary = Summary()
        for name, value in row.items():
            if isinstance(value, str):
                summary.MergeFrom(text_pb(f"{name}/text_summary", value))
            else:
                summary.value.add(tag=name, simple_value=value)
        self._writer.add_event(Event(wall_time=time.time(), step=step, summary=summary))

    def close(self) -> None:
        """Flush and close the file."""
        self._writer.close()
