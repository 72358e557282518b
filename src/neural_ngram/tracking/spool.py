"""What is logged to a run, on disk before it is sent, so that no store can lose it.

An entry is a folder under `runs/spool`, named by time and process, with `opening.json` (which
run), `events.jsonl` (in order) and copies of the files. Its writer holds its lock from before the
opening is there, so that one without an opening whose lock is free was never begun. Who sends it
holds a second lock and deletes it when everything has arrived.

An event is a JSON object; applying one twice changes nothing, so that a run can be sent again:

    {"do": "parameters", "values": {name: text}}
    {"do": "tags", "values": {name: text}}
    {"do": "metrics", "values": [[name, value, milliseconds, step], …]}
    {"do": "curve", "name": …, "first": step, "values": [value of each step, …], "time": …}
    {"do": "boundary", "stage": …, "kind": landlock | audit | off}
    {"do": "dataset", "name": …, "digest": …, "source": …}
    {"do": "artifact", "path": …, "folder": …}
    {"do": "model", "path": …}
    {"do": "kill", "trainings": [key, …]}
    {"do": "end", "status": FINISHED | FAILED | KILLED, "time": milliseconds}
"""

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from neural_ngram.artifacts import write_json
from neural_ngram.errors import ArtifactError
from neural_ngram.tracking.place import EXPERIMENT, root

__all__ = [
    "MODEL_TAG",
    "TRAINING_TAG",
    "Entry",
    "Event",
    "Events",
    "Opening",
    "entries",
    "held",
    "is_begun",
    "mentions",
    "read_opening",
    "remove",
    "sending_lock",
    "take",
]

MODEL_TAG = "model_sha256"
TRAINING_TAG = "training_sha256"
_EVENTS = "events.jsonl"

Event = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Opening:
    """Which run is meant: `run_id`, else the newest whose `tag` has the `value`, else a new one.

    restarts: the run is about to be trained, not added to. time: when, in milliseconds.
    """

    name: str
    parameters: dict[str, str]
    tag: str
    value: str | None
    restarts: bool
    commit: str | None
    time: int
    run_id: str | None = None
    experiment: str = EXPERIMENT


class Entry:
    """A new entry of the spool.

    Raises ArtifactError, here and later, when it cannot be written.
    """

    def __init__(self, opening: Opening) -> None:
        self.folder = _folder() / f"{time.time_ns()}-{os.getpid()}"
        self.lock = FileLock(self.folder / "lock")
        self.copies = 0
        with _writing(self.folder), _door():
            self.lock.acquire()
        try:
            write_json(self.folder / "opening.json", asdict(opening))
        except BaseException:
            self.lock.release()
            raise

    def add(self, event: Event) -> None:
        """Keep an event, and a copy of what it refers to."""
        with _writing(self.folder):
            if "path" in event:
                event = {**event, "path": self._copy(Path(event["path"]))}
            _append(self.folder / _EVENTS, json.dumps(event).encode() + b"\n")

    def _copy(self, path: Path) -> str:
        self.copies += 1
        kept = self.folder / "files" / str(self.copies) / path.name
        if path.is_dir():
            shutil.copytree(path, kept)
        else:
            kept.parent.mkdir(parents=True)
            shutil.copy(path, kept)
        return kept.relative_to(self.folder).as_posix()

    def close(self) -> None:
        """Let others send it."""
        self.lock.release()


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise ArtifactError(
            f"{folder} cannot be written ({problem}); free disk space or allow writing there"
        ) from problem


def _append(path: Path, line: bytes) -> None:
    """Add a whole line or none."""
    with path.open("ab", buffering=0) as file:
        end = file.tell()
        try:
            written = file.write(line)
            if written < len(line):
                file.write(line[written:])
        except OSError:
            file.truncate(end)
            raise


class Events:
    """The events of an entry, each once, also while more are written."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.offset, self.number = folder, 0, 0

    def __iter__(self) -> Iterator[Event]:
        """Those that were not taken yet; an incomplete last line does not count.

        An event counts as taken when the next one is asked for. Raises ArtifactError for a line
        that is not an event.
        """
        for line in self._lines():
            event = _event(line)
            if event is None:
                raise ArtifactError(
                    f"{_EVENTS}: line {self.number + 1} is not an event: {_readable(line)[:80]!r}"
                )
            yield event | {"path": str(self.folder / event["path"])} if "path" in event else event
            self.offset += len(line) + 1
            self.number += 1

    def _lines(self) -> list[bytes]:
        path = self.folder / _EVENTS
        if not path.exists():
            return []
        with path.open("rb") as file:
            file.seek(self.offset)
            return file.read().split(b"\n")[:-1]


def _event(line: bytes) -> dict[str, Any] | None:
    """The event of a line of JSON; None if it is broken or not an event."""
    try:
        content = json.loads(line)
    except ValueError:
        return None
    return content if isinstance(content, dict) and "do" in content else None


def _readable(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace")


def read_opening(folder: Path) -> Opening:
    """Which run an entry is about; raises ArtifactError when it is damaged."""
    try:
        opening = Opening(**json.loads((folder / "opening.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as problem:
        raise ArtifactError(str(problem)) from problem
    return opening


def entries() -> list[Path]:
    """The folders of all entries, oldest first."""
    return sorted(path for path in _folder().glob("*") if path.is_dir())


def is_begun(folder: Path) -> bool:
    """Whether an entry contains anything."""
    return any((folder / name).exists() for name in ("opening.json", _EVENTS))


def mentions(folder: Path, value: str) -> bool:
    """Whether an entry is about this training or model."""
    return any(value in _text(path) for path in folder.glob("*.json*"))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:  # sent in the meantime
        return ""


@contextmanager
def held(folder: Path, patience: float = 0) -> Iterator[None]:
    """Hold an entry that exists alone, unless it is deleted meanwhile.

    Raises Timeout when its writer or sender still holds it after `patience` seconds.
    """
    until = time.monotonic() + patience
    while True:
        with ExitStack() as stack:
            try:
                for lock in (FileLock(folder / "lock"), sending_lock(folder)):
                    take(lock, folder)
                    stack.callback(lock.release)
            except Timeout:
                if time.monotonic() >= until:
                    raise
            else:
                yield
                return
        time.sleep(0.1)


def take(lock: FileLock, folder: Path) -> None:
    """Take a lock in an entry that exists; raises Timeout when another has it."""
    with _door():
        if folder.exists():
            lock.acquire(timeout=0)


def sending_lock(folder: Path) -> FileLock:
    """Held by the process that sends an entry."""
    return FileLock(folder / "sending")


def remove(folder: Path) -> None:
    """Delete an entry that was sent."""
    with _door():
        shutil.rmtree(folder, ignore_errors=True)


def _door() -> FileLock:
    """A lock to hold while an entry's folder is created, deleted or locked, in several steps."""
    return FileLock(root() / ".spool.lock")


def _folder() -> Path:
    return root() / "spool"
