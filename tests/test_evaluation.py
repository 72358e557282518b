"""Where a loss comes from."""

import numpy as np
import pytest
import torch

from neural_ngram.evaluation.decomposition import (
    compared,
    decomposition,
    few,
    gap_cause,
    interpolations,
    logit_rank,
)
from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import initialise
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import ModelSettings


def test_two_sure_models_that_disagree_lose_ln_2_when_mixed():
    model, baseline = np.log([1.0, 1e-300]), np.log([1e-300, 1.0])
    mixed = interpolations(model, baseline)
    assert mixed["equal"]["loss_nats"] == pytest.approx(np.log(2))
    assert mixed["tuned"]["model_weight"] == pytest.approx(0.5)


def test_a_useless_rival_gets_no_weight():
    mixed = interpolations(np.log([0.5, 0.5]), np.log([0.1, 0.2]))
    assert mixed["tuned"] == {
        "loss_nats": pytest.approx(np.log(2)),
        "model_weight": pytest.approx(1.0),
    }


def test_a_weight_from_elsewhere_is_not_tuned_again():
    mixed = interpolations(np.log([0.5, 0.5]), np.log([0.1, 0.2]), weight=0.75)
    expected = -np.log([0.75 * 0.5 + 0.25 * 0.1, 0.75 * 0.5 + 0.25 * 0.2]).mean()
    assert mixed["tuned"] == {"loss_nats": pytest.approx(expected), "model_weight": 0.75}


@pytest.fixture
def parts():
    shape = Architecture(
        vocabulary_size=12,
        context_length=1,
        settings=ModelSettings(embedding_width=3, hidden="none"),
    )
    mixed = {"equal": {"loss_nats": 1.4}, "tuned": {"loss_nats": 1.35, "model_weight": 0.7}}
    figures = {
        "train": {"loss_nats": 1.25},
        "validation": {"loss_nats": 1.5},
        "interpolated": mixed,
    }
    entropies = {"k0": {"entropy_nats": 2.0}, "k1": {"entropy_nats": 0.5}}
    baseline = {"validation": {"loss_nats": 1.75}}
    model = initialise(shape, SplitMix64(1), torch.float32)
    return decomposition(model, figures, {"oracle": entropies, "kneser_ney": baseline})


def test_floor_excess_and_gap_add_up_to_the_validation_loss(parts):
    assert (parts.floor, parts.excess, parts.generalization_gap) == (0.5, 0.75, 0.25)
    assert parts.model == parts.floor + parts.excess + parts.generalization_gap == 1.5
    assert (parts.baseline, parts.equally_interpolated, parts.interpolated) == (1.75, 1.4, 1.35)


def test_the_rows_of_a_table_have_a_name_a_size_and_a_meaning(parts):
    assert {each.part: each.nats for each in parts.all} == {
        "floor": 0.5,
        "excess training loss": 0.75,
        "generalization gap": 0.25,
        "model": 1.5,
        "Kneser-Ney": 1.75,
        "equal-weight interpolation": 1.4,
        "tuned interpolation": 1.35,
    }
    meanings = {each.part: each.meaning for each in parts.all}
    assert meanings["excess training loss"] == "limited by capacity or optimisation"
    assert meanings["tuned interpolation"] == "model weight 0.70, tuned on validation"


def test_experiments_are_compared_by_few_figures(parts):
    scored = {"loss_nats": 1.5, "perplexity": 4.48, "accuracy": 0.2, "tokens": 7}
    figures = {"train": {**scored, "loss_nats": 1.25}, "validation": scored, "gap": {"x": 1.0}}
    wanted = {
        "train": {"loss_nats": 1.25},
        "validation": {"loss_nats": 1.5, "perplexity": 4.48, "accuracy": 0.2},
        "floor": {"loss_nats": 0.5},
        "kneser_ney": {"loss_nats": 1.75},
        "interpolated": {"loss_nats": 1.35},
    }
    assert compared(figures, parts) == wanted
    assert few({**scored, "evaluation": 2}) == wanted["validation"]


@pytest.mark.parametrize(
    ("context", "options", "expected"),
    [
        (1, {"embedding_width": 3, "hidden": "none"}, {"rank": 3, "rank_bound": 3}),
        (
            1,
            {"embedding_width": 3, "hidden": "tanh", "hidden_width": 5},
            {"rank": 5, "rank_bound": 5},
        ),
        (1, {"embedding_width": 40, "hidden": "none"}, {"rank": 12, "rank_bound": 12}),
        (2, {"embedding_width": 3, "hidden": "none"}, None),
    ],
)
def test_the_rank_of_a_bigram_table_is_bounded_by_the_width(context, options, expected):
    shape = Architecture(
        vocabulary_size=12, context_length=context, settings=ModelSettings(**options)
    )
    assert logit_rank(initialise(shape, SplitMix64(1), torch.float32)) == expected


@pytest.mark.parametrize(
    ("width", "told"), [(3, "capacity"), (10, "capacity"), (11, "optimisation, not capacity")]
)
def test_widths_that_allow_any_table_leave_nothing_to_blame_but_training(width, told):
    settings = ModelSettings(embedding_width=width, hidden="none")
    shape = Architecture(vocabulary_size=12, context_length=1, settings=settings)
    model = initialise(shape, SplitMix64(1), torch.float32)
    assert gap_cause(model, logit_rank(model)).startswith(told)
