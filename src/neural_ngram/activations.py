"""The hidden layers h = activation(x hidden + hidden_bias): one line here makes one more.

An activation is a function of one tensor, written with operators and the tensor's own methods, so
that the settings know the names without the tensor library. `gain` scales its initial matrix
(`initialisation=scaled`). Gradients are in closed form where `gradients.layers` has the derivative;
of any other activation, the tensor library finds it.

    tanh      Bengio et al. 2003
    relu      max(z, 0)
    sigmoid   1 / (1 + exp(-z)) = (1 + tanh(z / 2)) / 2
    gelu      z Phi(z), Phi(z) = (1 + erf(z / sqrt 2)) / 2, Hendrycks & Gimpel 2016

The second forms are used: unlike the library's own sigmoid and gelu, its tanh and erf give the same
bits wherever threads part the rows (`training.determinism`).
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["ACTIVATIONS", "Activation"]


class Activation(NamedTuple):
    """A function of each value alone, and the gain that keeps its output's scale."""

    function: Callable[[Any], Any]
    gain: float = 1.0


ACTIVATIONS = {
    "tanh": Activation(lambda z: z.tanh(), 5 / 3),
    "relu": Activation(lambda z: z.relu(), math.sqrt(2)),
    "sigmoid": Activation(lambda z: (1 + (z / 2).tanh()) / 2),
    "gelu": Activation(lambda z: z * (1 + (z * math.sqrt(0.5)).erf()) / 2, math.sqrt(2)),
}
