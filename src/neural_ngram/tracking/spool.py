"""What the store did not take, kept to be sent later.

An entry is a folder under `runs/spool`, named by time and process, with `opening.json` (which
run), `events.jsonl` (in order) and copies of the files. Its writer holds its lock from before the
opening is there, so that one without an opening whose lock is free was never begun.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from neural_ngram.artifacts import write_json
from neural_ngram.errors import ArtifactError, TrackingError
from neural_ngram.tracking.store import Event, Opening, Recorder, root, store_uri

__all__ = ["Entry", "is_kept", "synchronise"]


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
            with (self.folder / "events.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(event) + "\n")

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


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise ArtifactError(
            f"{folder} cannot be written ({problem}); make room on the disk or allow writing there"
        ) from problem


def is_kept(value: str | None) -> bool:
    """Whether an entry speaks of this model; what belongs to the same run must then follow it."""
    return value is not None and any(value in _text(p) for p in _folder().glob("*/*.json*"))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:  # sent in the meantime
        return ""


def synchronise(say: Callable[[str], None]) -> int:
    """Send what is kept, oldest first; how many entries were sent.

    One that is damaged is named, and stays; one that was never begun is deleted.

    Raises TrackingError when the store still does not take one; it and later ones stay.
    """
    sent = 0
    for folder in sorted(path for path in _folder().glob("*") if path.is_dir()):
        try:
            with _held(folder):
                run = _send(folder) if _is_begun(folder) else None
                with _door():
                    shutil.rmtree(folder)
        except Timeout:
            say(f"{folder} is still being written; send it later")
        except ArtifactError as problem:
            say(f"warning: {problem}")
        else:
            if run is not None:
                sent += 1
                say(f"sent {folder.name}: {run}")
    return sent


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold an entry's lock; raises Timeout while its writer does."""
    lock = FileLock(folder / "lock")
    with _door():
        lock.acquire(timeout=0)
    try:
        yield
    finally:
        lock.release()


def _door() -> FileLock:
    """To be held while an entry's folder comes, goes or is locked: these take several steps."""
    return FileLock(root() / ".spool.lock")


def _is_begun(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("opening.json", "events.jsonl"))


def _send(folder: Path) -> str:
    opening, events = _read(folder)
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


def _read(folder: Path) -> tuple[Opening, list[Event]]:
    """What an entry holds; raises ArtifactError for a damaged one."""
    try:
        opening = Opening(**json.loads((folder / "opening.json").read_text(encoding="utf-8")))
        return opening, list(_events(folder))
    except (OSError, ValueError, TypeError) as problem:
        raise ArtifactError(
            f"{folder} is damaged and not sent ({problem}); mend or delete it"
        ) from problem


def _events(folder: Path) -> Iterator[Event]:
    """The events; a last line that was cut short is none."""
    path = folder / "events.jsonl"
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    for number, line in enumerate(lines, 1):
        event = _object(line)
        if "do" not in event:
            raise ValueError(f"{path.name}: line {number} is no event: {line[:80]!r}")
        yield event | {"path": str(folder / event["path"])} if "path" in event else event


def _object(line: str) -> dict[str, Any]:
    """What a line of JSON holds; nothing when it is broken or no object."""
    try:
        content = json.loads(line)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _folder() -> Path:
    return root() / "spool"
