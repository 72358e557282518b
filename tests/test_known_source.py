"""Estimator, baseline and trained model against a source whose entropies are known exactly."""

import math

import numpy as np
import pytest
import torch
from builders import windows_over

from neural_ngram.corpus.synthetic import MarkovSource
from neural_ngram.evaluation.scoring import score
from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import initialise
from neural_ngram.ngram.entropy import conditional_entropies
from neural_ngram.ngram.kneser_ney import KneserNey
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import ModelSettings, OptimizerSettings, TrainingSettings
from neural_ngram.tokens.windows import Windows
from neural_ngram.training.loop import train

ALPHABET = "abcd"


@pytest.fixture(scope="module")
def source() -> MarkovSource:
    return MarkovSource.draw(
        np.random.default_rng(0), alphabet=ALPHABET, order=2, concentration=0.5
    )


@pytest.fixture(scope="module")
def windows(source: MarkovSource) -> dict[str, Windows]:
    generator = np.random.default_rng(1)

    def drawn(count: int) -> Windows:
        texts = source.documents(generator, count=count, length=10_000)
        return windows_over([[ALPHABET.index(c) for c in text] for text in texts], 2, len(ALPHABET))

    return {"train": drawn(40), "validation": drawn(10)}


def sampling_error(log_probabilities: np.ndarray) -> float:
    return float(log_probabilities.std() / math.sqrt(len(log_probabilities)))


def test_the_estimator_finds_the_entropy_of_every_order(source, windows):
    found = conditional_entropies(windows["train"])
    for estimate, known in zip(found, source.conditional_entropies(), strict=True):
        assert estimate.miller_madow_nats == pytest.approx(known, abs=0.01)


def test_the_rival_comes_to_the_entropy_rate_and_not_below(source, windows):
    baseline = KneserNey.fit(windows["train"], vocabulary_size=len(ALPHABET), order=3)
    scored = baseline.log_probabilities(windows["validation"])
    assert source.entropy_rate - 4 * sampling_error(scored) < -scored.mean()
    assert -scored.mean() < source.entropy_rate + 0.01


def test_a_trained_model_comes_within_a_hundredth_of_the_entropy_rate_and_not_below(
    source, windows
):
    settings = ModelSettings(embedding_width=8, hidden_width=32)
    architecture = Architecture(vocabulary_size=len(ALPHABET), context_length=2, settings=settings)
    model = initialise(architecture, SplitMix64(5), torch.float32)
    train(
        model,
        windows,
        OptimizerSettings(learning_rate=0.01, schedule="cosine"),
        TrainingSettings(batch_size=1024, max_steps=1500, evaluate_every=1500),
    )
    scored = score(model, windows["validation"], batch_size=4096).log_probabilities
    assert source.entropy_rate - 4 * sampling_error(scored) < -scored.mean()
    assert -scored.mean() < source.entropy_rate + 0.01
