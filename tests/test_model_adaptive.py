import numpy as np
import pytest
import torch
from torch.nn import AdaptiveLogSoftmaxWithLoss

from neural_ngram.errors import ConfigurationError, ModelError
from neural_ngram.gradients import Autograd, Batch
from neural_ngram.model import (
    Architecture,
    Model,
    initialise,
    load,
    log_probabilities_of,
    logits,
    parameter_count,
    save,
    views,
)
from neural_ngram.model.hidden import hidden_layers
from neural_ngram.model.network import embed
from neural_ngram.randomness import SplitMix64
from neural_ngram.scoring import score
from neural_ngram.settings import ModelSettings
from neural_ngram.windows import Windows

V, W = 40, 20
ORDER = tuple(np.random.default_rng(3).permutation(V).tolist())


def adaptive(vocabulary: int = V, **settings) -> Architecture:
    chosen = {"hidden": "tanh", "embedding_width": 3, "hidden_width": W, "output": "adaptive"}
    return Architecture(
        vocabulary_size=vocabulary,
        context_length=2,
        settings=ModelSettings(**chosen | settings),
        frequent_first=ORDER if vocabulary == V else (),
    )


@pytest.fixture
def model() -> Model:
    return initialise(adaptive(), SplitMix64(5), torch.float64)


@pytest.fixture
def contexts() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(1).integers(0, V, (50, 2)))


@pytest.fixture
def library(model) -> AdaptiveLogSoftmaxWithLoss:
    """The library's own layer, with the same weights and V / 8 and V / 2 as its borders."""
    layer = AdaptiveLogSoftmaxWithLoss(W, V, [5, 20], div_value=4.0).double()
    weights = model.parameters
    pairs = [(layer.head, "output")] + [
        (layer.tail[t - 1][part], f"tail_{t}{suffix}")
        for t in (1, 2)
        for part, suffix in enumerate(("_down", ""))
    ]
    with torch.no_grad():
        for linear, name in pairs:
            linear.weight.copy_(weights[name].t())
    return layer


def hidden(model: Model, contexts: torch.Tensor) -> torch.Tensor:
    x = embed(model, contexts)
    return hidden_layers(model.architecture.settings, model.parameters, x)


def test_probabilities_sum_to_one(model, contexts):
    p = logits(model, contexts).exp().sum(dim=1)
    torch.testing.assert_close(p, torch.ones_like(p), rtol=1e-12, atol=0)


def test_log_probabilities_are_those_of_the_library(model, library, contexts):
    with torch.no_grad():
        expected = library.log_prob(hidden(model, contexts))
    torch.testing.assert_close(logits(model, contexts)[:, list(ORDER)], expected)


def test_loss_and_gradient_are_those_of_the_library(model, library, contexts):
    targets = torch.arange(len(contexts)) % V
    flat = torch.zeros_like(model.flat)
    gradient = views(model.architecture, flat)
    batch = Batch(contexts.flatten(), torch.arange(len(contexts)) * V + targets)
    loss = Autograd(model, gradient, frozen=False)(batch)
    ranks = torch.from_numpy(np.argsort(ORDER))[targets]
    expected = library(hidden(model, contexts).detach(), ranks).loss
    expected.backward()
    assert loss == pytest.approx(float(expected.detach()), rel=1e-12)
    torch.testing.assert_close(gradient["output"], library.head.weight.grad.t())
    torch.testing.assert_close(gradient["tail_2"], library.tail[1][1].weight.grad.t())
    torch.testing.assert_close(gradient["tail_1_down"], library.tail[0][0].weight.grad.t())


def test_a_token_alone_has_the_probability_it_has_among_all(model, contexts):
    row = torch.tensor([0, 0, 7, 30, 30, 49])
    token = torch.tensor([ORDER[0], ORDER[39], ORDER[4], ORDER[5], ORDER[19], ORDER[20]])
    alone = log_probabilities_of(model, contexts, row * V + token)
    torch.testing.assert_close(alone, logits(model, contexts)[row, token])


def test_scores_are_log_probabilities(model):
    tokens = np.random.default_rng(2).integers(0, V, 200).astype(np.uint8)
    windows = Windows(tokens=tokens, offsets=np.array([0, 200]), context_length=2)
    scores = score(model, windows, batch_size=7)
    contexts = torch.from_numpy(windows.contexts().astype(np.int64))
    expected = logits(model, contexts).numpy()[np.arange(len(windows)), windows.targets()]
    np.testing.assert_allclose(scores.log_probabilities, expected, rtol=1e-12)


def test_the_number_of_parameters_is_known_beforehand():
    """V = 40: a head of 5 and two tails, 20 x 5 and 5 x 15, 20 x 1 and 1 x 20."""
    outside = 40 * 3 + 6 * W
    assert parameter_count(adaptive()) == outside + W * 7 + W * 5 + 5 * 15 + W * 1 + 1 * 20


def test_a_saved_model_keeps_the_order_of_its_tokens(model, contexts, tmp_path):
    save(model, tmp_path / "model.safetensors", {})
    again, _ = load(tmp_path / "model.safetensors")
    assert again.architecture == model.architecture
    assert torch.equal(logits(again, contexts), logits(model, contexts))


@pytest.mark.parametrize("order", [[0] * V, list(range(V - 1)), ["a"] * V])
def test_an_order_that_lacks_a_token_is_refused(model, order):
    description = model.architecture.describe() | {"frequent_first": order}
    with pytest.raises(ModelError, match="frequent_first"):
        Architecture.from_description(description)


def test_a_vocabulary_too_small_for_clusters_is_refused():
    with pytest.raises(ModelError, match="at least 8, but it has 7"):
        parameter_count(adaptive(vocabulary=7))


@pytest.mark.parametrize("name", ["tied_output", "direct", "output_bias"])
def test_settings_that_an_adaptive_output_lacks_are_refused(name):
    widths = {"embedding_width": W} if name == "tied_output" else {}
    with pytest.raises(ConfigurationError, match=f"model.{name}"):
        parameter_count(adaptive(**{name: True}, **widths))
