"""Batches of a whole partition."""

from itertools import islice

import numpy as np
import torch

from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import initialise
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import ModelSettings, TrainingSettings
from neural_ngram.tokens.windows import Windows
from neural_ngram.training.batches import Batches


def test_a_sequential_batch_of_everything_is_gathered_once_and_holds_every_window():
    tokens = np.tile(np.arange(5), 40)
    windows = Windows(tokens=tokens, offsets=np.array([0, len(tokens)]), context_length=1)
    shape = Architecture(vocabulary_size=5, context_length=1, settings=ModelSettings(hidden="none"))
    model = initialise(shape, SplitMix64(1), torch.float64)
    settings = TrainingSettings(batch_size=1000, sampling="sequential")
    first, second = islice(Batches(model, windows, settings), 2)
    assert first is second
    assert len(first.flat_targets) == len(windows)
