"""A model on disk: weights, architecture, and the hashes of what it was made from."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neural_ngram.artifacts import read_tensors, write_tensors
from neural_ngram.errors import ModelError
from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import Model, restore

__all__ = ["load", "save"]


def save(model: Model, path: Path, origin: Mapping[str, Any]) -> None:
    """Write a safetensors file; the same model gives the same bytes."""
    arrays = {name: weights.detach().numpy() for name, weights in model.parameters.items()}
    write_tensors(path, arrays, {**origin, "architecture": model.architecture.describe()})


def load(path: Path) -> tuple[Model, dict[str, Any]]:
    """A saved model, and the description it was saved with.

    Raises ArtifactError when the file is missing or damaged, ModelError when its parts do not fit.
    """
    arrays, description = read_tensors(path)
    if not isinstance(description.get("architecture"), dict):
        raise ModelError(f"{path} describes no architecture; train it again")
    try:
        architecture = Architecture.from_description(description["architecture"])
        return restore(architecture, arrays), description
    except ModelError as problem:
        raise ModelError(f"{path}: {problem}") from problem
