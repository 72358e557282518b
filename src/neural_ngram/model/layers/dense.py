"""A layer of units: h_BH = f(x hidden + hidden_bias), f an activation       Bengio et al. 2003

Dimension letters: B batch, R rows, I width in, H hidden width.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial

import torch
from torch import Tensor

from neural_ngram.choices.activations import Activation, Kernels
from neural_ngram.model.calls import Call, Node, Result, Scratch, linear
from neural_ngram.model.layer import AddNode, Layer, Passes, Shapes, affine
from neural_ngram.settings import ModelSettings

__all__ = ["layer"]


@cache
def layer(activation: Activation) -> Layer:
    """The layer of that activation."""
    return Layer(
        shapes=shapes,
        forward=partial(forward, activation),
        passes=partial(passes, activation),
        onnx=partial(onnx, activation),
        python=partial(python, activation),
        gain=activation.gain,
    )


def shapes(settings: ModelSettings, width: int) -> Shapes:
    """The bias is there where `model.hidden_bias` asks for it."""
    H = settings.hidden_width
    bias: Shapes = {"hidden_bias": (H,)} if settings.hidden_bias else {}
    return {"hidden": (width, H), **bias}


def forward(activation: Activation, x_BI: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
    """(B, H) from (B, I)."""
    return activation.function(affine(x_BI, weights["hidden"], weights.get("hidden_bias")))


def passes(activation: Activation, x: Node, weights: Mapping[str, Node], memory: Scratch) -> Passes:
    """With z = x hidden + hidden_bias and a = f(z): dz = da f'(z).

    One buffer holds da, then dz. a overwrites z unless the backward pass reads z. The input of the
    next product includes the column of ones for a bias.
    """
    kernels = activation.kernels or _differentiated(activation.function)
    name, bias = weights["hidden"].name, weights.get("hidden_bias")
    extended = memory.take_extended("z")
    z, d = extended[:, :-1], memory.take_extended("d")[:, :-1]
    if kernels.reads_z:
        extended = memory.take_extended("a")
    a = extended[:, :-1]
    up, back = linear(x, Result(z, d), weights["hidden"], bias)
    activate = Call(f"activation of {name}", kernels.forward(torch, z, a))
    activate_back = Call(f"gradient of the activation of {name}", kernels.backward(torch, d, z, a))
    return Passes(Node("h", a, d, extended), [up, activate], [activate_back, *back])


def onnx(activation: Activation, add: AddNode, x: str, names: Mapping[str, str]) -> str:
    """A product, the bias if there is one, and the activation's operator."""
    z = add("MatMul", x, names["hidden"])
    if "hidden_bias" in names:
        z = add("Add", z, names["hidden_bias"])
    return add(activation.onnx, z)


def python(activation: Activation, weights: Mapping[str, str]) -> list[str]:
    """The same for the model card."""
    bias = f" + {weights['hidden_bias']}" if "hidden_bias" in weights else ""
    return [f"z = h @ {weights['hidden']}{bias}", f"h = {activation.python}"]


def _differentiated(function: Callable[[Tensor], Tensor]) -> Kernels:
    """The calls of an activation whose derivative the tensor library finds."""

    def differentiate(d: Tensor, z: Tensor) -> None:
        with torch.inference_mode(False), torch.enable_grad():
            leaf = z.clone().requires_grad_()
            (dz,) = torch.autograd.grad(function(leaf), leaf, d.clone())
        d.copy_(dz)

    return Kernels(
        lambda _, z, a: lambda: a.copy_(function(z)),
        lambda _, d, z, __: partial(differentiate, d, z),
        reads_z=True,
    )
