"""What commands share: the settings of params.yaml and the model of the last run."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural_ngram.artifacts import read_json, sha256_of_file
from neural_ngram.errors import ArtifactError, ConfigurationError
from neural_ngram.pipeline.overrides import for_hydra
from neural_ngram.pipeline.params import read, require
from neural_ngram.pipeline.project import EVALUATION, MODEL, TEST, TOKENIZER
from neural_ngram.pipeline.recorded import test_figures
from neural_ngram.settings import Settings

if TYPE_CHECKING:
    from neural_ngram.generation.trained import Trained

__all__ = ["current_settings", "evaluated", "last_run"]


def current_settings(overrides: Sequence[str] = ()) -> Settings:
    """The settings of params.yaml with Hydra overrides; raises ArtifactError without the file."""
    root = Path.cwd()
    return _overridden(root, overrides) if overrides else read(root)


def _overridden(root: Path, overrides: Sequence[str]) -> Settings:
    from hydra import compose, initialize_config_dir  # noqa: PLC0415 - slow, and rarely needed
    from hydra.core.global_hydra import GlobalHydra  # noqa: PLC0415
    from hydra.errors import HydraException  # noqa: PLC0415

    from neural_ngram.pipeline.configuration import typed  # noqa: PLC0415

    require(root)
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(root), version_base="1.3"):
            return typed(compose("params", for_hydra(overrides)), root)
    except HydraException as problem:
        raise ConfigurationError(str(problem)) from problem


def last_run() -> "Trained":
    """The trained model and its tokenizer; raises ArtifactError when they do not fit."""
    if not MODEL.exists():
        raise ArtifactError(f"there is no model in {MODEL} yet; run `dvc repro` first")
    from neural_ngram.generation.trained import load  # noqa: PLC0415 - imports torch

    return load(MODEL, TOKENIZER)


def evaluated() -> dict[str, Any]:
    """The figures of the last run's model, including those on test if it was unsealed.

    Raises ArtifactError when they belong to another model, BoundaryError when no line of the
    ledger records the figures on test.
    """
    figures = read_json(EVALUATION / "figures.json")
    if figures["model_sha256"] != sha256_of_file(MODEL):
        raise ArtifactError(f"{EVALUATION} belongs to another model than {MODEL}; run `dvc repro`")
    return figures | _on_test(figures["model_sha256"])


def _on_test(model_sha256: str) -> dict[str, Any]:
    """The figures on test, when it was unsealed; raises BoundaryError when no line records them."""
    found = test_figures()
    if found is None:
        return {}
    if found["model_sha256"] != model_sha256:
        raise ArtifactError(f"{TEST} belongs to another model than {MODEL}; run `dvc repro`")
    return {"test": found["test"]}
