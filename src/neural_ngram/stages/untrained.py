"""The model that a training starts from."""

from pathlib import Path
from typing import Any

import torch

from neural_ngram import model as models
from neural_ngram import tokenizer as tokenizers
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import ModelSettings, Settings
from neural_ngram.stages import TOKENIZER, say
from neural_ngram.vectors import read_word2vec
from neural_ngram.windows import Windows

__all__ = ["architecture_of", "untrained"]


def architecture_of(
    settings: Settings, train: Windows, origin: dict[str, Any]
) -> models.Architecture:
    """The architecture for the windows of train and the description that they were saved with."""
    vocabulary_size: int = origin["vocabulary_size"]
    return models.Architecture(
        vocabulary_size=vocabulary_size,
        context_length=train.context_length,
        settings=settings.model,
    )


def untrained(architecture: models.Architecture, settings: Settings) -> models.Model:
    """Fresh weights, with pretrained embeddings where they are asked for."""
    dtype = getattr(torch, settings.training.dtype)
    model = models.initialise(architecture, SplitMix64(settings.training.seed), dtype)
    _place_pretrained(model, settings.model)
    return model


def _place_pretrained(model: models.Model, settings: ModelSettings) -> None:
    if settings.pretrained_embedding is None:
        return
    tokens = tokenizers.load(TOKENIZER).tokens
    wanted = {token: identifier for identifier, token in enumerate(tokens)}
    ids, vectors = read_word2vec(Path(settings.pretrained_embedding), wanted)
    models.place_embedding(model, ids, vectors)
    say(f"{len(ids):,} of {len(tokens):,} embeddings from {settings.pretrained_embedding}")
