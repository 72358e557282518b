"""Where MLflow keeps runs, known without importing MLflow.

`MLFLOW_TRACKING_URI` and `MLFLOW_EXPERIMENT_NAME` are honoured; without them the store is the
project's own, SQLite under the root of the DVC project.
"""

import os
from pathlib import Path

from neural_ngram.pipeline.project import STORE, dvc_root

__all__ = [
    "EXPERIMENT",
    "artifacts",
    "database",
    "experiment_name",
    "has_own_store",
    "root",
    "store_name",
    "store_uri",
]

EXPERIMENT = "neural-ngram"

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
# A store that hangs is abandoned after 15 seconds; MLflow alone would wait for 15 minutes.
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "5")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "1")
os.environ.setdefault("PGCONNECT_TIMEOUT", "5")


def root() -> Path:
    """The folder of MLflow's store under the root of the DVC project, also for experiments."""
    return dvc_root() / STORE


def database() -> Path:
    """The file of the project's own store."""
    return root() / "mlflow.db"


def artifacts() -> str:
    """Where the project's own store keeps the files of runs."""
    return (root() / "artifacts").as_uri()


def has_own_store() -> bool:
    """Whether runs go to the project's own store."""
    return not os.environ.get("MLFLOW_TRACKING_URI")


def store_uri() -> str:
    """Where MLflow keeps runs.

    MLflow makes the folder of an address that starts with `sqlite:///` without decoding it first,
    so the driver is named, which SQLAlchemy takes for the same.
    """
    from sqlalchemy.engine import URL  # noqa: PLC0415 - training has no need of it

    given = os.environ.get("MLFLOW_TRACKING_URI")
    return given or URL.create("sqlite+pysqlite", database=str(database())).render_as_string()


def store_name() -> str:
    """The store as messages name it: an address, or a file."""
    return os.environ.get("MLFLOW_TRACKING_URI") or str(database())


def experiment_name() -> str:
    """The experiment that runs belong to."""
    return os.environ.get("MLFLOW_EXPERIMENT_NAME") or EXPERIMENT
