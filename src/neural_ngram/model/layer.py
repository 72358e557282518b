"""What a kind of hidden layer consists of; each file in `layers/` fills in one of these.

Dimension letters: B batch, R rows (contexts computed), I width in, H hidden width.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from neural_ngram.model.calls import Call, Node, Scratch
from neural_ngram.settings import ModelSettings

__all__ = ["AddNode", "Layer", "Passes", "Shapes", "affine", "differentiated"]

Shapes = dict[str, tuple[int, ...]]
AddNode = Callable[..., str]


def affine(x_BI: Tensor, weight_IO: Tensor, bias: Tensor | None) -> Tensor:
    """(B, O) x W, plus the bias if there is one."""
    return x_BI @ weight_IO if bias is None else torch.addmm(bias, x_BI, weight_IO)


class Passes(NamedTuple):
    """What a layer computes, and the calls for it and for the gradients of all that it reads.

    h: (R, H); the backward calls find dL/dh in its gradient, and may overwrite it.
    """

    h: Node
    forward: list[Call]
    backward: list[Call]


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A kind of hidden layer.

    Parameters have the names that `shapes` gives; in the model, those of the second layer carry the
    suffix `_2`, and so on. The functions here know of one layer and see the names without.

    shapes: (settings, I) to name and shape of each parameter, one or two dimensions (fan in, fan
        out), in the order in which they are filled; one dimension makes a bias, which starts at 0.
    forward: (x_BI, weights) to h_BH, in the tensor library's usual functions.
    onnx: (add, x, names) to the name of h. `add` takes an ONNX operator and the names of its inputs
        and gives the name of its output; `names` are those of the parameters in the graph.
    python: the parameters as Python by their names, to lines that turn h into the next h, with np
        for numpy (and math), for the model card.
    gain: the factor of the initial weights that keeps the scale of values, for
        `model.initialisation=scaled`.
    passes: (x, weights, memory) to the closed form of the gradient; None leaves the layer to the
        tensor library.
    """

    shapes: Callable[[ModelSettings, int], Shapes]
    forward: Callable[[Tensor, Mapping[str, Tensor]], Tensor]
    onnx: Callable[[AddNode, str, Mapping[str, str]], str]
    python: Callable[[Mapping[str, str]], list[str]]
    gain: float = 1.0
    passes: Callable[[Node, Mapping[str, Node], Scratch], Passes] | None = None


def differentiated(layer: Layer, x: Node, weights: Mapping[str, Node], memory: Scratch) -> Passes:
    """The passes of a layer by reverse-mode differentiation of its forward function.

    Tensors of inference mode, in which steps are taken, cannot be differentiated; copies can.
    """
    h, dh = memory.take("h"), memory.take("dh")

    def forward() -> None:
        h.copy_(layer.forward(x.value, {name: node.value for name, node in weights.items()}))

    def backward() -> None:
        with torch.inference_mode(False), torch.enable_grad():
            read = {name: node.value.clone().requires_grad_() for name, node in weights.items()}
            x_RI = x.value.clone().requires_grad_()
            computed = layer.forward(x_RI, read)
            gradients = torch.autograd.grad(computed, [x_RI, *read.values()], dh.clone())
        for node, gradient in zip((x, *weights.values()), gradients, strict=True):
            if node.gradient is not None:
                node.gradient.copy_(node.gradient + gradient if node.adds else gradient)

    names = ", ".join(weights)
    calls = [Call(f"layer of {names}", forward)], [Call(f"gradients of {names}", backward)]
    return Passes(Node("h", h, dh), *calls)
