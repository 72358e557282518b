"""What the store did not take, kept to be sent later.

An entry is a folder under `runs/spool`, named by time and process, with `opening.json` (which
run), `events.jsonl` (in order) and copies of the files. Its writer holds its lock.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from filelock import FileLock, Timeout

from neural_ngram.artifacts import read_json, write_json
from neural_ngram.errors import ArtifactError, TrackingError
from neural_ngram.tracking.store import Event, Opening, Recorder, root, store_uri

__all__ = ["Entry", "is_kept", "synchronise"]


class Entry:
    """A new entry of the spool.

    Raises ArtifactError, here and later, when it cannot be written.
    """

    def __init__(self, opening: Opening) -> None:
        self.folder = _folder() / f"{time.time_ns()}-{os.getpid()}"
        write_json(self.folder / "opening.json", asdict(opening))
        self.lock = FileLock(self.folder / "lock")
        self.lock.acquire()
        self.copies = 0

    def add(self, event: Event) -> None:
        """Keep an event, and a copy of what it refers to."""
        try:
            if "path" in event:
                event = {**event, "path": self._copy(Path(event["path"]))}
            with (self.folder / "events.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(event) + "\n")
        except OSError as problem:
            raise ArtifactError(
                f"{self.folder} cannot be written ({problem}); make room on the disk"
            ) from problem

    def _copy(self, path: Path) -> str:
        self.copies += 1
        kept = self.folder / "artifacts" / str(self.copies) / path.name
        if path.is_dir():
            shutil.copytree(path, kept)
        else:
            kept.parent.mkdir(parents=True)
            shutil.copy(path, kept)
        return kept.relative_to(self.folder).as_posix()

    def close(self) -> None:
        """Let it be sent."""
        self.lock.release()


def is_kept(value: str | None) -> bool:
    """Whether an entry speaks of this model; what belongs to the same run must then follow it."""
    return value is not None and any(value in _text(p) for p in _folder().glob("*/*.json*"))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:  # sent in the meantime
        return ""


def synchronise(say: Callable[[str], None]) -> int:
    """Send what is kept, oldest first; how many entries were sent.

    Raises TrackingError when the store still does not take one; it and later ones stay.
    """
    sent = 0
    for folder in sorted(path for path in _folder().glob("*") if path.is_dir()):
        try:
            with FileLock(folder / "lock").acquire(timeout=0):
                run = _send(folder)
                shutil.rmtree(folder)
        except Timeout:
            say(f"{folder} is still being written; send it later")
            continue
        sent += 1
        say(f"sent {folder.name}: {run}")
    return sent


def _send(folder: Path) -> str:
    try:
        opening = Opening(**read_json(folder / "opening.json"))
    except TypeError as problem:
        raise ArtifactError(f"{folder}/opening.json is no opening ({problem}); delete it") from None
    events = list(_events(folder))
    try:
        recorder = Recorder(opening, now=False)
        for event in events:
            recorder.apply(event)
        if not any(event["do"] == "end" for event in events):
            _end(recorder, opening)
    except Exception as problem:
        raise TrackingError(
            f"MLflow at {store_uri()} does not take {folder} "
            f"({' '.join(str(problem).split())[:300]}); it is kept, so try again later"
        ) from problem
    return opening.name


def _end(recorder: Recorder, opening: Opening) -> None:
    """End a run whose writer did not: it was killed, or it only added to what it hoped to find."""
    if opening.restarts:
        recorder.apply({"do": "end", "status": "KILLED", "time": opening.time})
    elif not recorder.continues:
        recorder.apply({"do": "end", "status": "FINISHED", "time": opening.time})


def _events(folder: Path) -> Iterator[Event]:
    """The events; a last line that was cut short is none."""
    path = folder / "events.jsonl"
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    for line in lines:
        event = json.loads(line)
        yield event | {"path": str(folder / event["path"])} if "path" in event else event


def _folder() -> Path:
    return root() / "spool"
