"""Finished runs, for reading."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mlflow import MlflowClient

from neural_ngram.tracking.store import MODEL_TAG, connect

__all__ = ["PastRun", "newest_run"]


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


def newest_run(parameters: Mapping[str, object], defaults: Mapping[str, object]) -> PastRun | None:
    """The newest finished run of a training with these parameters, whatever its others are.

    defaults: what stands for a parameter that a run did not log, being older than the setting.
    """
    wanted = {name: (str(value), str(defaults[name])) for name, value in parameters.items()}
    client, experiment = connect()
    runs = client.search_runs(
        [experiment], "attributes.status = 'FINISHED'", order_by=["attributes.start_time DESC"]
    )
    for run in runs:
        logged = run.data.params
        same = all(logged.get(name, default) == value for name, (value, default) in wanted.items())
        if same and MODEL_TAG in run.data.tags:
            seconds = (run.info.end_time - run.info.start_time) / 1000
            return PastRun(client, run.info.run_id, seconds)
    return None
