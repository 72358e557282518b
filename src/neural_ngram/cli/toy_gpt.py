"""Exporting the last run in the format of the Toy-GPT series."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from neural_ngram.artifacts import read_csv, read_table, sha256_of_file, write_csv, write_json
from neural_ngram.cli.last_run import current_settings, last_run
from neural_ngram.export.toy_gpt import (
    embedding_table,
    meta,
    training_log,
    vocabulary_table,
    weight_table,
)
from neural_ngram.pipeline.project import RAW, SPLITS, TRAINING, WINDOWS
from neural_ngram.settings import Settings
from neural_ngram.tokens import windows as token_windows

__all__ = ["export_toy_gpt"]


def export_toy_gpt(folder: Path) -> None:
    """Write the four artifacts and the training log into a folder."""
    settings, run = current_settings(), last_run()
    windows, _ = token_windows.load(WINDOWS / "train")
    tokens = run.tokenizer.tokens
    frequencies = np.bincount(windows.tokens, minlength=len(tokens))
    weights = weight_table(run.model, tokens)
    log = _log(settings, len(windows))
    write_csv(folder / "01_vocabulary.csv", vocabulary_table(tokens, frequencies))
    write_csv(folder / "02_model_weights.csv", weights)
    write_csv(folder / "03_token_embeddings.csv", embedding_table(run.model, tokens))
    write_csv(folder / "train_log.csv", log)
    described = meta(settings, _corpus(settings), vocabulary=len(tokens), epochs=len(log))
    write_json(folder / "00_meta.json", described)
    print(f"{folder}: {len(tokens):,} tokens, {len(log)} epochs, in the format of Toy-GPT")


def _log(settings: Settings, windows: int) -> pd.DataFrame:
    losses = read_csv(TRAINING / "batches.csv")["batch_loss_nats"].to_numpy()
    evaluations = read_csv(TRAINING / "evaluations.csv")
    accuracies = dict(zip(evaluations["step"], evaluations["train_accuracy"], strict=True))
    return training_log(losses, accuracies, -(-windows // settings.training.batch_size))


def _corpus(settings: Settings) -> dict[str, Any]:
    """The corpus if it was read from one file, else the train documents."""
    if settings.corpus.path is not None:
        path = Path(settings.corpus.path)
    else:
        path = next(iter(sorted((RAW / settings.corpus.name).glob("*"))), SPLITS)
    if path.is_file():
        text, sha256 = path.read_text(encoding="utf-8"), sha256_of_file(path)
    else:
        train = SPLITS / "train.parquet"
        text, sha256 = "\n".join(read_table(train)["text"]), sha256_of_file(train)
    lines = sum(bool(line.strip()) for line in text.splitlines())
    return {
        "path": path.as_posix(),
        "filename": path.name,
        "sha256": sha256,
        "num_lines": lines,
        "num_chars": len(text),
    }
