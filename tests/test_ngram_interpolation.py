from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neural_ngram.errors import ModelError
from neural_ngram.ngram.interpolation import interpolated_loss, tuned_weight

log_probabilities = st.lists(
    st.tuples(st.floats(-30, 0), st.floats(-30, 0)), min_size=1, max_size=30
).map(lambda pairs: np.array(pairs).T)


def test_half_and_half_is_the_mean_of_the_probabilities():
    first, second = np.log([0.5, 0.1]), np.log([0.25, 0.3])
    expected = -(log(0.375) + log(0.2)) / 2
    assert interpolated_loss(first, second) == pytest.approx(expected)


def test_all_the_weight_on_one_model_is_that_model_even_where_the_other_has_no_hope():
    first, nothing = np.log([0.5, 0.1]), np.array([-np.inf, -np.inf])
    assert interpolated_loss(first, nothing, weight=1) == pytest.approx(-first.mean())
    assert interpolated_loss(nothing, first, weight=0) == pytest.approx(-first.mean())
    assert interpolated_loss(nothing, first, weight=1) == np.inf


def test_weight_tuned_by_hand():
    """p_first = ¾ ¾ ¾ ¼ and p_second = ¼ ¼ ¼ ¾ mix to ¼ + w/2 three times and ¾ − w/2 once.

    The derivative vanishes where 3 (¾ − w/2) = ¼ + w/2: at w = 1, the first model alone.
    """
    first, second = np.log([0.75, 0.75, 0.75, 0.25]), np.log([0.25, 0.25, 0.25, 0.75])
    assert tuned_weight(first, second).weight == pytest.approx(1)
    balanced = tuned_weight(np.log([0.9, 0.1, 0.9, 0.1]), np.log([0.1, 0.9, 0.1, 0.9]))
    assert balanced.weight == pytest.approx(0.5)
    assert balanced.loss_nats == pytest.approx(log(2))


def test_a_window_that_neither_model_can_predict_does_not_sway_the_weight():
    first, second = np.log([0.9, 0.1]), np.log([0.1, 0.9])
    hopeless = np.array([-np.inf])
    found = tuned_weight(np.append(first, hopeless), np.append(second, hopeless))
    assert found.weight == pytest.approx(0.5)
    assert found.loss_nats == np.inf


@settings(deadline=None)
@given(log_probabilities, st.floats(0, 1))
def test_no_weight_beats_the_tuned_one(pair, weight):
    first, second = pair
    tuned = tuned_weight(first, second)
    assert 0 <= tuned.weight <= 1
    assert tuned.loss_nats == interpolated_loss(first, second, weight=tuned.weight)
    assert tuned.loss_nats <= interpolated_loss(first, second, weight=weight) + 1e-12


@settings(deadline=None)
@given(log_probabilities)
def test_a_mixture_is_never_worse_than_its_better_half_by_more_than_ln_2(pair):
    first, second = pair
    assert interpolated_loss(first, second) <= min(-first.mean(), -second.mean()) + log(2) + 1e-12


@pytest.mark.parametrize(
    ("first", "second"),
    [(np.zeros(2), np.zeros(3)), (np.zeros(0), np.zeros(0)), (np.zeros((2, 2)), np.zeros((2, 2)))],
    ids=["lengths differ", "empty", "two dimensions"],
)
def test_log_probabilities_that_do_not_belong_together_are_refused(first, second):
    for mix in (interpolated_loss, tuned_weight):
        with pytest.raises(ModelError, match="do not match"):
            mix(first, second)


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
def test_a_weight_outside_0_and_1_is_refused(weight):
    with pytest.raises(ModelError, match="but must be from 0 to 1"):
        interpolated_loss(np.zeros(1), np.zeros(1), weight=weight)
