"""The stack of hidden layers, whatever their kind.

Dimension letters: B batch, R rows, K width of the concatenated embeddings, H hidden width, I width
in (K for the first layer, H for the others).

The second layer's parameters carry the suffix `_2`, and so on. Dropout multiplies each layer's
output by a mask of zeros and 1 / (1 - dropout), which keeps its mean (Srivastava et al. 2014).
"""

from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module

import torch
from torch import Tensor

from neural_ngram.choices.activations import ACTIVATIONS
from neural_ngram.model.calls import Call, Node, Pool, Scratch
from neural_ngram.model.layer import Layer, Passes, differentiated
from neural_ngram.model.layers import dense
from neural_ngram.settings import ModelSettings

__all__ = [
    "hidden_layers",
    "hidden_names",
    "hidden_passes",
    "hidden_shapes",
    "layer_named",
    "layer_suffixes",
]


def layer_named(name: str) -> Layer:
    """The kind of layer that a value of `model.hidden` other than `none` names."""
    if name in ACTIVATIONS:
        return dense.layer(ACTIVATIONS[name])
    layer: Layer = import_module(f"neural_ngram.model.layers.{name}").LAYER
    return layer


def layer_suffixes(settings: ModelSettings) -> list[str]:
    """The suffix of the parameter names of each hidden layer."""
    depth = 0 if settings.hidden == "none" else settings.hidden_layers
    return ["" if layer == 1 else f"_{layer}" for layer in range(1, depth + 1)]


def hidden_shapes(settings: ModelSettings, input_width: int) -> dict[str, tuple[int, ...]]:
    """Name and shape of each parameter of all hidden layers, first layer first."""
    shapes: dict[str, tuple[int, ...]] = {}
    width = input_width
    for suffix in layer_suffixes(settings):
        own = layer_named(settings.hidden).shapes(settings, width)
        shapes |= {name + suffix: shape for name, shape in own.items()}
        width = settings.hidden_width
    return shapes


def hidden_names(settings: ModelSettings) -> list[dict[str, str]]:
    """For each hidden layer, the parameters' names in the model by their names in the layer."""
    if settings.hidden == "none":
        return []
    own = layer_named(settings.hidden).shapes(settings, 1)
    return [{name: name + suffix for name in own} for suffix in layer_suffixes(settings)]


def hidden_layers(
    settings: ModelSettings,
    weights: Mapping[str, Tensor],
    x_BK: Tensor,
    masks: Sequence[Tensor] = (),
) -> Tensor:
    """(B, W) what the output layer reads: x itself without hidden layers.

    masks: one (B, H) dropout mask per layer, or none at all.
    """
    h_BI = x_BK
    for number, names in enumerate(hidden_names(settings)):
        own = {name: weights[full] for name, full in names.items()}
        h_BI = layer_named(settings.hidden).forward(h_BI, own)
        if masks:
            h_BI = h_BI * masks[number]
    return h_BI


def hidden_passes(
    settings: ModelSettings, nodes: Mapping[str, Node], x: Node, pools: Sequence[Pool]
) -> tuple[list[Passes], list[Tensor]]:
    """The calls of each layer, and where the dropout masks of a step are put.

    pools: the memory of each layer, whose buffers are kept from one shape of batches to the next.
    """
    made, masks, h = list[Passes](), list[Tensor](), x
    for names, pool in zip(hidden_names(settings), pools, strict=True):
        layer, memory = (
            layer_named(settings.hidden),
            Scratch(pool, len(x.value), settings.hidden_width),
        )
        own = {name: nodes[full] for name, full in names.items()}
        build = layer.passes or partial(differentiated, layer)
        passes = build(h, own, memory)
        if settings.dropout:
            passes, mask = _dropped(passes, memory)
            masks.append(mask)
        made.append(passes)
        h = passes.h
    return made, masks


def _dropped(passes: Passes, memory: Scratch) -> tuple[Passes, Tensor]:
    """The layer with h times a mask as its h; the backward pass may read the old h, so it stays."""
    h, d, extended = passes.h.value, passes.h.gradient, passes.h.extended
    assert d is not None
    if extended is None:
        dropped, mask = memory.take("dropped"), memory.take("mask")
    else:
        extended = memory.take_extended("dropped")
        dropped, mask = extended[:, :-1], memory.take_extended("mask")[:, :-1]
    forward = Call("dropout", partial(torch.mul, h, mask, out=dropped))
    backward = Call("gradient of dropout", partial(d.mul_, mask))
    node = Node(passes.h.name, dropped, d, extended)
    return Passes(node, [*passes.forward, forward], [backward, *passes.backward]), mask
