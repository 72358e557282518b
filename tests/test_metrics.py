import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural_ngram.evaluation.metrics import bits_per_byte, mean_loss, perplexity


@pytest.mark.parametrize("outcomes", [1, 2, 27, 16_383])
def test_the_perplexity_of_a_uniform_choice_is_the_number_of_outcomes(outcomes):
    assert perplexity(math.log(outcomes)) == pytest.approx(outcomes, rel=1e-12)


def test_perplexity_overflows_to_infinity_only_where_a_float_does():
    assert perplexity(709.0) == pytest.approx(8.218407461554972e307, rel=1e-12)
    assert perplexity(710.0) == math.inf
    assert perplexity(math.inf) == math.inf


def test_the_perplexity_of_no_number_is_no_number():
    assert math.isnan(perplexity(math.nan))


@pytest.mark.parametrize(("symbols", "bits"), [(2, 1), (16, 4), (256, 8)])
def test_a_uniform_choice_for_each_byte_costs_its_logarithm_to_base_two(symbols, bits):
    scored = 1000
    assert bits_per_byte(scored * math.log(symbols), scored) == pytest.approx(bits, rel=1e-12)


@given(st.floats(0, 1e9), st.integers(1, 10**9), st.integers(1, 8))
def test_bits_per_byte_depends_on_bytes_not_on_how_they_are_cut_into_tokens(nats, size, parts):
    together = sum(bits_per_byte(nats / parts, size) for _ in range(parts))
    assert together == pytest.approx(bits_per_byte(nats, size), rel=1e-9)
    assert together == pytest.approx(nats * math.log2(math.e) / size, rel=1e-9)


def test_no_bytes_have_no_bits():
    assert math.isnan(bits_per_byte(3.0, 0))


def test_the_mean_loss_of_a_fair_byte_is_eight_bits():
    assert mean_loss(np.full(10, -math.log(256)), scored_bytes=10) == {
        "loss_nats": pytest.approx(math.log(256)),
        "perplexity": pytest.approx(256),
        "bits_per_byte": pytest.approx(8),
        "tokens": 10,
    }


def test_what_is_not_finite_is_left_out():
    assert mean_loss(np.array([-1000.0]), scored_bytes=0) == {"loss_nats": 1000.0, "tokens": 1}
