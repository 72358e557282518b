"""Events, and the MLflow run that they are applied to.

An event is a JSON object; applying one twice changes nothing, so that a run can be sent again:

    {"do": "parameters", "values": {name: text}}
    {"do": "tags", "values": {name: text}}
    {"do": "metrics", "values": [[name, value, milliseconds, step], …]}
    {"do": "boundary", "stage": …, "kind": landlock | audit | off}
    {"do": "dataset", "name": …, "digest": …, "source": …}
    {"do": "artifact", "path": …, "folder": …}
    {"do": "model", "path": …}
    {"do": "end", "status": FINISHED | FAILED | KILLED, "time": milliseconds}
"""

import logging
import os
import sqlite3
from collections.abc import Mapping, Set
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
# A server that hangs holds a stage up for half a minute, once; MLflow alone would wait 15 minutes.
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "1")

from mlflow import MlflowClient
from mlflow.entities import (
    Dataset,
    DatasetInput,
    InputTag,
    LoggedModelOutput,
    LoggedModelStatus,
    Metric,
    Param,
    RunTag,
)
from mlflow.exceptions import MlflowException

from neural_ngram.boundary import KINDS, STORE, dvc_root
from neural_ngram.tracking.view import VIEW, VIEW_TAG

__all__ = [
    "MODEL_TAG",
    "TRAINING_TAG",
    "Event",
    "Opening",
    "Recorder",
    "connect",
    "root",
    "store_uri",
]

EXPERIMENT = MODEL = "neural-ngram"
NEWEST = "newest"  # an alias; MLflow keeps `latest` to itself
MODEL_TAG = "model_sha256"
TRAINING_TAG = "training_sha256"
_PARAMETERS_A_CALL = 100

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


class Recorder:
    """An open run of the store."""

    def __init__(self, opening: Opening, *, now: bool = True) -> None:
        """Find or create the run; with `now`, one that restarts is RUNNING again."""
        self.client, self.experiment = connect()
        self.opening, self.known = opening, dict[str, set[int]]()
        found = opening.run_id
        if found is None and opening.value is not None:
            found = self._newest(opening.tag, opening.value)
        self.continues = found is not None
        self.run_id = found or self._create()
        if found is not None and opening.restarts and now:
            self.client.update_run(found, status="RUNNING")
        if found is None or opening.restarts:
            self.apply({"do": "parameters", "values": opening.parameters})
            if opening.commit:
                self.apply({"do": "tags", "values": {"mlflow.source.git.commit": opening.commit}})

    def _newest(self, tag: str, value: str) -> str | None:
        found = self.client.search_runs([self.experiment], f"tags.{tag} = '{value}'", max_results=1)
        return str(found[0].info.run_id) if found else None

    def _create(self) -> str:
        opening = self.opening
        tags = {opening.tag: opening.value} if opening.value else {}
        created = self.client.create_run(
            self.experiment, start_time=opening.time, tags=tags, run_name=opening.name
        )
        return str(created.info.run_id)

    def apply(self, event: Event) -> None:
        """Let the store hold what the event says; raises what MLflow raises."""
        match event["do"]:
            case "parameters":
                items = [Param(name, value) for name, value in event["values"].items()]
                for start in range(0, len(items), _PARAMETERS_A_CALL):
                    some = items[start : start + _PARAMETERS_A_CALL]
                    self.client.log_batch(self.run_id, params=some)
            case "tags":
                tags = [RunTag(name, value) for name, value in event["values"].items()]
                self.client.log_batch(self.run_id, tags=tags)
            case "metrics":
                metrics = [Metric(*value) for value in event["values"]]
                self.client.log_batch(self.run_id, metrics=self._unknown(metrics))
            case "boundary":
                self._boundary(event["stage"], event["kind"])
            case "dataset":
                self._dataset(event["name"], event["digest"], event["source"])
            case "artifact":
                self._artifact(Path(event["path"]), event["folder"])
            case "model":
                with FileLock(root() / ".registry.lock"):
                    self._model(event["path"])
            case "end":
                self._end(event["status"], event["time"])

    def kill(self, trainings: Set[str]) -> None:
        """Mark the runs of other trainings that seem to be running as KILLED."""
        running = self.client.search_runs([self.experiment], "attributes.status = 'RUNNING'")
        for run in running:
            stopped = run.data.tags.get(TRAINING_TAG) in trainings
            if stopped and run.info.run_id != self.run_id:
                self.client.set_terminated(run.info.run_id, "KILLED")

    def _unknown(self, metrics: list[Metric]) -> list[Metric]:
        """Those of a training that goes on which its run does not hold yet."""
        if not (self.continues and self.opening.restarts):
            return metrics
        for name in {metric.key for metric in metrics} - self.known.keys():
            history = self.client.get_metric_history(self.run_id, name)
            self.known[name] = {metric.step for metric in history}
        return [metric for metric in metrics if metric.step not in self.known[metric.key]]

    def _boundary(self, stage: str, kind: str) -> None:
        """The kind of this stage, and the weakest over the run's stages."""
        told = self.client.get_run(self.run_id).data.tags.get("boundary", kind)
        weakest = min(told, kind, key=KINDS.index)
        self.apply({"do": "tags", "values": {f"boundary.{stage}": kind, "boundary": weakest}})

    def _dataset(self, name: str, digest: str, source: str) -> None:
        dataset = Dataset(name, digest, "local", source, schema="{}", profile="{}")
        context = InputTag("mlflow.data.context", name)
        self.client.log_inputs(self.run_id, [DatasetInput(dataset, [context])])

    def _artifact(self, path: Path, folder: str) -> None:
        log = self.client.log_artifacts if path.is_dir() else self.client.log_artifact
        log(self.run_id, str(path), folder)

    def _model(self, path: str) -> None:
        """The run's model, as the newest version of the registered one.

        Its source is a place, not `models:/…`, which MLflow would look up in its default store.
        """
        if self.client.search_model_versions(f"run_id = '{self.run_id}'", max_results=1):
            return
        model = self.client.create_logged_model(
            self.experiment, MODEL, source_run_id=self.run_id, model_type="fixed-context"
        )
        self.client.log_model_artifacts(model.model_id, path)
        self.client.finalize_logged_model(model.model_id, LoggedModelStatus.READY)
        self.client.log_outputs(self.run_id, [LoggedModelOutput(model.model_id, step=0)])
        with suppress(MlflowException):  # it is there already
            self.client.create_registered_model(MODEL)
        version = self.client.create_model_version(
            MODEL,
            model.artifact_location,
            self.run_id,
            description=self.opening.name,
            model_id=model.model_id,
        )
        self.client.set_registered_model_alias(MODEL, NEWEST, version.version)

    def _end(self, status: str, time: int) -> None:
        """What ended earlier, but is sent later, does not hide how the run ended."""
        ended = self.client.get_run(self.run_id).info.end_time
        if ended is None or ended <= time:
            self.client.set_terminated(self.run_id, status, time)


def root() -> Path:
    """The folder of MLflow's store under the root of the DVC project, also for experiments."""
    return dvc_root() / STORE


def store_uri() -> str:
    """Where MLflow keeps runs."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{root() / 'mlflow.db'}"


def connect() -> tuple[MlflowClient, str]:
    """A client and the ID of the experiment; the first use of a fresh database is locked."""
    logging.getLogger("mlflow").setLevel(logging.WARNING)
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    remote = os.environ.get("MLFLOW_TRACKING_URI")
    root().mkdir(exist_ok=True)
    lock: AbstractContextManager[Any] = FileLock(root() / ".lock")
    with nullcontext() if remote or _is_ready(root() / "mlflow.db") else lock:
        client = MlflowClient(store_uri())
        experiment = client.get_experiment_by_name(EXPERIMENT)
        if experiment is not None:
            if experiment.tags.get(VIEW_TAG) != VIEW:
                client.set_experiment_tag(experiment.experiment_id, VIEW_TAG, VIEW)
            return client, str(experiment.experiment_id)
        location = None if remote else (root() / "artifacts").as_uri()
        return client, _create_experiment(client, location)


def _is_ready(database: Path) -> bool:
    """Whether the experiment stands in the database, so that nothing is left to be created.

    MLflow takes seconds to open one, which would add up if each process waited for the others.
    """
    if not database.exists():
        return False
    query = "SELECT count(*) FROM experiments WHERE name = ?"
    try:
        with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
            return bool(connection.execute(query, (EXPERIMENT,)).fetchone()[0])
    except sqlite3.Error:
        return False


def _create_experiment(client: MlflowClient, location: str | None) -> str:
    """Its ID, also when another process was faster."""
    try:
        tags = {VIEW_TAG: VIEW}
        return str(client.create_experiment(EXPERIMENT, artifact_location=location, tags=tags))
    except Exception:
        experiment = client.get_experiment_by_name(EXPERIMENT)
        if experiment is None:
            raise
        return str(experiment.experiment_id)
