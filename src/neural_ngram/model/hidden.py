"""The hidden layers, one upon another: their parameters and what they compute.

Dimension letters: B batch, I width in (K for the first layer, H for the others), H hidden width.

    swiglu: h_BH = (silu(x gate) * (x up)) down                    Shazeer 2020
    others: h_BH = activation(x hidden + hidden_bias)              `activations`

The second layer's parameters carry the suffix `_2`, and so on. A deeper swiglu repeats the whole
block with gate and up of (H, H). Dropout multiplies each layer's output with a mask of zeros and
1 / (1 - dropout), so that its mean stays (Srivastava et al. 2014).
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from neural_ngram.activations import ACTIVATIONS
from neural_ngram.settings import ModelSettings

__all__ = ["affine", "hidden_layers", "hidden_shapes", "layer_suffixes"]


def affine(x_BI: Tensor, weight_IO: Tensor, bias: Tensor | None) -> Tensor:
    """(B, O) x W, plus the bias if there is one."""
    return x_BI @ weight_IO if bias is None else torch.addmm(bias, x_BI, weight_IO)


def layer_suffixes(settings: ModelSettings) -> list[str]:
    """What the parameter names of each hidden layer end in."""
    depth = 0 if settings.hidden == "none" else settings.hidden_layers
    return ["" if layer == 1 else f"_{layer}" for layer in range(1, depth + 1)]


def hidden_shapes(settings: ModelSettings, input_width: int) -> dict[str, tuple[int, ...]]:
    """Name and shape of each parameter of all hidden layers, first layer first."""
    shapes: dict[str, tuple[int, ...]] = {}
    I, H = input_width, settings.hidden_width  # noqa: E741
    for suffix in layer_suffixes(settings):
        if settings.hidden == "swiglu":
            shapes |= {f"gate{suffix}": (I, H), f"up{suffix}": (I, H), f"down{suffix}": (H, H)}
        else:
            shapes[f"hidden{suffix}"] = (I, H)
            if settings.hidden_bias:
                shapes[f"hidden_bias{suffix}"] = (H,)
        I = H  # noqa: E741
    return shapes


def hidden_layers(
    settings: ModelSettings,
    weights: Mapping[str, Tensor],
    x_BK: Tensor,
    masks: Sequence[Tensor] = (),
) -> Tensor:
    """(B, W) what the output layer reads: x itself without hidden layers.

    masks: one (B, H) dropout mask a layer, or none at all.
    """
    h_BI = x_BK
    for layer, suffix in enumerate(layer_suffixes(settings)):
        if settings.hidden == "swiglu":
            gate, up, down = (weights[name + suffix] for name in ("gate", "up", "down"))
            g_BH = h_BI @ gate
            h_BI = (g_BH * ACTIVATIONS["sigmoid"].function(g_BH) * (h_BI @ up)) @ down
        else:
            bias = weights.get("hidden_bias" + suffix)
            z_BH = affine(h_BI, weights["hidden" + suffix], bias)
            h_BI = ACTIVATIONS[settings.hidden].function(z_BH)
        if masks:
            h_BI = h_BI * masks[layer]
    return h_BI
