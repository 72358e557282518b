"""The only place that knows MLflow: one run a model, found again by the hash of its weights.

The store is `MLFLOW_TRACKING_URI` when that is set; else SQLite, `runs/mlflow.db`, under the root
of the DVC project, with `artifacts/` beside it: a folder of its own, since SQLite must read back
the journal that it makes beside the database, behind the walls of the boundary. Queued and
temporary experiments share that store.
"""

import json
import logging
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from filelock import FileLock

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")

from mlflow import MlflowClient
from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag

from neural_ngram.boundary import KINDS, STORE, dvc_root

__all__ = ["PastRun", "Run", "find_run", "git_commit", "newest_run", "start_run"]

EXPERIMENT = "neural-ngram"
MODEL_TAG = "model_sha256"
TRAINING_TAG = "training_sha256"
_BATCH = 1000
_PARAMETERS_A_CALL = 100


@dataclass
class Run:
    """An MLflow run; metrics are gathered and written in batches.

    continued: it has been interrupted or is repeated, so what it holds already is not added again.
    """

    client: MlflowClient
    run_id: str
    continued: bool = False
    pending: list[Metric] = field(default_factory=list)
    known: dict[str, set[int]] = field(default_factory=dict)

    def metric(self, name: str, value: float, step: int = 0) -> None:
        """Add one value of one metric."""
        if self.continued and step in self._known_steps(name):
            return
        self.pending.append(Metric(name, value, int(time.time() * 1000), step))
        if len(self.pending) >= _BATCH:
            self.flush()

    def _known_steps(self, name: str) -> set[int]:
        if name not in self.known:
            history = self.client.get_metric_history(self.run_id, name)
            self.known[name] = {metric.step for metric in history}
        return self.known[name]

    def metrics(self, values: Mapping[str, float], step: int = 0) -> None:
        """Add several metrics of one step."""
        for name, value in values.items():
            self.metric(name, value, step)

    def commit(self) -> None:
        """Tag the run with the git commit that is checked out, when there is one."""
        commit = git_commit()
        if commit:
            self.tags({"mlflow.source.git.commit": commit})

    def parameters(self, values: Mapping[str, object]) -> None:
        """Log parameters; they cannot be changed later."""
        items = [Param(name, str(value)) for name, value in values.items()]
        for start in range(0, len(items), _PARAMETERS_A_CALL):
            self.client.log_batch(self.run_id, params=items[start : start + _PARAMETERS_A_CALL])

    def tags(self, values: Mapping[str, object]) -> None:
        """Set tags, replacing older values."""
        tags = [RunTag(name, str(value)) for name, value in values.items()]
        self.client.log_batch(self.run_id, tags=tags)

    def boundary(self, stage: str, kind: str) -> None:
        """Tag what kept `stage` from closed files, and the weakest of it over the run's stages."""
        told = self.client.get_run(self.run_id).data.tags.get("boundary", kind)
        self.tags({f"boundary.{stage}": kind, "boundary": min(told, kind, key=KINDS.index)})

    def dataset(self, name: str, sha256: str, source: Path) -> None:
        """Name a partition that went in, by the digest of its file."""
        digest = sha256[:32]
        dataset = Dataset(name, digest, "local", str(source), schema="{}", profile="{}")
        context = InputTag("mlflow.data.context", name)
        self.client.log_inputs(self.run_id, [DatasetInput(dataset, [context])])

    def artifact(self, path: Path, folder: str) -> None:
        """Copy a file or a folder's contents into the run's artifacts."""
        log = self.client.log_artifacts if path.is_dir() else self.client.log_artifact
        log(self.run_id, str(path), folder)

    def flush(self) -> None:
        """Write the metrics gathered so far."""
        if self.pending:
            self.client.log_batch(self.run_id, metrics=self.pending)
            self.pending.clear()


@contextmanager
def start_run(
    name: str, parameters: Mapping[str, object], training: str | None = None
) -> Iterator[Run]:
    """A run: FINISHED when the block ends, FAILED when it raises, KILLED when it is interrupted.

    training: identifies what is trained; an earlier run of the same, interrupted or repeated, goes
    on instead of a new one.
    """
    client, experiment = _connect()
    found = _newest(client, experiment, TRAINING_TAG, training) if training else None
    if found is None:
        tags = {TRAINING_TAG: training} if training else {}
        created = client.create_run(experiment, run_name=name, tags=tags)
        run = Run(client, created.info.run_id)
    else:
        run = Run(client, found, continued=True)
        client.update_run(found, status="RUNNING")
    run.parameters(parameters)
    run.commit()
    status = "FAILED"
    try:
        yield run
        status = "FINISHED"
    except (KeyboardInterrupt, SystemExit):
        status = "KILLED"
        raise
    finally:
        run.flush()
        client.set_terminated(run.run_id, status)


def _newest(client: MlflowClient, experiment: str, tag: str, value: str) -> str | None:
    found = client.search_runs([experiment], f"tags.{tag} = '{value}'", max_results=1)
    return str(found[0].info.run_id) if found else None


@contextmanager
def find_run(model_sha256: str, name: str, parameters: Mapping[str, object]) -> Iterator[Run]:
    """The newest run of the model with this hash; a new one when the store has none."""
    client, experiment = _connect()
    found = _newest(client, experiment, MODEL_TAG, model_sha256)
    if found:
        run = Run(client, found)
        yield run
        run.flush()
    else:
        with start_run(name, parameters) as run:
            run.tags({MODEL_TAG: model_sha256})
            yield run


def git_commit() -> str | None:
    """The commit that is checked out, when there is one."""
    answer = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return answer.stdout.strip() if answer.returncode == 0 else None


@dataclass(frozen=True)
class PastRun:
    """A finished run, for reading."""

    client: MlflowClient
    run_id: str
    seconds: float

    def history(self, name: str) -> dict[int, float]:
        """The values of a metric by step."""
        return {m.step: m.value for m in self.client.get_metric_history(self.run_id, name)}

    def json(self, path: str) -> dict[str, Any]:
        """A JSON artifact, or the newest of that name below its folder; empty without one."""
        folder, _, name = path.rpartition("/")
        found = [path] if path in self._files(folder) else []
        for inner in self.client.list_artifacts(self.run_id, folder):
            if inner.is_dir:
                found += [p for p in self._files(inner.path) if p.endswith(f"/{name}")]
        if not found:
            return {}
        with TemporaryDirectory() as copy:
            text = Path(self.client.download_artifacts(self.run_id, found[-1], copy)).read_text(
                encoding="utf-8"
            )
        content: dict[str, Any] = json.loads(text)
        return content

    def _files(self, folder: str) -> list[str]:
        return [a.path for a in self.client.list_artifacts(self.run_id, folder) if not a.is_dir]


def newest_run(parameters: Mapping[str, object]) -> PastRun | None:
    """The newest finished run of a training with these parameters, whatever its others are."""
    client, experiment = _connect()
    runs = client.search_runs(
        [experiment], "attributes.status = 'FINISHED'", order_by=["attributes.start_time DESC"]
    )
    for run in runs:
        same = all(run.data.params.get(name) == str(v) for name, v in parameters.items())
        if same and MODEL_TAG in run.data.tags:
            seconds = (run.info.end_time - run.info.start_time) / 1000
            return PastRun(client, run.info.run_id, seconds)
    return None


def _connect() -> tuple[MlflowClient, str]:
    """A client and the ID of the experiment; the first use of a fresh database is locked."""
    logging.getLogger("mlflow").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    store = dvc_root() / STORE
    store.mkdir(exist_ok=True)
    remote = os.environ.get("MLFLOW_TRACKING_URI")
    with FileLock(store / ".lock"):
        client = MlflowClient(remote or f"sqlite:///{store / 'mlflow.db'}")
        experiment = client.get_experiment_by_name(EXPERIMENT)
        if experiment is not None:
            return client, str(experiment.experiment_id)
        location = None if remote else (store / "artifacts").as_uri()
        return client, str(client.create_experiment(EXPERIMENT, artifact_location=location))
