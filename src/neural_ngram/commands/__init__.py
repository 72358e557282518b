"""What `neural-ngram` can do beside the pipeline: a module a subject.

Here is what the commands share: the settings of params.yaml and the model of the last run.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from neural_ngram import model as models
from neural_ngram import tokenizer as tokenizers
from neural_ngram.artifacts import sha256_of_file
from neural_ngram.configuration import typed
from neural_ngram.errors import ArtifactError
from neural_ngram.settings import Settings
from neural_ngram.stages import MODEL, TOKENIZER

__all__ = ["Trained", "current_settings", "last_run", "table"]


@dataclass(frozen=True)
class Trained:
    """A model, the tokenizer that it belongs to, and the hashes of what it was made from."""

    model: models.Model
    tokenizer: tokenizers.Tokenizer
    origin: dict[str, Any]


def current_settings() -> Settings:
    """The settings of params.yaml; raises ArtifactError when there is none."""
    path = Path("params.yaml")
    if not path.exists():
        raise ArtifactError(f"there is no params.yaml in {Path.cwd()}; run from the project's root")
    configuration = OmegaConf.load(path)
    return typed(configuration, Path.cwd())  # type: ignore[arg-type]


def last_run() -> Trained:
    """The trained model and its tokenizer; raises ArtifactError when they do not fit."""
    model, origin = models.load(MODEL)
    if sha256_of_file(TOKENIZER / "tokenizer.json") != origin["tokenizer_sha256"]:
        raise ArtifactError(f"{MODEL} was trained with another tokenizer; run `dvc repro`")
    hashes = {name: origin[name] for name in ("tokenizer_sha256", "documents_sha256")}
    return Trained(model, tokenizers.load(TOKENIZER), hashes)


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
