"""An evaluation on disk: the windows it reads, the figures and tables it leaves."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neural_ngram.artifacts import require_tokenizer, write_csv, write_json
from neural_ngram.evaluation.run import Evaluation
from neural_ngram.tokens import windows as token_windows
from neural_ngram.tokens.windows import Windows

__all__ = ["load_partition", "save"]


def load_partition(folder: Path, origin: Mapping[str, Any]) -> tuple[Windows, dict[str, Any]]:
    """The windows of a partition and their description.

    origin: what the model was saved with.

    Raises ArtifactError when they cannot be read or were made with another tokenizer.
    """
    windows, described = token_windows.load(folder)
    tokenizer = described["tokenizer_sha256"]
    require_tokenizer(origin, tokenizer, f"the windows of {folder.name} are")
    return windows, described


def save(evaluation: Evaluation, folder: Path, model_sha256: str) -> None:
    """Write `figures.json`, the few of them in `metrics.json`, and a CSV file per table."""
    write_json(folder / "figures.json", evaluation.report | {"model_sha256": model_sha256})
    write_json(folder / "metrics.json", evaluation.compared)
    for name, table in evaluation.tables.items():
        write_csv(folder / f"{name}.csv", table)
