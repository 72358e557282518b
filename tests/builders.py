"""Documents, windows and models, as small as a test needs them."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch

from neural_ngram.corpus.document import Document
from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import Model, initialise
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import ModelSettings
from neural_ngram.tokens.windows import Windows, build_stream


def documents(*texts: str, prefix: str = "d") -> list[Document]:
    return [Document(id=f"{prefix}{n}", text=text) for n, text in enumerate(texts, start=1)]


def windows_over(
    documents: Iterable[Sequence[int]],
    context_length: int = 2,
    vocabulary_size: int | None = None,
    pad: int | None = None,
) -> Windows:
    """The windows of encoded documents; without a vocabulary, of the smallest that holds them."""
    encoded = [np.array(ids, dtype=np.int64) for ids in documents]
    largest = max((int(ids.max(initial=0)) for ids in encoded), default=0)
    tokens, offsets = build_stream(
        encoded,
        context_length=context_length,
        vocabulary_size=vocabulary_size or 1 + max(largest, pad or 0),
        pad=pad,
    )
    return Windows(tokens=tokens, offsets=offsets, context_length=context_length, bos=pad)


def architecture(vocabulary_size: int = 5, context_length: int = 2, **settings) -> Architecture:
    return Architecture(
        vocabulary_size=vocabulary_size,
        context_length=context_length,
        settings=ModelSettings(**settings),
    )


def fresh_model(
    vocabulary_size: int = 5,
    context_length: int = 2,
    *,
    seed: int = 1,
    dtype: torch.dtype = torch.float64,
    **settings,
) -> Model:
    """An untrained model."""
    shape = architecture(vocabulary_size, context_length, **settings)
    return initialise(shape, SplitMix64(seed), dtype)


def successor_model(size: int, sureness: float, shift: int = 1) -> Model:
    """After token t comes t + shift, since the logits are a shifted identity times `sureness`."""
    model = fresh_model(size, 1, embedding_width=size, hidden="none")
    model.parameters["embedding"].copy_(torch.eye(size))
    model.parameters["output"].copy_(sureness * torch.eye(size).roll(shift, dims=1))
    return model
