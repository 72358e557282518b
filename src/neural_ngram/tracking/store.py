"""The MLflow run that events are applied to."""

import logging
import sqlite3
from collections.abc import Collection, Iterable
from contextlib import closing, suppress
from pathlib import Path

from filelock import FileLock, Timeout
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
from mlflow.entities.lifecycle_stage import LifecycleStage
from mlflow.exceptions import MlflowException
from mlflow.store.db import utils as db_utils

from neural_ngram.errors import TrackingError
from neural_ngram.pipeline.boundary.sandbox import KINDS
from neural_ngram.pipeline.project import dvc_root
from neural_ngram.tracking.place import (
    artifacts,
    database,
    experiment_name,
    has_own_store,
    root,
    store_uri,
)
from neural_ngram.tracking.relocation import opening_lock, relocate
from neural_ngram.tracking.spool import TRAINING_TAG, Event, Opening
from neural_ngram.tracking.view import VIEW, VIEW_TAG

__all__ = ["DeletedError", "Recorder", "connect"]

MODEL = "neural-ngram"
NEWEST = "newest"  # an alias; MLflow keeps `latest` to itself
_PARAMETERS_A_CALL = 100
_METRICS_A_CALL = 1000


class DeletedError(TrackingError):
    """What was deleted in MLflow accepts nothing more until someone restores it."""


class Recorder:
    """An open run of the store."""

    def __init__(self, opening: Opening, *, now: bool = True) -> None:
        """Find or create the run; with `now`, one that restarts is RUNNING again."""
        self.client, self.experiment = connect(opening.experiment)
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
        """Store what the event says; raises what MLflow raises."""
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
                self._metrics(Metric(*value) for value in event["values"])
            case "curve":
                name, time, first = event["name"], event["time"], event["first"]
                numbered = enumerate(event["values"], first)
                self._metrics(Metric(name, value, time, step) for step, value in numbered)
            case "boundary":
                self._boundary(event["stage"], event["kind"])
            case "dataset":
                self._dataset(event["name"], event["digest"], event["source"])
            case "artifact":
                self._artifact(Path(event["path"]), event["folder"])
            case "model":
                with FileLock(root() / ".registry.lock"):
                    self._model(event["path"])
            case "kill":
                self._kill(event["trainings"])
            case "end":
                self._end(event["status"], event["time"])

    def _metrics(self, metrics: Iterable[Metric]) -> None:
        """Add those that the run does not have yet."""
        unknown = self._unknown(list(metrics))
        for start in range(0, len(unknown), _METRICS_A_CALL):
            some = unknown[start : start + _METRICS_A_CALL]
            self.client.log_batch(self.run_id, metrics=some)

    def _kill(self, trainings: Collection[str]) -> None:
        """Mark the runs of other trainings that seem to be running as KILLED."""
        running = self.client.search_runs([self.experiment], "attributes.status = 'RUNNING'")
        for run in running:
            stopped = run.data.tags.get(TRAINING_TAG) in trainings
            if stopped and run.info.run_id != self.run_id:
                self.client.set_terminated(run.info.run_id, "KILLED")

    def _unknown(self, metrics: list[Metric]) -> list[Metric]:
        """Those of a resumed training that its run does not have yet."""
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
        """An end that is earlier, but sent later, does not replace how the run ended."""
        ended = self.client.get_run(self.run_id).info.end_time
        if ended is None or ended <= time:
            self.client.set_terminated(self.run_id, status, time)


def connect(name: str | None = None) -> tuple[MlflowClient, str]:
    """A client and the ID of the experiment; the first use of a fresh database is locked.

    Raises TrackingError when the store cannot be opened, or the experiment is deleted.
    """
    _quiet()
    name = name or experiment_name()
    root().mkdir(exist_ok=True)
    if not has_own_store():
        return _opened(name, None)
    _require_database()
    relocate(dvc_root())
    if not _has_experiment(name):
        try:
            with opening_lock(root()):
                if not _has_experiment(name):
                    return _opened(name, artifacts())
        except Timeout as problem:
            raise TrackingError(f"another process is creating {database()}") from problem
    return _opened(name, artifacts())


def _quiet() -> None:
    logging.getLogger("mlflow").setLevel(logging.WARNING)
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    # MLflow tries a database that does not open ten times, which takes a minute for each client.
    db_utils.MAX_RETRY_COUNT = 2


def _opened(name: str, location: str | None) -> tuple[MlflowClient, str]:
    client = MlflowClient(store_uri())
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        return client, _create_experiment(client, name, location)
    identifier = str(experiment.experiment_id)
    if experiment.lifecycle_stage != LifecycleStage.ACTIVE:
        raise DeletedError(
            f"the experiment {name} is deleted in MLflow; restore it with "
            f"`MLFLOW_TRACKING_URI={store_uri()} mlflow experiments restore "
            f"--experiment-id {identifier}`, or set MLFLOW_EXPERIMENT_NAME to another"
        )
    if experiment.tags.get(VIEW_TAG) != VIEW:
        client.set_experiment_tag(identifier, VIEW_TAG, VIEW)
    return client, identifier


def _require_database() -> None:
    """Raise TrackingError when SQLite cannot open the file, or it is not a database."""
    try:
        with closing(sqlite3.connect(database(), timeout=5)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as problem:
        raise TrackingError(f"{database()} cannot be opened: {problem}") from problem


def _has_experiment(name: str) -> bool:
    """Whether the experiment is in the database, so that nothing is left to be created.

    MLflow takes seconds to open one, which would add up if each process waited for the others.
    """
    query = "SELECT count(*) FROM experiments WHERE name = ?"
    try:
        with closing(sqlite3.connect(f"{database().as_uri()}?mode=ro", uri=True)) as connection:
            return bool(connection.execute(query, (name,)).fetchone()[0])
    except sqlite3.Error:
        return False


def _create_experiment(client: MlflowClient, name: str, location: str | None) -> str:
    """Its ID, also when another process was faster."""
    try:
        tags = {VIEW_TAG: VIEW}
        return str(client.create_experiment(name, artifact_location=location, tags=tags))
    except Exception:
        experiment = client.get_experiment_by_name(name)
        if experiment is None:
            raise
        return str(experiment.experiment_id)
