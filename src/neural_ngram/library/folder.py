"""A model in a folder: written by `save`, by the pipeline, or packaged for MLflow.

model.safetensors, .sha256   the network
tokenizer.json
kneser_ney.safetensors       the baseline
fit.json                     figures, sampling settings, the hash of the baseline; written last
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from neural_ngram.artifacts import read_json, sha256_of_file, write_json
from neural_ngram.errors import ArtifactError, TrackingError
from neural_ngram.generation import trained
from neural_ngram.library.model import LanguageModel
from neural_ngram.model import storage
from neural_ngram.ngram.kneser_ney import KneserNey
from neural_ngram.ngram.storage import load_kneser_ney, save_kneser_ney
from neural_ngram.settings import GenerationSettings, read_group
from neural_ngram.tokens import tokenizer as tokenizers

__all__ = ["load", "save"]

MODEL, COUNTS, RECORD = "model.safetensors", "kneser_ney.safetensors", "fit.json"
SCHEMES = ("models:/", "runs:/")


def save(model: LanguageModel, folder: Path) -> Path:
    """Write the four files; without its record, which comes last, the folder does not load.

    Raises ArtifactError when one cannot be written.
    """
    try:
        (folder / RECORD).unlink(missing_ok=True)
    except OSError as problem:
        raise ArtifactError(f"{folder} cannot be written ({problem}); choose another") from problem
    sha256 = tokenizers.save(model.tokenizer, folder)
    origin = {**model.trained.origin, "tokenizer_sha256": sha256}
    storage.save(model.trained.model, folder / MODEL, origin)
    (folder / COUNTS).unlink(missing_ok=True)
    if model.counts is not None:
        save_kneser_ney(model.counts, folder / COUNTS)
    record = {
        "figures": model.figures,
        "generation": asdict(model.generation),
        "model_sha256": sha256_of_file(folder / MODEL),
        "kneser_ney_sha256": sha256_of_file(folder / COUNTS) if model.counts else None,
    }
    write_json(folder / RECORD, record)
    return folder


def load(source: str | Path) -> LanguageModel:
    """The model of a folder, or of MLflow's registry.

    source: a folder that `save` wrote; `artifacts` of a project whose pipeline has run; a folder
    that MLflow serves; or `models:/name@alias`, `models:/name/version`, found in the store of the
    project in the working directory or of `MLFLOW_TRACKING_URI`. What MLflow keeps has no baseline.

    Raises ArtifactError when there is no model, a file is damaged or files do not belong together,
    TrackingError when MLflow does not find it.
    """
    if isinstance(source, str) and source.startswith(SCHEMES):
        return _of_registry(source)
    folder = Path(source)
    if (folder / RECORD).exists():
        return _of_saved(folder)
    if (folder / "model" / MODEL).exists() and (folder / "tokenizer/tokenizer.json").exists():
        return _of_pipeline(folder)
    for place in (folder, folder / "model"):
        packaged = (place / MODEL).exists() and (place / "tokenizer.json").exists()
        if packaged and not (place / COUNTS).exists():
            return LanguageModel(trained.load(place / MODEL, place))
    raise ArtifactError(
        f"{folder} holds no whole model; give a folder that `save` wrote, the artifacts of a "
        "project in which `dvc repro` has run, or models:/NAME@ALIAS"
    )


def _of_saved(folder: Path) -> LanguageModel:
    record = read_json(folder / RECORD)
    counts = None
    if record["kneser_ney_sha256"] is not None:
        if sha256_of_file(folder / COUNTS) != record["kneser_ney_sha256"]:
            raise ArtifactError(
                f"{folder / COUNTS} is not the one that {RECORD} records; save the model again"
            )
        counts = load_kneser_ney(folder / COUNTS)
    known = trained.load(folder / MODEL, folder, record["model_sha256"])
    asked = read_group(GenerationSettings, record["generation"])
    return _fitting(LanguageModel(known, counts, record["figures"], asked), folder)


def _of_pipeline(folder: Path) -> LanguageModel:
    """The last run's; what was measured of another model is left out."""
    known = trained.load(folder / "model" / MODEL, folder / "tokenizer")
    counts, figures = None, dict[str, Any]()
    evaluation, oracle = folder / "evaluation/figures.json", folder / "oracle"
    if evaluation.exists() and (oracle / COUNTS).exists():
        measured = read_json(evaluation)
        if measured["model_sha256"] == sha256_of_file(folder / "model" / MODEL):
            counts = load_kneser_ney(oracle / COUNTS)
            figures = {**measured, **read_json(oracle / "figures.json")}
    return _fitting(LanguageModel(known, counts, figures), folder)


def _fitting(model: LanguageModel, folder: Path) -> LanguageModel:
    """The same model; raises ArtifactError when its counts are over other tokens."""
    counts: KneserNey | None = model.counts
    tokenizer = model.tokenizer
    if counts and (counts.vocabulary_size, counts.bos) != (
        tokenizer.vocabulary_size,
        tokenizer.bos,
    ):
        raise ArtifactError(
            f"the baseline in {folder} is over {counts.vocabulary_size:,} tokens, the model over "
            f"{tokenizer.vocabulary_size:,}; run `dvc repro`, or save the model again"
        )
    return model


def _of_registry(address: str) -> LanguageModel:
    """A copy that MLflow makes, read before it is deleted."""
    from tempfile import TemporaryDirectory  # noqa: PLC0415

    try:
        from neural_ngram.tracking.registry import download  # noqa: PLC0415 - imports MLflow
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("neural_ngram"):
            raise
        raise TrackingError(
            f"{address} needs {missing.name}, which is not installed; pip install "
            "'neural-ngram[pipeline]', or load a folder"
        ) from None
    with TemporaryDirectory() as copy:
        return load(download(address, Path(copy)))
