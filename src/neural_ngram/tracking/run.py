"""A run as stages see it: told what happened, and never a reason for a stage to fail."""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlflow import MlflowClient

from neural_ngram.boundary import dvc_root
from neural_ngram.errors import ArtifactError, TrackingError
from neural_ngram.tracking.spool import Entry, is_kept
from neural_ngram.tracking.store import (
    MODEL_TAG,
    TRAINING_TAG,
    Event,
    Opening,
    Recorder,
    store_uri,
)

__all__ = ["Run", "find_run", "git_commit", "start_run"]

_BATCH = 1000


class Run:
    """An MLflow run; metrics are gathered and written in batches.

    From the first thing on that the store does not take, everything goes to the spool.
    """

    def __init__(self, opening: Opening) -> None:
        self.opening = opening
        self.pending: list[list[Any]] = []
        self.recorder: Recorder | None = None
        self.entry: Entry | None = None
        try:
            if not opening.restarts and is_kept(opening.value):
                raise TrackingError("the training of this model has not been sent yet")
            self.recorder = Recorder(opening)
        except Exception as problem:
            self._give_up(problem)

    @property
    def client(self) -> MlflowClient:
        """The store's client."""
        assert self.recorder is not None
        return self.recorder.client

    @property
    def run_id(self) -> str:
        """The ID in the store."""
        assert self.recorder is not None
        return self.recorder.run_id

    def _send(self, event: Event) -> None:
        if self.recorder is not None and self.entry is None:
            try:
                self.recorder.apply(event)
                return
            except Exception as problem:
                self._give_up(problem)
        assert self.entry is not None
        self.entry.add(event)

    def _give_up(self, problem: Exception) -> None:
        known = None if self.recorder is None else self.recorder.run_id
        self.entry = Entry(replace(self.opening, run_id=known))
        reason = " ".join(str(problem).split())[:300] or type(problem).__name__
        print(
            f"  warning: not sent to MLflow at {store_uri()} ({reason}); it is kept in "
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
        """Set tags, replacing older values."""
        self._send({"do": "tags", "values": _texts(values)})

    def boundary(self, stage: str, kind: str) -> None:
        """Tag what kept `stage` from closed files, and the weakest of it over the run's stages."""
        self._send({"do": "boundary", "stage": stage, "kind": kind})

    def dataset(self, name: str, sha256: str, source: Path) -> None:
        """Name a partition that went in, by the digest of its file."""
        event = {"name": name, "digest": sha256[:32], "source": str(source)}
        self._send({"do": "dataset", **event})

    def artifact(self, path: Path, folder: str) -> None:
        """Copy a file or a folder's contents into the run's artifacts."""
        self._send({"do": "artifact", "path": str(path), "folder": folder})

    def model(self, path: Path) -> None:
        """Register a packaged model, unless one of this run is."""
        self._send({"do": "model", "path": str(path)})

    def kill(self, trainings: Set[str]) -> None:
        """Mark the runs of other trainings, which are known to have stopped, as KILLED."""
        if self.recorder is not None and self.entry is None and trainings:
            try:
                self.recorder.kill(trainings)
            except Exception as problem:
                self._give_up(problem)

    def flush(self) -> None:
        """Write the metrics gathered so far."""
        if self.pending:
            values, self.pending = self.pending, []
            self._send({"do": "metrics", "values": values})

    def end(self, status: str | None = None) -> None:
        """Write what is left; with a status, the run ends with it."""
        try:
            self.flush()
            if status is not None:
                self._send({"do": "end", "status": status, "time": _now()})
        finally:
            if self.entry is not None:
                self.entry.close()


@contextmanager
def start_run(
    name: str, parameters: Mapping[str, object], training: str | None = None
) -> Iterator[Run]:
    """A run: FINISHED when the block ends, FAILED when it raises, KILLED when it is interrupted.

    training: identifies what is trained; an earlier run of the same, interrupted or repeated, goes
    on instead of a new one.
    """
    run = Run(_opening(name, parameters, TRAINING_TAG, training))
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
        created = run.recorder is not None and not run.recorder.continues
        run.end("FINISHED" if created else None)


def _opening(name: str, parameters: Mapping[str, object], tag: str, value: str | None) -> Opening:
    return Opening(
        name=name,
        parameters=_texts(parameters),
        tag=tag,
        value=value,
        restarts=tag == TRAINING_TAG,
        commit=git_commit(),
        time=_now(),
    )


def git_commit() -> str | None:
    """The git commit that is checked out at the root of the DVC project, when there is one.

    A temporary or queued experiment has commits of its own, which do not last.
    """
    answer = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=dvc_root(),
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout.strip() if answer.returncode == 0 else None


def _texts(values: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}


def _now() -> int:
    return int(time.time() * 1000)
