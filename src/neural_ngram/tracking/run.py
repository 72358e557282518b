"""A run as stages see it: told what happened, and never a reason for a stage to fail.

Everything goes to the spool first. From there it is sent when the run ends, or, for a run that is
live, by a process of its own all the while.
"""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from neural_ngram.errors import ArtifactError, TrackingError
from neural_ngram.pipeline.project import git_commit
from neural_ngram.tracking.place import experiment_name, store_name
from neural_ngram.tracking.sender import Sender
from neural_ngram.tracking.spool import MODEL_TAG, TRAINING_TAG, Entry, Event, Opening

__all__ = ["Run", "find_run", "start_run"]

_BATCH = 1000


class Run:
    """What happens to one MLflow run; metrics are gathered and written in batches."""

    def __init__(self, opening: Opening, *, live: bool = False) -> None:
        self.pending: list[list[Any]] = []
        self.entry, self.warned = Entry(opening), False
        self.sender = Sender(self.entry.folder) if live else None

    def _send(self, event: Event) -> None:
        self.entry.add(event)

    def _warn(self, reason: str) -> None:
        if not self.warned:
            self.warned = True
            print(
                f"  warning: not sent to MLflow at {store_name()} ({reason}); it is kept in "
                f"{self.entry.folder}, and `neural-ngram sync` sends it",
                file=sys.stderr,
                flush=True,
            )

    def metric(self, name: str, value: float, step: int = 0) -> None:
        """Add one value of one metric."""
        self.pending.append([name, value, _now(), step])
        if len(self.pending) >= _BATCH:
            self.flush()

    def metrics(self, values: Mapping[str, float], step: int = 0) -> None:
        """Add several metrics of one step."""
        for name, value in values.items():
            self.metric(name, value, step)

    def tags(self, values: Mapping[str, object]) -> None:
        """Set tags, replacing earlier values."""
        self._send({"do": "tags", "values": _texts(values)})

    def boundary(self, stage: str, kind: str) -> None:
        """Tag the kind of sandbox around `stage`, and the weakest kind over the run's stages."""
        self._send({"do": "boundary", "stage": stage, "kind": kind})

    def dataset(self, name: str, sha256: str, source: Path) -> None:
        """Log a partition that was used, by the digest of its file."""
        event = {"name": name, "digest": sha256[:32], "source": str(source)}
        self._send({"do": "dataset", **event})

    def artifact(self, path: Path, folder: str) -> None:
        """Copy a file or a folder's contents into the run's artifacts."""
        self._send({"do": "artifact", "path": str(path), "folder": folder})

    def model(self, path: Path) -> None:
        """Register a packaged model, unless this run has registered one."""
        self._send({"do": "model", "path": str(path)})

    def kill(self, trainings: Set[str]) -> None:
        """Mark the runs of other trainings, which are known to have stopped, as KILLED."""
        if trainings:
            self._send({"do": "kill", "trainings": sorted(trainings)})

    def curve(self, name: str, first: int, values: Sequence[float]) -> None:
        """Add the values of consecutive steps of one metric, the first of them at step `first`."""
        if values:
            values = list(values)
            told = {"name": name, "first": first, "values": values, "time": _now()}
            self._send({"do": "curve", **told})

    def flush(self) -> None:
        """Write the metrics gathered so far, and warn when a live run does not arrive."""
        if self.pending:
            values, self.pending = self.pending, []
            self._send({"do": "metrics", "values": values})
        failure = self.sender.failure() if self.sender else None
        if failure:
            self._warn(failure)

    def end(self, status: str | None = None) -> None:
        """Write what is left and wait until it is sent; with a status, the run ends with it."""
        try:
            self.flush()
            if status is not None:
                self._send({"do": "end", "status": status, "time": _now()})
            failure = self.sender.finish() if self.sender else self._deliver()
            if failure:
                self._warn(failure)
        finally:
            self.entry.close()

    def _deliver(self) -> str | None:
        """Send everything; returns the reason if the store does not accept it."""
        try:
            from neural_ngram.tracking.sending import deliver  # noqa: PLC0415 - imports MLflow

            deliver(self.entry.folder)
        except TrackingError as problem:
            return str(problem)
        return None


@contextmanager
def start_run(
    name: str,
    parameters: Mapping[str, object],
    training: str | None = None,
    *,
    live: bool = False,
) -> Iterator[Run]:
    """A run: FINISHED when the block ends, FAILED when it raises, KILLED when it is interrupted.

    training: identifies what is trained; an earlier run of the same, interrupted or repeated, goes
    on instead of a new one. live: what is logged reaches MLflow within seconds, not at the end.
    """
    run = Run(_opening(name, parameters, TRAINING_TAG, training), live=live)
    try:
        yield run
    except BaseException as problem:
        interrupted = isinstance(problem, KeyboardInterrupt | SystemExit)
        with suppress(ArtifactError):
            run.end("KILLED" if interrupted else "FAILED")
        raise
    run.end("FINISHED")


@contextmanager
def find_run(model_sha256: str, name: str, parameters: Mapping[str, object]) -> Iterator[Run]:
    """The newest run of the model with this hash; a new one when the store has none."""
    run = Run(_opening(name, parameters, MODEL_TAG, model_sha256))
    try:
        yield run
    finally:
        run.end()


def _opening(name: str, parameters: Mapping[str, object], tag: str, value: str | None) -> Opening:
    return Opening(
        name=name,
        parameters=_texts(parameters),
        tag=tag,
        value=value,
        restarts=tag == TRAINING_TAG,
        commit=git_commit(),
        time=_now(),
        experiment=experiment_name(),
    )


def _texts(values: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}


def _now() -> int:
    return int(time.time() * 1000)
