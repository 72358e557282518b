"""Finished runs, for reading."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from neural_ngram.errors import TrackingError
from neural_ngram.tracking.spool import MODEL_TAG
from neural_ngram.tracking.store import connect

__all__ = ["PastRun", "newest_run", "past_runs"]


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except (MlflowException, OSError) as problem:
        raise TrackingError(
            f"MLflow's store cannot be read ({problem}); check MLFLOW_TRACKING_URI and its server"
        ) from problem


@dataclass(frozen=True)
class PastRun:
    """A finished run, for reading."""

    client: MlflowClient
    run_id: str
    name: str
    model_sha256: str
    parameters: Mapping[str, str]
    started: datetime
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

    def download(self, folder: str, target: Path) -> Path:
        """A copy of a folder of artifacts, below `target`; raises TrackingError without one."""
        with _reading():
            return Path(self.client.download_artifacts(self.run_id, folder, str(target)))

    def _files(self, folder: str) -> list[str]:
        return [a.path for a in self.client.list_artifacts(self.run_id, folder) if not a.is_dir]


def past_runs() -> Iterator[PastRun]:
    """The finished trainings, newest first; raises TrackingError when the store does not answer."""
    with _reading():
        client, experiment = connect()
        runs = client.search_runs(
            [experiment], "attributes.status = 'FINISHED'", order_by=["attributes.start_time DESC"]
        )
    for run in runs:
        if MODEL_TAG in run.data.tags:
            info, logged = run.info, run.data
            yield PastRun(
                client=client,
                run_id=info.run_id,
                name=info.run_name,
                model_sha256=logged.tags[MODEL_TAG],
                parameters=logged.params,
                started=datetime.fromtimestamp(info.start_time / 1000),
                seconds=(info.end_time - info.start_time) / 1000,
            )


def newest_run(parameters: Mapping[str, object], defaults: Mapping[str, object]) -> PastRun | None:
    """The newest finished run of a training with these parameters, whatever its others are.

    defaults: values of parameters that a run did not log because it is older than the setting.
    """
    wanted = {name: (str(value), str(defaults[name])) for name, value in parameters.items()}
    for run in past_runs():
        logged = run.parameters
        if all(logged.get(name, default) == value for name, (value, default) in wanted.items()):
            return run
    return None
