"""The learning-rate range test."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from neural_ngram.errors import ConfigurationError
from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import initialise
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import ModelSettings, OptimizerSettings, Settings, TrainingSettings
from neural_ngram.tokens.windows import Windows
from neural_ngram.training.range_test import RangeTest, range_test

STREAM = np.tile(np.arange(12), 60)
WINDOWS = Windows(tokens=STREAM, offsets=np.array([0, len(STREAM)]), context_length=2)
SETTINGS = Settings(
    model=ModelSettings(embedding_width=4, hidden="tanh", hidden_width=8),
    optimizer=OptimizerSettings(name="sgd"),
    training=TrainingSettings(batch_size=32),
)


def sweep(**options) -> RangeTest:
    shape = Architecture(vocabulary_size=12, context_length=2, settings=SETTINGS.model)
    model = initialise(shape, SplitMix64(1), torch.float32)
    return range_test(model, WINDOWS, SETTINGS, **options)


def test_the_rate_grows_exponentially_and_the_suggestion_lies_where_the_loss_falls():
    swept = sweep(bounds=(1e-4, 100.0), steps=200)
    np.testing.assert_allclose(np.diff(np.log(swept.rates)), np.log(1e6) / 199)
    assert len(swept.rates) == len(swept.losses) == len(swept.smoothed)
    assert 0.01 < swept.suggestion < 30
    assert swept.losses[0] == pytest.approx(np.log(12), abs=0.2)


def test_a_sweep_ends_when_the_loss_explodes():
    swept = sweep(bounds=(1.0, 1e9), steps=100)
    assert len(swept.rates) < 100
    assert np.isfinite(swept.losses).all()


@pytest.mark.parametrize(("bounds", "steps"), [((1.0, 0.1), 100), ((0.0, 1.0), 100), ((1, 2), 5)])
def test_an_impossible_sweep_is_refused(bounds, steps):
    with pytest.raises(ConfigurationError, match="positive and ascending"):
        sweep(bounds=bounds, steps=steps)


def test_any_model_that_can_be_trained_can_be_swept():
    for changed in ({"dropout": 0.5}, {"freeze_embedding": True}):
        settings = replace(SETTINGS, model=replace(SETTINGS.model, **changed))
        shape = Architecture(vocabulary_size=12, context_length=2, settings=settings.model)
        model = initialise(shape, SplitMix64(1), torch.float32)
        swept = range_test(model, WINDOWS, settings, bounds=(1e-3, 10.0), steps=60)
        assert swept.losses.min() < swept.losses[0] - 0.5


def test_a_sweep_that_diverges_at_once_is_refused():
    with pytest.raises(ConfigurationError, match=r"not finite after a step at the rate 1e\+38"):
        sweep(bounds=(1e38, 2e38), steps=20)
