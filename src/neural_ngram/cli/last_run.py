"""What the commands share: the settings of params.yaml and the model of the last run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra

from neural_ngram.artifacts import read_json, sha256_of_file
from neural_ngram.errors import ArtifactError
from neural_ngram.generation.trained import Trained, load
from neural_ngram.pipeline.configuration import typed
from neural_ngram.pipeline.overrides import for_hydra
from neural_ngram.pipeline.project import EVALUATION, MODEL, TEST, TOKENIZER
from neural_ngram.pipeline.recorded import test_figures
from neural_ngram.settings import Settings

__all__ = ["current_settings", "evaluated", "last_run", "table"]


def current_settings(overrides: Sequence[str] = ()) -> Settings:
    """The settings of params.yaml with Hydra overrides; raises ArtifactError without the file."""
    root = Path.cwd()
    if not (root / "params.yaml").exists():
        raise ArtifactError(f"there is no params.yaml in {root}; run from the project's root")
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(root), version_base="1.3"):
        return typed(compose("params", for_hydra(overrides)), root)


def last_run() -> Trained:
    """The trained model and its tokenizer; raises ArtifactError when they do not fit."""
    if not MODEL.exists():
        raise ArtifactError(f"there is no model in {MODEL} yet; run `dvc repro` first")
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


def table(header: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    """Aligned columns: the first to the left, the others to the right."""
    cells = [header, *(tuple(map(str, row)) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )
