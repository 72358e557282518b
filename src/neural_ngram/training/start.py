"""The initial model of a training."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import Model, initialise, place_embedding
from neural_ngram.model.vectors import read_word2vec
from neural_ngram.pipeline.console import say
from neural_ngram.pipeline.project import TOKENIZER
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import ModelSettings, Settings
from neural_ngram.tokens import tokenizer as tokenizers
from neural_ngram.tokens.windows import Windows

__all__ = ["architecture_of", "untrained"]


def architecture_of(settings: Settings, train: Windows, origin: dict[str, Any]) -> Architecture:
    """The architecture for the windows of train and the description that they were saved with."""
    vocabulary_size: int = origin["vocabulary_size"]
    return Architecture(
        vocabulary_size=vocabulary_size,
        context_length=train.context_length,
        settings=settings.model,
    )


def untrained(
    architecture: Architecture, settings: Settings, tokens: Sequence[str] | None = None
) -> Model:
    """Fresh weights, with pretrained embeddings if the settings ask for them.

    tokens: (V,) as the tokenizer writes them; None: those of the project's tokenizer.
    """
    dtype = getattr(torch, settings.training.dtype)
    model = initialise(architecture, SplitMix64(settings.training.seed), dtype)
    _place_pretrained(model, settings.model, tokens)
    return model


def _place_pretrained(model: Model, settings: ModelSettings, tokens: Sequence[str] | None) -> None:
    if settings.pretrained_embedding is None:
        return
    if tokens is None:
        tokens = tokenizers.load(TOKENIZER).tokens
    wanted = {token: identifier for identifier, token in enumerate(tokens)}
    ids, vectors = read_word2vec(Path(settings.pretrained_embedding), wanted)
    place_embedding(model, ids, vectors)
    say(f"{len(ids):,} of {len(tokens):,} embeddings read from {settings.pretrained_embedding}")
