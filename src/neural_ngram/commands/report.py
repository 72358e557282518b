"""The page of the last run, written and logged to its MLflow run."""

from pathlib import Path

import numpy as np
import pandas as pd

from neural_ngram import windows as token_windows
from neural_ngram.artifacts import read_json, sha256_of_file, write_text
from neural_ngram.boundary import LEDGER
from neural_ngram.commands import Trained, current_settings, last_run
from neural_ngram.commands.inspection import label
from neural_ngram.errors import ArtifactError
from neural_ngram.ledger import read
from neural_ngram.model import parameter_count
from neural_ngram.neighbours import principal_plane
from neural_ngram.report import EmbeddingMap, Measured, embedding_map, render
from neural_ngram.settings import flatten
from neural_ngram.stages import (
    EVALUATION,
    GENERATION,
    MODEL,
    ORACLE,
    SPLIT_REPORT,
    TRAINING,
    WINDOWS,
    parameters,
    run_name,
)
from neural_ngram.tracking import find_run

__all__ = ["write_report"]

REPORT = Path("artifacts/report")


def write_report() -> None:
    """Write the page, log it, and say where it is."""
    run, settings = last_run(), current_settings()
    model_sha256, name = sha256_of_file(MODEL), run_name(settings)
    figures = read_json(EVALUATION / "figures.json")
    if figures["model_sha256"] != model_sha256:
        raise ArtifactError(f"{EVALUATION} is of another model than {MODEL}; run `dvc repro`")
    page = render(
        Measured(
            name=name,
            parameters=parameter_count(run.model.architecture),
            figures=figures,
            split=read_json(SPLIT_REPORT),
            looks=read(LEDGER),
            samples=read_json(GENERATION / "samples.json"),
            settings={name: value for name, value, _ in flatten(settings)},
            objectives=_table(TRAINING / "objectives.csv"),
            parts=_table(EVALUATION / "decomposition.csv"),
            positions=_table(EVALUATION / "positions.csv"),
            frequencies=_table(EVALUATION / "frequencies.csv"),
            calibration=_table(EVALUATION / "calibration.csv"),
            entropies=_table(ORACLE / "entropies.csv"),
            embedding=_embedding(run),
        )
    )
    write_text(REPORT / "index.html", page)
    print(f"{REPORT / 'index.html'}: open it in a browser")
    with find_run(model_sha256, name, parameters(settings)) as tracked:
        tracked.artifact(REPORT, "report")


def _embedding(run: Trained) -> EmbeddingMap:
    """The tokens in their plane, with how often each is a target of train."""
    plane_V2, share = principal_plane(run.model.parameters["embedding"].numpy())
    V = len(plane_V2)
    train, _ = token_windows.load(WINDOWS / "train")
    labels = [label(run.tokenizer, token) for token in range(V)]
    return embedding_map(plane_V2, share, labels, np.bincount(train.targets(), minlength=V))


def _table(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path)
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing; run `dvc repro` first") from None
    except ValueError as problem:
        raise ArtifactError(
            f"{path} cannot be read ({problem}); delete it and run `dvc repro`"
        ) from problem
