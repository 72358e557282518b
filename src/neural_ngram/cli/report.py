"""The page of the last run, written and logged to its MLflow run."""

from pathlib import Path

import numpy as np

from neural_ngram.artifacts import read_csv, read_json, write_text
from neural_ngram.cli.last_run import current_settings, evaluated, last_run
from neural_ngram.evaluation.decomposition import decomposition
from neural_ngram.export.neighbours import principal_plane
from neural_ngram.export.page import EmbeddingMap, Measured, embedding_map, render
from neural_ngram.generation.trained import Trained
from neural_ngram.model.architecture import parameter_count
from neural_ngram.pipeline.project import (
    EVALUATION,
    GENERATION,
    ORACLE,
    SPLIT_REPORT,
    TRAINING,
    WINDOWS,
    parameters,
    run_name,
)
from neural_ngram.pipeline.recorded import lines
from neural_ngram.settings import flatten
from neural_ngram.tokens import windows as token_windows
from neural_ngram.tracking.run import find_run

__all__ = ["write_report"]

REPORT = Path("artifacts/report")


def write_report() -> None:
    """Write the page, log it, and print where it is."""
    run, settings = last_run(), current_settings()
    figures, name = evaluated(), run_name(settings)
    page = render(
        Measured(
            name=name,
            parameters=parameter_count(run.model.architecture),
            figures=figures,
            split=read_json(SPLIT_REPORT),
            test_evaluations=lines(),
            samples=read_json(GENERATION / "samples.json"),
            settings={name: value for name, value, _ in flatten(settings)},
            evaluations=read_csv(TRAINING / "evaluations.csv"),
            parts=decomposition(run.model, figures, read_json(ORACLE / "figures.json")),
            positions=read_csv(EVALUATION / "positions.csv"),
            frequencies=read_csv(EVALUATION / "frequencies.csv"),
            calibration=read_csv(EVALUATION / "calibration.csv"),
            entropies=read_csv(ORACLE / "entropies.csv"),
            embedding=_embedding(run),
        )
    )
    write_text(REPORT / "index.html", page)
    print(f"{REPORT / 'index.html'}: open it in a browser")
    with find_run(figures["model_sha256"], name, parameters(settings)) as tracked:
        tracked.artifact(REPORT, "report")


def _embedding(run: Trained) -> EmbeddingMap:
    """The tokens in the plane, and how often each is a target in train."""
    plane_V2, share = principal_plane(run.model.parameters["embedding"].numpy())
    V = len(plane_V2)
    train, _ = token_windows.load(WINDOWS / "train")
    labels = [run.tokenizer.label(token) for token in range(V)]
    return embedding_map(plane_V2, share, labels, np.bincount(train.targets(), minlength=V))
