"""Entries of the spool on their way to MLflow: at once, later, or while they are written.

    python -m neural_ngram.tracking.sending FOLDER

follows an entry until its writer closes this process's standard input, or is gone. It writes a line
`opening` before it opens the store, `open` whenever the store accepts events, and `failed` with the
reason whenever it does not. Whatever is left stays in the spool.
"""

import json
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from filelock import Timeout
from mlflow.exceptions import MlflowException

from neural_ngram.artifacts import write_json
from neural_ngram.errors import ArtifactError, TrackingError
from neural_ngram.pipeline.interruption import SIGNALS
from neural_ngram.tracking.place import has_own_store, store_name, store_uri
from neural_ngram.tracking.relocation import PATIENCE
from neural_ngram.tracking.spool import (
    Events,
    Opening,
    entries,
    held,
    is_begun,
    mentions,
    read_opening,
    remove,
    sending_lock,
    take,
)
from neural_ngram.tracking.store import DeletedError, Recorder

__all__ = ["deliver", "follow", "reason", "synchronise"]

POLL = 1.0  # seconds between two polls for new events
RETRY = 60.0  # seconds between two attempts to open a store that failed
_PERSONAL = ("INVALID_PARAMETER_VALUE", "PERMISSION_DENIED", "UNAUTHENTICATED", "INVALID_STATE")


class Delivery:
    """One entry, sent as far as the store accepts it."""

    def __init__(self, folder: Path, *, now: bool) -> None:
        self.folder, self.now = folder, now
        self.opening, self.events = read_opening(folder), Events(folder)
        self.recorder: Recorder | None = None
        self.created = self.ended = False

    def advance(self) -> None:
        """Send what was not sent yet; raises what MLflow raises, and ArtifactError for damage."""
        if self.recorder is None:
            self.recorder = self._open()
        for event in self.events:
            self.recorder.apply(event)
            self.ended |= event["do"] == "end"

    def _open(self) -> Recorder:
        """The run; its ID is kept on disk, so that it is not created twice."""
        file, store = self.folder / "run.json", "" if has_own_store() else store_uri()
        with suppress(OSError, ValueError):
            known = json.loads(file.read_text(encoding="utf-8"))
            if known["store"] == store:
                self.created = known["created"]
                return Recorder(replace(self.opening, run_id=known["run_id"]), now=self.now)
        recorder = Recorder(self.opening, now=self.now)
        self.created = not recorder.continues
        told = {"store": store, "run_id": recorder.run_id, "created": self.created}
        write_json(file, told)
        return recorder

    def conclude(self) -> None:
        """End a run whose writer did not: it was killed, or only added to what it hoped to find."""
        assert self.recorder is not None
        time = _milliseconds() if self.now else self.opening.time
        if self.ended:
            return
        if self.opening.restarts:
            self.recorder.apply({"do": "end", "status": "KILLED", "time": time})
        elif self.created:
            self.recorder.apply({"do": "end", "status": "FINISHED", "time": self.opening.time})


def deliver(folder: Path) -> None:
    """Send an entry that the caller holds, and before it what waits of the same run; delete it.

    Raises TrackingError with the reason when the store does not accept it; it stays.
    """
    try:
        delivery = Delivery(folder, now=True)
        _clear_the_way(delivery)
        delivery.advance()
        delivery.conclude()
    except Exception as problem:
        raise TrackingError(reason(problem)) from problem
    remove(folder)


def _clear_the_way(delivery: Delivery) -> None:
    """Send earlier entries of the same run first; a damaged one is left alone."""
    value = delivery.opening.value
    for folder in entries() if value else ():
        if folder.name >= delivery.folder.name or not mentions(folder, value or ""):
            continue
        try:
            with held(folder, PATIENCE):
                _send(folder)
        except Timeout:
            raise TrackingError(f"{folder} of the same run is still being written") from None
        except ArtifactError:
            continue


def synchronise(say: Callable[[str], None]) -> int:
    """Send what is kept, oldest first; returns how many entries were sent.

    One that is damaged is named, and stays; one that was never begun is deleted.

    Raises TrackingError when the store still does not accept one; it and later ones stay.
    """
    sent = 0
    for folder in entries():
        try:
            with held(folder):
                run = _send(folder)
        except Timeout:
            say(f"{folder} is still being written; send it later")
        except ArtifactError as problem:
            say(f"warning: {folder} is damaged and not sent ({problem}); fix or delete it")
        except Exception as problem:
            raise TrackingError(
                f"MLflow at {store_name()} does not accept {folder} ({reason(problem)}); "
                f"it is kept{_advice(problem)}"
            ) from problem
        else:
            if run is not None:
                sent += 1
                say(f"sent {folder.name}: {run}")
    return sent


def _send(folder: Path) -> str | None:
    """Send and delete an entry that is held; the name of its run, None when it was never begun.

    Raises ArtifactError for a damaged one before anything of it is sent.
    """
    name = None
    if is_begun(folder):
        opening = _checked(folder)
        delivery = Delivery(folder, now=False)
        delivery.advance()
        delivery.conclude()
        name = opening.name
    remove(folder)
    return name


def _checked(folder: Path) -> Opening:
    for _ in Events(folder):
        pass
    return read_opening(folder)


def reason(problem: Exception) -> str:
    """Why a store did not accept something, in one line."""
    return " ".join(str(problem).split())[:600] or type(problem).__name__


def _advice(problem: Exception) -> str:
    """What to do: waiting helps only if nobody has to change anything."""
    if isinstance(problem, DeletedError):
        return ""
    if isinstance(problem, MlflowException) and problem.error_code in _PERSONAL:
        return ", but waiting will not help: change what is refused, or delete the entry"
    return ", so try again later"


def _milliseconds() -> int:
    return int(time.time() * 1000)


def follow(folder: Path, is_over: Callable[[float], bool], say: Callable[[str], None]) -> None:
    """Send an entry while it is written, try again when the store fails, and delete it at the end.

    is_over: waits for so many seconds at most, and is true once nothing more will be written.
    """
    lock = sending_lock(folder)
    take(lock, folder)
    delivery, over = Delivery(folder, now=True), is_over(0)
    while True:
        try:
            if delivery.recorder is None:
                say("opening")
                _clear_the_way(delivery)
            delivery.advance()
            say("open")
            if over:
                delivery.conclude()
                remove(folder)
                return
        except Exception as problem:
            delivery.recorder = None
            say(f"failed {reason(problem)}")
            if over:
                return
            over = is_over(RETRY)
            continue
        over = is_over(POLL)


def main() -> None:
    """Follow the entry that the command line names; signals are for its writer."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)

    def is_over(seconds: float) -> bool:
        ready, _, _ = select.select([sys.stdin], [], [], seconds)
        return bool(ready)

    def say(line: str) -> None:
        with suppress(BrokenPipeError):
            print(line, flush=True)

    with suppress(Timeout):
        follow(Path(sys.argv[1]), is_over, say)


if __name__ == "__main__":
    main()
