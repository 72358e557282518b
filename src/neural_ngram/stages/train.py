"""train: a model from the windows of train; validation is only scored."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from neural_ngram import model as models
from neural_ngram import tokenizer as tokenizers
from neural_ngram import windows as token_windows
from neural_ngram.artifacts import sha256_of_file, write_csv
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import ModelSettings, Settings
from neural_ngram.stages import (
    MODEL,
    TOKENIZER,
    TRAINING,
    WINDOWS,
    cache,
    code_sha256,
    parameters,
    run,
    run_name,
    say,
)
from neural_ngram.stages.progress import progress
from neural_ngram.tracking import MODEL_TAG, Run, start_run
from neural_ngram.training import Checkpoints, Record, resume
from neural_ngram.vectors import read_word2vec


def main(settings: Settings) -> None:
    """Train, save weights and curves, log a run; go on where an interrupted training stopped."""
    torch.set_num_threads(settings.training.threads)
    loaded = {name: token_windows.load(WINDOWS / name) for name in ("train", "validation")}
    windows = {name: part for name, (part, _) in loaded.items()}
    origins = {name: origin for name, (_, origin) in loaded.items()}
    model = _fresh_model(settings, windows["train"], origins["train"]["vocabulary_size"])
    count = models.parameter_count(model.architecture)
    say(f"{count:,} parameters, {len(windows['train']):,} windows of train")
    described = parameters(settings) | {"parameters": count}
    checkpoints = Checkpoints(cache() / "checkpoints", _identity(settings), say)
    with checkpoints.lock():
        with start_run(run_name(settings), described, checkpoints.key) as tracked:
            for name, origin in origins.items():
                tracked.dataset(name, origin["documents_sha256"], WINDOWS / name)
            with progress(settings.training.max_steps) as watch:
                record = resume(model, windows, settings, watch, checkpoints)
            _save(model, record, origins["train"])
            _log(tracked, record, origins)
        checkpoints.remove()


def _fresh_model(
    settings: Settings, windows: token_windows.Windows, vocabulary_size: int
) -> models.Model:
    architecture = models.Architecture(
        vocabulary_size=vocabulary_size,
        context_length=windows.context_length,
        settings=settings.model,
    )
    dtype = getattr(torch, settings.training.dtype)
    model = models.initialise(architecture, SplitMix64(settings.training.seed), dtype)
    _place_pretrained(model, settings.model)
    return model


def _identity(settings: Settings) -> dict[str, dict[str, Any]]:
    """All that the weights and curves of a training depend on."""
    files = [file for folder in ("train", "validation") for file in (WINDOWS / folder).iterdir()]
    pretrained = settings.model.pretrained_embedding
    files += [Path(pretrained)] if pretrained else []
    return {
        "settings": parameters(settings),
        "data": {file.as_posix(): sha256_of_file(file) for file in sorted(files)},
        "code": {"neural_ngram": code_sha256(), "torch": torch.__version__},
    }


def _place_pretrained(model: models.Model, settings: ModelSettings) -> None:
    if settings.pretrained_embedding is None:
        return
    tokens = tokenizers.load(TOKENIZER).tokens
    wanted = {token: identifier for identifier, token in enumerate(tokens)}
    ids, vectors = read_word2vec(Path(settings.pretrained_embedding), wanted)
    models.place_embedding(model, ids, vectors)
    say(f"{len(ids):,} of {len(tokens):,} embeddings from {settings.pretrained_embedding}")


def _save(model: models.Model, record: Record, origin: dict[str, Any]) -> None:
    models.save(
        model, MODEL, {key: origin[key] for key in ("tokenizer_sha256", "documents_sha256")}
    )
    if record.kept_step < len(record.batch_losses):
        say(f"kept the weights of step {record.kept_step:,}, the best on validation")
    write_csv(TRAINING / "objectives.csv", pd.DataFrame(map(asdict, record.objectives)))
    losses = pd.DataFrame({"batch_loss_nats": record.batch_losses})
    losses.insert(0, "step", range(1, len(losses) + 1))
    write_csv(TRAINING / "batches.csv", losses)


def _log(tracked: Run, record: Record, origins: dict[str, dict[str, Any]]) -> None:
    tracked.tags(
        {MODEL_TAG: sha256_of_file(MODEL)}
        | {"tokenizer_sha256": origins["train"]["tokenizer_sha256"]}
        | {f"{name}_documents_sha256": o["documents_sha256"] for name, o in origins.items()}
    )
    for step, loss in enumerate(record.batch_losses, start=1):
        tracked.metric("batch.loss_nats", loss, step)
    for objective in record.objectives:
        tracked.metric("train.loss_nats", objective.train_loss_nats, objective.step)
        tracked.metric("validation.loss_nats", objective.validation_loss_nats, objective.step)
    tracked.artifact(MODEL, "model")
    tracked.artifact(TRAINING, "training")


if __name__ == "__main__":
    run(main)
