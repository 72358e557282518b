"""A model on disk: weights, architecture, and the hashes of what it was made from.

A record of their hash lies beside the weights, in the format of `sha256sum --check`, so that they
can be verified wherever both are copied.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neural_ngram.artifacts import (
    read_tensors,
    read_text,
    sha256_of_file,
    write_tensors,
    write_text,
)
from neural_ngram.errors import ArtifactError, ModelError
from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import Model, restore

__all__ = ["hash_file", "load", "save"]


def hash_file(path: Path) -> Path:
    """Where the hash of a model file is recorded."""
    return path.with_name(f"{path.name}.sha256")


def save(model: Model, path: Path, origin: Mapping[str, Any]) -> None:
    """Write a safetensors file and the record of its hash; the same model gives the same bytes."""
    arrays = {name: weights.detach().numpy() for name, weights in model.parameters.items()}
    write_tensors(path, arrays, {**origin, "architecture": model.architecture.describe()})
    write_text(hash_file(path), f"{sha256_of_file(path)}  {path.name}\n")


def load(path: Path, sha256: str | None = None) -> tuple[Model, dict[str, Any]]:
    """A saved model, and the description it was saved with.

    sha256: of the file, as recorded in an MLflow run; None: as recorded beside the file.

    Raises ArtifactError when the file is missing, damaged or not the recorded one, ModelError when
    its parts do not fit.
    """
    _verify(path, sha256)
    arrays, description = read_tensors(path)
    if not isinstance(description.get("architecture"), dict):
        raise ModelError(f"{path} describes no architecture; train it again")
    try:
        architecture = Architecture.from_description(description["architecture"])
        return restore(architecture, arrays), description
    except ModelError as problem:
        raise ModelError(f"{path}: {problem}") from problem


def _verify(path: Path, sha256: str | None) -> None:
    found = sha256_of_file(path)
    recorded = sha256 or read_text(hash_file(path)).partition(" ")[0].strip()
    if found != recorded:
        raise ArtifactError(
            f"{path} is not the recorded model: its SHA-256 is {found}, but the record says "
            f"{recorded[:64]!r}; copy the model again together with {hash_file(path).name}, or "
            "delete it and run `dvc repro`"
        )
