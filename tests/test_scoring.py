import math

import numpy as np
import pytest
import torch
from builders import fresh_model, windows_over

from neural_ngram.errors import ModelError
from neural_ngram.evaluation.scoring import score
from neural_ngram.model.network import Model, logits
from neural_ngram.tokens.windows import Windows, join


def windows(documents: list[list[int]], vocabulary: int, context_length: int = 2) -> Windows:
    return windows_over(documents, context_length, vocabulary, pad=0)


def random_windows(vocabulary: int, tokens: int) -> Windows:
    draws = np.random.default_rng(5)
    return windows([draws.integers(0, vocabulary, tokens).tolist() for _ in range(3)], vocabulary)


def fresh(vocabulary: int, context_length: int = 2) -> Model:
    return fresh_model(vocabulary, context_length, seed=2, embedding_width=4, hidden_width=5)


def row_by_row(model: Model, windows: Windows) -> list[float]:
    rows = zip(windows.contexts().tolist(), windows.targets().tolist(), strict=True)
    return [
        float(logits(model, torch.tensor([context])).log_softmax(dim=1)[0, target])
        for context, target in rows
    ]


@pytest.mark.parametrize(("vocabulary", "tokens"), [(4, 300), (60, 40)])
@pytest.mark.parametrize("batch_size", [1, 7, 4096])
def test_every_window_is_scored_as_if_alone(vocabulary, tokens, batch_size):
    """With 4 tokens most contexts repeat, with 60 hardly any does."""
    model, text = fresh(vocabulary), random_windows(vocabulary, tokens)
    scores, expected = score(model, text, batch_size=batch_size), row_by_row(model, text)
    np.testing.assert_allclose(scores.log_probabilities, expected, rtol=1e-12)
    assert scores.loss_nats == pytest.approx(-sum(expected) / len(expected), rel=1e-12)
    assert scores.tokens == len(text)


@pytest.mark.parametrize("vocabulary", [4, 60])
def test_the_most_probable_token_its_probability_and_whether_it_came(vocabulary):
    model, text = fresh(vocabulary), random_windows(vocabulary, 200)
    every = logits(model, torch.from_numpy(text.contexts().astype(np.int64))).softmax(dim=1)
    hits = every.argmax(dim=1).numpy() == text.targets()
    scores = score(model, text, batch_size=64)
    assert scores.hits.tolist() == hits.tolist()
    assert scores.accuracy == pytest.approx(hits.mean())
    np.testing.assert_allclose(scores.confidences, every.max(dim=1).values.numpy(), rtol=1e-12)


def test_equal_logits_give_the_loss_of_a_fair_die_and_the_lowest_token():
    model, text = fresh(6), windows([[0, 1, 2, 3, 4, 5]], 6)
    model.flat.zero_()
    scores = score(model, text, batch_size=2)
    assert scores.loss_nats == pytest.approx(math.log(6))
    assert scores.hits.tolist() == [True, False, False, False, False, False]
    np.testing.assert_allclose(scores.confidences, 1 / 6)


@pytest.mark.parametrize("vocabulary", [4, 60])
def test_partitions_scored_as_one_get_the_scores_of_each_alone(vocabulary):
    model, parts = fresh(vocabulary), [random_windows(vocabulary, size) for size in (90, 40)]
    whole = score(model, join(parts), batch_size=16)
    for scores, part in zip(whole.parts([len(part) for part in parts]), parts, strict=True):
        alone = score(model, part, batch_size=16)
        np.testing.assert_allclose(scores.log_probabilities, alone.log_probabilities, rtol=1e-12)
        np.testing.assert_allclose(scores.confidences, alone.confidences, rtol=1e-12)
        assert scores.hits.tolist() == alone.hits.tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (windows([[1, 2, 9]], 10), "token 9 of the windows lies outside"),
        (windows([[1, 2, 3]], 5, context_length=3), "contexts of 3 tokens but the model reads 2"),
        (
            Windows(tokens=np.zeros(2, np.uint8), offsets=np.array([0, 2]), context_length=2),
            "no window",
        ),
    ],
)
def test_windows_of_another_model_are_refused(text, message):
    with pytest.raises(ModelError, match=message):
        score(fresh(5), text, batch_size=4)
