import dataclasses
import math
import os

import numpy as np
import pytest
import torch
from builders import architecture, fresh_model

from neural_ngram.errors import ConfigurationError, ModelError
from neural_ngram.model.architecture import Architecture, parameter_count, parameter_shapes
from neural_ngram.model.network import Model, initialise, logits, place_embedding, restore
from neural_ngram.model.threads import thread_count
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import TrainingSettings


def fresh(seed: int = 1, **settings) -> Model:
    return fresh_model(seed=seed, **settings)


def arrays(model: Model) -> dict[str, np.ndarray]:
    return {name: weights.numpy() for name, weights in model.parameters.items()}


def test_textbook_sizes_of_a_20_000_word_vocabulary():
    """50-dimensional embeddings, three words of context, 200 hidden units."""
    words = architecture(20_000, 3, embedding_width=50, hidden="tanh", hidden_width=200)
    sizes = {name: math.prod(shape) for name, shape in parameter_shapes(words).items()}
    assert sizes == {"embedding": 1_000_000, "hidden": 30_000, "output": 4_000_000}
    assert parameter_shapes(words)["hidden"] == (150, 200)
    assert parameter_count(words) == 5_030_000


def test_toy_gpt_has_the_published_5_488_parameters():
    toy = architecture(112, 2, embedding_width=16, hidden="none", output_bias=True)
    assert parameter_count(toy) == 5_488


def test_second_lecture_mlp_has_the_published_11_897_parameters():
    mlp = architecture(
        27, 3, embedding_width=10, hidden="tanh", hidden_width=200, hidden_bias=True,
        output_bias=True,
    )  # fmt: skip
    assert parameter_count(mlp) == 11_897


def test_all_parameters_are_views_of_one_flat_tensor():
    model = fresh(hidden="tanh", hidden_bias=True, hidden_layers=2, direct=True, output_bias=True)
    model.flat.fill_(3.0)
    assert all(bool((weights == 3).all()) for weights in model.parameters.values())


def test_xor_by_hand_weights():
    """Goodfellow, Bengio & Courville 2016, section 6.1: two rectified units."""
    settings = {
        "embedding_width": 1, "hidden": "relu", "hidden_width": 2, "hidden_bias": True,
        "output_bias": True,
    }  # fmt: skip
    model = restore(
        architecture(2, 2, **settings),
        {
            "embedding": np.array([[0.0], [1.0]]),
            "hidden": np.ones((2, 2)),
            "hidden_bias": np.array([0.0, -1.0]),
            "output": np.array([[0.0, 1.0], [0.0, -2.0]]),
            "output_bias": np.array([0.5, 0.0]),
        },
    )
    inputs = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
    assert logits(model, inputs).argmax(dim=1).tolist() == [0, 1, 1, 0]
    assert logits(model, inputs)[:, 1].tolist() == [0.0, 1.0, 1.0, 0.0]


def test_a_stack_of_layers_without_a_bend_equals_one():
    model = fresh(embedding_width=3, hidden="relu", hidden_width=4, hidden_layers=3)
    model.flat.abs_()
    weights = model.parameters
    context = torch.tensor([[0, 1], [4, 2]])
    one = weights["hidden"] @ weights["hidden_2"] @ weights["hidden_3"] @ weights["output"]
    torch.testing.assert_close(
        logits(model, context), weights["embedding"][context].flatten(1) @ one
    )


def test_direct_connections_add_a_linear_model():
    model = fresh(hidden="tanh", direct=True, output_bias=True)
    context = torch.tensor([[3, 1]])
    whole = logits(model, context)
    model.parameters["output"].zero_()
    x = model.parameters["embedding"][context].flatten(1)
    torch.testing.assert_close(logits(model, context), x @ model.parameters["direct"])
    assert not torch.equal(whole, logits(model, context))


def test_a_tied_output_scores_by_similarity_to_the_embedding():
    model = fresh(context_length=1, embedding_width=3, hidden="none", tied_output=True)
    E = model.parameters["embedding"]
    torch.testing.assert_close(logits(model, torch.arange(5)[:, None]), E @ E.t())
    assert parameter_count(model.architecture) == 15


@pytest.mark.parametrize("hidden", ["swiglu", "tanh", "relu", "sigmoid", "gelu"])
def test_depth_repeats_the_layer(hidden):
    shapes = parameter_shapes(architecture(hidden=hidden, hidden_width=7, hidden_layers=3))
    deeper = {name: shape for name, shape in shapes.items() if name.endswith(("_2", "_3"))}
    assert len(deeper) == (6 if hidden == "swiglu" else 2)
    assert set(deeper.values()) == {(7, 7)}


def test_xavier_uniform_stays_within_its_limit():
    W = fresh(embedding_width=50, hidden="tanh", hidden_width=100).parameters["hidden"]
    limit = math.sqrt(6 / 200)
    assert 0.99 * limit < float(W.abs().max()) <= limit
    assert abs(float(W.mean())) < 0.02 * limit


def test_normal_start_has_its_mean_and_deviation_and_depends_on_the_seed_alone():
    settings = {"embedding_width": 100, "hidden": "none", "initialisation": "normal"}
    first, again, other = (fresh(seed, vocabulary_size=400, **settings) for seed in (1, 1, 2))
    E = first.parameters["embedding"]
    assert abs(float(E.mean())) < 3e-4
    assert float(E.std()) == pytest.approx(0.01, rel=0.02)
    assert float((E / 0.01).pow(4).mean()) == pytest.approx(3, rel=0.1)
    assert torch.equal(first.flat, again.flat)
    assert not torch.equal(first.flat, other.flat)


def test_scaled_start_uses_the_tanh_gain_and_a_small_output():
    settings = {"hidden": "tanh", "hidden_width": 300, "initialisation": "scaled"}
    model = fresh(vocabulary_size=300, context_length=3, embedding_width=50, **settings)
    deviations = {name: float(weights.std()) for name, weights in model.parameters.items()}
    assert deviations["embedding"] == pytest.approx(1, rel=0.02)
    assert deviations["hidden"] == pytest.approx(5 / 3 / math.sqrt(150), rel=0.02)
    assert deviations["output"] == pytest.approx(0.01, rel=0.02)


@pytest.mark.parametrize("initialisation", ["normal", "scaled"])
@pytest.mark.parametrize("hidden", ["swiglu", "tanh", "none"])
def test_a_small_start_gives_every_token_the_same_chance(initialisation, hidden):
    settings = {"hidden": hidden, "initialisation": initialisation, "output_bias": True}
    model = fresh(vocabulary_size=1000, context_length=3, **settings)
    context = torch.arange(999).view(-1, 3)
    loss = -logits(model, context).log_softmax(dim=1)[:, 0].mean()
    assert float(loss) == pytest.approx(math.log(1000), abs=0.05)


def test_restore_gives_back_the_same_model():
    model = fresh(hidden="gelu", hidden_bias=True, output_bias=True)
    again = restore(model.architecture, arrays(model))
    assert torch.equal(model.flat, again.flat)
    assert again.dtype == torch.float64
    described = Architecture.from_description(model.architecture.describe())
    assert described == model.architecture


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.pop("output"), "should have embedding"),
        (lambda a: a.update(more=np.zeros(1)), "more"),
        (lambda a: a.update(output=np.zeros((2, 2))), r"output has shape \(2, 2\)"),
        (lambda a: a.update(gate=a["gate"] * np.nan), "gate has values that are not finite"),
    ],
)
def test_restore_refuses_what_does_not_fit(change, message):
    model = fresh()
    stored = arrays(model)
    change(stored)
    with pytest.raises(ModelError, match=message):
        restore(model.architecture, stored)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"vocabulary_size": 0}, "vocabulary size"),
        ({"context_length": 0}, "context length"),
        ({"embedding_width": 0}, "embedding width"),
        ({"hidden_width": -1}, "hidden width"),
        ({"hidden_layers": 0}, "hidden layers"),
        ({"embedding_width": 2**40}, "more than"),
        ({"hidden": "none", "tied_output": True}, "concatenated context"),
    ],
)
def test_impossible_sizes_are_refused_before_memory_is_taken(sizes, message):
    with pytest.raises(ModelError, match=message):
        parameter_count(architecture(**sizes))


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"hidden": "none", "hidden_bias": True}, "model.hidden_bias"),
        ({"hidden": "swiglu", "hidden_bias": True}, "model.hidden_bias"),
        ({"hidden": "none", "direct": True}, "model.direct"),
        ({"hidden": "none", "dropout": 0.1}, "model.dropout"),
        ({"hidden": "tanh", "tied_output": True, "hidden_width": 9}, "model.tied_output"),
        ({"hidden": "none", "tied_output": True, "freeze_embedding": True}, "nothing to train"),
    ],
)
def test_contradicting_settings_are_refused_by_name(settings, named):
    with pytest.raises(ConfigurationError, match=named):
        initialise(architecture(**settings), SplitMix64(1), torch.float32)


def test_a_description_that_is_none_is_refused():
    description = dataclasses.asdict(architecture())
    description["settings"]["hiden"] = "tanh"
    with pytest.raises(ModelError, match="hiden"):
        Architecture.from_description(description)


def test_a_description_from_before_the_adaptive_softmax_went_is_read_unless_it_has_one():
    description = dataclasses.asdict(architecture())
    description |= {"frequent_first": []}
    description["settings"]["output"] = "softmax"
    assert Architecture.from_description(description) == architecture()
    description["settings"]["output"] = "adaptive"
    with pytest.raises(ModelError, match="adaptive softmax, which is not supported"):
        Architecture.from_description(description)


def test_pretrained_vectors_replace_only_their_tokens():
    model = fresh(embedding_width=2)
    before = model.parameters["embedding"].clone()
    place_embedding(model, np.array([3, 1]), np.array([[1.0, 2.0], [3.0, 4.0]]))
    after = model.parameters["embedding"]
    assert after[[3, 1]].tolist() == [[1, 2], [3, 4]]
    assert torch.equal(after[[0, 2, 4]], before[[0, 2, 4]])


@pytest.mark.parametrize(
    ("ids", "vectors", "message"),
    [
        ([0], [[1.0, 2.0, 3.0]], "set model.embedding_width to 3"),
        ([5], [[1.0, 2.0]], "token 5"),
        ([0], [[1.0, np.inf]], "not finite"),
    ],
)
def test_pretrained_vectors_that_do_not_fit_are_refused(ids, vectors, message):
    with pytest.raises(ModelError, match=message):
        place_embedding(fresh(embedding_width=2), np.array(ids), np.array(vectors))


def test_small_steps_take_one_thread_and_large_ones_every_core(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    names = architecture(27, 3, embedding_width=10, hidden="tanh", hidden_width=200)
    brown = architecture(16383, 4, embedding_width=60, hidden="tanh", hidden_width=100)
    assert thread_count(names, TrainingSettings(batch_size=32)) == 1
    assert thread_count(brown, TrainingSettings(batch_size=256)) == 3
    assert thread_count(brown, TrainingSettings(batch_size=256, threads=2)) == 2
