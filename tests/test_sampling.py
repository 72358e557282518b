"""Drawing the next token: with the probabilities of the truncated softmax, and by the seed."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from neural_ngram.generation.sampling import Sampler, sampler_of, samplers_of, truncate
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import GenerationSettings


def test_sampling_follows_the_probabilities_and_the_seed():
    logits = np.log(np.array([0.5, 0.3, 0.2]))
    sampler = Sampler(1.0, SplitMix64(3))
    drawn = np.bincount([sampler.draw(logits) for _ in range(4000)], minlength=3) / 4000
    np.testing.assert_allclose(drawn, [0.5, 0.3, 0.2], atol=0.03)
    again = Sampler(1.0, SplitMix64(3))
    assert [again.draw(logits) for _ in range(5)] == [
        Sampler(1.0, generator).draw(logits) for generator in [SplitMix64(3)] for _ in range(5)
    ]


@pytest.mark.parametrize(
    ("top_k", "top_p", "kept"),
    [
        (None, 1.0, [0, 1, 2, 3]),
        (1, 1.0, [1]),
        (2, 1.0, [0, 1]),  # 0, 2 and 3 are equal: the lowest ID stays
        (9, 1.0, [0, 1, 2, 3]),
        (None, 0.4, [1]),  # 0.4 reaches 0.4
        (None, 0.41, [0, 1]),
        (None, 0.7, [0, 1, 2]),
        (None, 1e-9, [1]),
        (2, 0.6, [1]),  # the share counts after top-k: 0.4 of 0.6 is two thirds
        (2, 0.7, [0, 1]),
    ],
)
def test_truncation_keeps_the_heaviest_and_breaks_ties_by_id(top_k, top_p, kept):
    weights = np.array([2.0, 4.0, 2.0, 2.0])
    truncated = truncate(weights, top_k, top_p)
    assert truncated.tolist() == [w if i in kept else 0 for i, w in enumerate(weights)]


@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=9),
    st.none() | st.integers(1, 10),
    st.floats(0.01, 1),
    st.integers(0, 99),
)
def test_a_sample_is_always_one_of_the_kept(logits, top_k, top_p, seed):
    sampler = Sampler(0.7, SplitMix64(seed), top_k, top_p)
    values = np.array(logits, dtype=np.float64)
    token = sampler.draw(values)
    likelier = [v for i, v in enumerate(logits) if (-v, i) < (-logits[token], token)]
    assert top_k is None or len(likelier) < top_k
    assert sum(np.exp(np.array(likelier) / 0.7)) < top_p * sum(np.exp(values / 0.7)) + 1e-9


def test_temperature_acts_before_top_p():
    logits = np.log(np.array([0.6, 0.2, 0.2]))
    assert np.count_nonzero(Sampler(1.0, SplitMix64(1), top_p=0.55).weights(logits)) == 1
    assert np.count_nonzero(Sampler(2.0, SplitMix64(1), top_p=0.55).weights(logits)) == 2


@given(
    st.lists(st.lists(st.integers(-3, 3), min_size=5, max_size=5), min_size=1, max_size=6),
    st.sampled_from([{}, {"top_k": 2}, {"top_p": 0.6}, {"top_k": 3, "top_p": 0.8}]),
)
def test_streams_drawn_together_are_those_drawn_alone(rows, truncation):
    logits_SV = np.array(rows, dtype=np.float64)
    samplers = Sampler(0.9, SplitMix64(4), **truncation).split(len(rows))
    states_S = np.array([sampler.generator.state for sampler in samplers], dtype=np.uint64)
    drawn = Sampler(0.9, SplitMix64(4), **truncation).draw_each(
        torch.tensor(logits_SV), states_S, torch.empty(logits_SV.shape, dtype=torch.float64)
    )
    alone = [sampler.draw(row) for sampler, row in zip(samplers, logits_SV, strict=True)]
    assert drawn.tolist() == alone


def test_the_settings_say_what_draws():
    asked = GenerationSettings(temperature=0.5, top_k=7, top_p=0.9, samples=3, seed=5)
    sampler = sampler_of(asked)
    assert (sampler.temperature, sampler.top_k, sampler.top_p) == (0.5, 7, 0.9)
    seeds = [each.generator.state for each in samplers_of(asked)]
    assert len(set(seeds)) == 3
    assert seeds == [each.generator.state for each in samplers_of(asked)]
    assert sampler_of(GenerationSettings(temperature=0)) is None
