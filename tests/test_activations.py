"""Activations, beside the tensor library's own; what `gain` keeps."""

import pytest
import torch
from torch.nn import functional
from torch.nn.init import calculate_gain

from neural_ngram.choices.activations import ACTIVATIONS

PEERS = {
    "tanh": torch.tanh,
    "relu": functional.relu,
    "sigmoid": torch.sigmoid,
    "gelu": functional.gelu,
}


def test_each_has_a_peer_here():
    assert ACTIVATIONS.keys() == PEERS.keys()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_values_and_derivatives_are_those_of_the_library(name: str):
    z = torch.cat([torch.linspace(-40, 40, 4001), torch.tensor([0.0, -0.0, 1e-30, 1e30, -1e30])])
    results = []
    for function in (ACTIVATIONS[name].function, PEERS[name]):
        given = z.double().requires_grad_()
        value = function(given)
        (derivative,) = torch.autograd.grad(value.sum(), given)
        results.append((value.detach(), derivative))
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["tanh", "relu", "sigmoid"])
def test_gains_are_those_of_the_library(name: str):
    assert ACTIVATIONS[name].gain == pytest.approx(calculate_gain(name))
