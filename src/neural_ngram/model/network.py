"""A model: named views of one flat tensor, and the function from contexts to logits.

Dimension letters: B batch, C context length, D embedding width, M words with a vector, V
vocabulary, P padded parameters, K = C * D.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from neural_ngram.errors import ModelError
from neural_ngram.model.architecture import Architecture, bias_names, parameter_shapes
from neural_ngram.model.hidden import hidden_layers
from neural_ngram.model.initialisation import draw_matrix
from neural_ngram.model.layer import affine
from neural_ngram.randomness import SplitMix64

__all__ = [
    "Model",
    "initialise",
    "logits",
    "place_embedding",
    "restore",
    "views",
    "without_autograd",
]

ALIGNMENT = 16


@dataclass(frozen=True)
class Model:
    """An architecture and its parameters.

    parameters: by name, each a view of `flat`.
    flat: (P,) all of them in one tensor, the embedding first, biases last, and in the middle the
        output directly followed by its bias, as one more row. All others start at a multiple of 16,
        and the gaps stay zero.
    """

    architecture: Architecture
    parameters: dict[str, Tensor]
    flat: Tensor

    @property
    def dtype(self) -> torch.dtype:
        """The arithmetic of the model."""
        return self.flat.dtype


def views(architecture: Architecture, flat: Tensor) -> dict[str, Tensor]:
    """Each parameter as a view of a flat tensor laid out like `Model.flat`."""
    shapes = parameter_shapes(architecture)
    spans = _layout(architecture)
    return {name: flat[spans[name]].view(shape) for name, shape in shapes.items()}


def without_autograd(model: Model) -> Model:
    """The same model over the same memory; within inference mode, operations on it cost less.

    Tensors made in that mode carry no record for differentiation, and 30 operations of a small
    step save a quarter of a microsecond each.
    """
    with torch.inference_mode():
        flat = torch.from_numpy(model.flat.numpy())
        return Model(model.architecture, views(model.architecture, flat), flat)


def _layout(architecture: Architecture) -> dict[str, slice]:
    shapes, biases = parameter_shapes(architecture), bias_names(architecture)
    spans, start = {}, 0
    for name in sorted(shapes, key=lambda n: (n in biases, n == "output", n != "output_bias")):
        follows_its_matrix = name == "output_bias" and "output" in spans
        if not follows_its_matrix:
            start = math.ceil(start / ALIGNMENT) * ALIGNMENT
        spans[name] = slice(start, start + math.prod(shapes[name]))
        start = spans[name].stop
    return spans


def _allocate(architecture: Architecture, dtype: torch.dtype) -> Model:
    size = max(span.stop for span in _layout(architecture).values())
    flat = torch.zeros(size, dtype=dtype)
    return Model(architecture, views(architecture, flat), flat)


def initialise(architecture: Architecture, generator: SplitMix64, dtype: torch.dtype) -> Model:
    """Fresh weights from the generator's stream; raises what `parameter_shapes` raises."""
    model = _allocate(architecture, dtype)
    for name, weights in model.parameters.items():
        if weights.dim() == 2:
            shape = (weights.shape[0], weights.shape[1])
            values = draw_matrix(name, shape, architecture.settings, generator)
            weights.copy_(torch.from_numpy(values))
    return model


def restore(architecture: Architecture, arrays: Mapping[str, NDArray[Any]]) -> Model:
    """A model from stored arrays.

    Raises ModelError when one is missing, extra, of another shape or type, or not finite.
    """
    shapes = parameter_shapes(architecture)
    if set(shapes) != set(arrays):
        raise ModelError(
            f"the model should have {', '.join(shapes)} but has {', '.join(sorted(arrays))}; "
            "train it again"
        )
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise ModelError(
                f"{name} has shape {arrays[name].shape} but should have {shape}; train it again"
            )
        if arrays[name].dtype not in (np.float32, np.float64):
            raise ModelError(
                f"{name} holds {arrays[name].dtype}, but weights are float32 or float64; "
                "train it again"
            )
        if arrays[name].dtype != arrays["embedding"].dtype:
            raise ModelError(
                f"{name} holds {arrays[name].dtype} but embedding {arrays['embedding'].dtype}; "
                "train it again"
            )
        if not np.isfinite(arrays[name]).all():
            raise ModelError(f"{name} has values that are not finite; train it again")
    model = _allocate(architecture, torch.from_numpy(arrays["embedding"][:0].copy()).dtype)
    for name, weights in model.parameters.items():
        weights.copy_(torch.from_numpy(arrays[name].copy()))
    return model


def place_embedding(
    model: Model, ids_M: NDArray[np.integer], vectors_MD: NDArray[np.floating]
) -> None:
    """Overwrite the embeddings of the tokens `ids_M`, in place.

    Raises ModelError when the vectors have another width, an ID is outside the vocabulary or a
    value is not finite.
    """
    embedding_VD = model.parameters["embedding"]
    V, D = embedding_VD.shape
    if vectors_MD.shape != (len(ids_M), D):
        raise ModelError(
            f"the pretrained vectors have shape {vectors_MD.shape} but should have "
            f"{(len(ids_M), D)}; set model.embedding_width to {vectors_MD.shape[-1]}"
        )
    outside = ids_M[(ids_M < 0) | (ids_M >= V)]
    if len(outside):
        raise ModelError(
            f"a pretrained vector is meant for token {outside[0]}, outside the vocabulary of {V}; "
            "look its words up in the tokenizer of this model"
        )
    if not np.isfinite(vectors_MD).all():
        raise ModelError("the pretrained vectors have values that are not finite; check the file")
    rows = torch.from_numpy(ids_M.astype(np.int64))
    embedding_VD[rows] = torch.from_numpy(vectors_MD.copy()).to(model.dtype)


def embed(model: Model, context_BC: Tensor) -> Tensor:
    """(B, K) the embeddings of each context, concatenated."""
    return functional.embedding(context_BC, model.parameters["embedding"]).flatten(1)


def logits(model: Model, context_BC: Tensor, masks: Sequence[Tensor] = ()) -> Tensor:
    """(B, V) unnormalised log probabilities of the next token.

    masks: one (B, H) dropout mask per hidden layer; none outside training.
    """
    weights, settings = model.parameters, model.architecture.settings
    x_BK = embed(model, context_BC)
    h_BW = hidden_layers(settings, weights, x_BK, masks)
    output_WV = weights["embedding"].t() if settings.tied_output else weights["output"]
    logits_BV = affine(h_BW, output_WV, weights.get("output_bias"))
    return torch.addmm(logits_BV, x_BK, weights["direct"]) if settings.direct else logits_BV
