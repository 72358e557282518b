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
from neural_ngram.stages import MODEL, TOKENIZER, TRAINING, WINDOWS, parameters, run, run_name, say
from neural_ngram.stages.progress import progress
from neural_ngram.tracking import MODEL_TAG, Run, start_run
from neural_ngram.training import Record, train
from neural_ngram.vectors import read_word2vec


def main(settings: Settings) -> None:
    """Train, save weights and curves, log a run."""
    torch.set_num_threads(settings.training.threads)
    loaded = {name: token_windows.load(WINDOWS / name) for name in ("train", "validation")}
    windows = {name: part for name, (part, _) in loaded.items()}
    origins = {name: origin for name, (_, origin) in loaded.items()}
    architecture = models.Architecture(
        vocabulary_size=origins["train"]["vocabulary_size"],
        context_length=windows["train"].context_length,
        settings=settings.model,
    )
    dtype = getattr(torch, settings.training.dtype)
    model = models.initialise(architecture, SplitMix64(settings.training.seed), dtype)
    _place_pretrained(model, settings.model)
    count = models.parameter_count(architecture)
    say(f"{count:,} parameters, {len(windows['train']):,} windows of train")
    with start_run(run_name(settings), parameters(settings) | {"parameters": count}) as tracked:
        for name, origin in origins.items():
            documents = WINDOWS / name
            tracked.dataset(name, origin["documents_sha256"], documents)
        with progress(settings.training.max_steps) as watch:
            record = train(model, windows, settings.optimizer, settings.training, watch)
        hashes = ("tokenizer_sha256", "documents_sha256")
        models.save(model, MODEL, {key: origins["train"][key] for key in hashes})
        if record.kept_step < settings.training.max_steps:
            say(f"kept the weights of step {record.kept_step:,}, the best on validation")
        _write_curves(record)
        _log(tracked, record, origins)


def _place_pretrained(model: models.Model, settings: ModelSettings) -> None:
    if settings.pretrained_embedding is None:
        return
    tokens = tokenizers.load(TOKENIZER).tokens
    wanted = {token: identifier for identifier, token in enumerate(tokens)}
    ids, vectors = read_word2vec(Path(settings.pretrained_embedding), wanted)
    models.place_embedding(model, ids, vectors)
    say(f"{len(ids):,} of {len(tokens):,} embeddings from {settings.pretrained_embedding}")


def _write_curves(record: Record) -> None:
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
