"""Models of MLflow's registry and runs, by their address."""

from pathlib import Path

from mlflow import MlflowClient
from mlflow.artifacts import download_artifacts
from mlflow.exceptions import MlflowException

from neural_ngram.errors import TrackingError
from neural_ngram.tracking.place import store_name, store_uri

__all__ = ["download"]


def download(address: str, folder: Path) -> Path:
    """The files of `models:/name@alias`, `models:/name/version` or `runs:/…`, copied to a folder.

    Raises TrackingError when the store does not hold or give them.
    """
    try:
        return Path(
            download_artifacts(
                artifact_uri=_source(address), dst_path=str(folder), tracking_uri=store_uri()
            )
        )
    except (MlflowException, OSError, ValueError) as problem:
        raise TrackingError(
            f"{address} cannot be loaded from {store_name()} ({problem}); `make ui` lists the "
            "registered models, and MLFLOW_TRACKING_URI names another store"
        ) from problem


def _source(address: str) -> str:
    """Where the files are: an address of the registry is looked up in the project's own store."""
    scheme, _, rest = address.partition(":/")
    if scheme != "models":
        return address
    client = MlflowClient(store_uri())
    if "@" in rest:
        name, _, alias = rest.rpartition("@")
        version = client.get_model_version_by_alias(name, alias).version
    else:
        name, _, version = rest.rpartition("/")
    return str(client.get_model_version_download_uri(name, str(version)))
