"""A gated layer without biases: h_BH = (silu(x gate) * (x up)) down       Shazeer 2020

Dimension letters: B batch, R rows, I width in, H hidden width. silu(g) = g sigmoid(g).
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from neural_ngram.choices.activations import ACTIVATIONS
from neural_ngram.model.calls import Call, Node, Result, Scratch, linear
from neural_ngram.model.layer import AddNode, Layer, Passes, Shapes
from neural_ngram.settings import ModelSettings

__all__ = ["LAYER"]

sigmoid = ACTIVATIONS["sigmoid"]


def shapes(settings: ModelSettings, width: int) -> Shapes:
    """A deeper layer repeats the whole block with gate and up of (H, H)."""
    H = settings.hidden_width
    return {"gate": (width, H), "up": (width, H), "down": (H, H)}


def forward(x_BI: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
    """(B, H) from (B, I)."""
    g_BH = x_BI @ weights["gate"]
    return (g_BH * sigmoid.function(g_BH) * (x_BI @ weights["up"])) @ weights["down"]


def passes(x: Node, weights: Mapping[str, Node], memory: Scratch) -> Passes:
    """With g = x gate, u = x up, s = sigmoid(g), a = g s, q = a u and h = q down:

        du = dq a        dg = dq u (s + a (1 - s))

    Both passes use few buffers: forward, g becomes a; backward, dg first holds dq,
    and s becomes s + a (1 - s) = a + s - s a.
    """
    g, u, q, s, dg, du, h, dh = (
        memory.take(name) for name in ("g", "u", "q", "s", "dg", "du", "h", "dh")
    )
    up, up_back = linear(x, Result(u, du), weights["up"])
    # Both products read x; the gradient that comes second is added to the first.
    gate, gate_back = linear(x.adding(), Result(g, dg), weights["gate"])
    down, down_back = linear(Node("q", q, dg), Result(h, dh), weights["down"])
    assert sigmoid.kernels is not None
    fill_s = sigmoid.kernels.forward(torch, g, s)

    def multiply() -> None:
        fill_s()
        g.mul_(s)
        torch.mul(g, u, out=q)

    def multiply_back() -> None:
        torch.mul(dg, g, out=du)
        dg.mul_(u).mul_(s.addcmul_(s, g, value=-1).add_(g))

    return Passes(
        Node("h", h, dh),
        [gate, up, Call("silu(g) u", multiply), down],
        [*down_back, Call("gradients of silu(g) u", multiply_back), *up_back, *gate_back],
    )


def onnx(add: AddNode, x: str, names: Mapping[str, str]) -> str:
    """The nodes of the same formula."""
    gate = add("MatMul", x, names["gate"])
    silu = add("Mul", gate, add("Sigmoid", gate))
    return add("MatMul", add("Mul", silu, add("MatMul", x, names["up"])), names["down"])


def python(weights: Mapping[str, str]) -> list[str]:
    """The same for the model card."""
    return [
        f"gate = h @ {weights['gate']}",
        f"h = gate / (1 + np.exp(-gate)) * (h @ {weights['up']})",
        f"h = h @ {weights['down']}",
    ]


LAYER = Layer(shapes=shapes, forward=forward, passes=passes, onnx=onnx, python=python)
