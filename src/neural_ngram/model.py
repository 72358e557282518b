"""The fixed-context neural language model, as functions over named matrices.

Dimension letters: B batch, C context length, D embedding width, H hidden width, V vocabulary.

    x_BCD  = embedding[context_BC]                     one row of (V, D) a token
    x_BK   = x_BCD, concatenated                       K = C * D
    swiglu: h_BH = (silu(x gate) * (x up)) down        Shazeer 2020
    tanh:   h_BH = tanh(x hidden + hidden_bias)        Bengio et al. 2003
    none:   h_BK = x
    logits_BV = h output + output_bias

Every matrix is stored as (fan in, fan out), multiplied from the right, and starts Xavier-uniform
(Glorot & Bengio 2010): limit sqrt(6 / (fan in + fan out)), filled row by row from one stream in the
order of `parameter_shapes`. Biases start at zero and draw nothing.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from neural_ngram.artifacts import read_tensors, write_tensors
from neural_ngram.errors import ModelError
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import ModelSettings

__all__ = [
    "Architecture",
    "Model",
    "initialise",
    "load",
    "logits",
    "parameter_shapes",
    "restore",
    "save",
]

MOST_PARAMETERS = 2**33


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """All that fixes the shapes of a model."""

    vocabulary_size: int
    context_length: int
    settings: ModelSettings

    def describe(self) -> dict[str, Any]:
        """Plain values, enough to build it again."""
        return asdict(self)

    @staticmethod
    def from_description(description: Mapping[str, Any]) -> "Architecture":
        """The inverse of `describe`; raises ModelError when a key is missing or extra."""
        try:
            rest = dict(description)
            return Architecture(settings=ModelSettings(**rest.pop("settings")), **rest)
        except (TypeError, KeyError) as problem:
            raise ModelError(f"this is no description of a model: {problem}") from problem


@dataclass(frozen=True)
class Model:
    """An architecture and its matrices by name."""

    architecture: Architecture
    parameters: dict[str, Tensor]

    @property
    def dtype(self) -> torch.dtype:
        """The arithmetic of the model."""
        return self.parameters["output"].dtype


def parameter_shapes(architecture: Architecture) -> dict[str, tuple[int, ...]]:
    """Name and shape of each matrix, in the order in which they are filled.

    Raises ModelError when a size is not positive or the sum of all entries is beyond reason.
    """
    settings = architecture.settings
    V, C = architecture.vocabulary_size, architecture.context_length
    D, H = settings.embedding_width, settings.hidden_width
    for name, size in (("vocabulary", V), ("context", C), ("embedding", D), ("hidden", H)):
        if size < 1:
            raise ModelError(f"the {name} size of a model is {size}; it must be at least 1")
    K = C * D
    shapes: dict[str, tuple[int, ...]] = {"embedding": (V, D)}
    match settings.hidden:
        case "swiglu":
            shapes |= {"gate": (K, H), "up": (K, H), "down": (H, H)}
        case "tanh":
            shapes |= {"hidden": (K, H)}
            if settings.hidden_bias:
                shapes |= {"hidden_bias": (H,)}
    shapes["output"] = (K if settings.hidden == "none" else H, V)
    if settings.output_bias:
        shapes["output_bias"] = (V,)
    count = sum(math.prod(shape) for shape in shapes.values())
    if count > MOST_PARAMETERS:
        raise ModelError(
            f"this model would have {count:,} parameters, more than {MOST_PARAMETERS:,}; "
            "lower model.embedding_width, model.hidden_width or windows.context_length"
        )
    return shapes


def initialise(architecture: Architecture, generator: SplitMix64, dtype: torch.dtype) -> Model:
    """Fresh weights from the generator's stream."""
    parameters = {}
    for name, shape in parameter_shapes(architecture).items():
        values = np.zeros(shape)
        if len(shape) == 2:
            limit = math.sqrt(6 / sum(shape))
            values = limit * (2 * generator.uniform(math.prod(shape)).reshape(shape) - 1)
        parameters[name] = torch.from_numpy(values).to(dtype)
    return Model(architecture, parameters)


def restore(architecture: Architecture, arrays: Mapping[str, NDArray[Any]]) -> Model:
    """A model from stored matrices.

    Raises ModelError when a matrix is missing, extra, of another shape or not finite.
    """
    shapes = parameter_shapes(architecture)
    if set(shapes) != set(arrays):
        raise ModelError(
            f"the model should hold {', '.join(shapes)} but holds {', '.join(sorted(arrays))}; "
            "train it again"
        )
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise ModelError(
                f"{name} has shape {arrays[name].shape} but should have {shape}; train it again"
            )
        if not np.isfinite(arrays[name]).all():
            raise ModelError(f"{name} holds values that are not finite; train it again")
    return Model(architecture, {name: torch.from_numpy(arrays[name].copy()) for name in shapes})


def embed(model: Model, context_BC: Tensor) -> Tensor:
    """(B, K) the embeddings of each context, concatenated."""
    return functional.embedding(context_BC, model.parameters["embedding"]).flatten(1)


def hidden_layer(model: Model, x_BK: Tensor) -> Tensor:
    """(B, H) what the output layer reads; (B, K) itself without a hidden layer."""
    weights = model.parameters
    match model.architecture.settings.hidden:
        case "swiglu":
            gated = functional.silu(x_BK @ weights["gate"]) * (x_BK @ weights["up"])
            return gated @ weights["down"]
        case "tanh":
            z_BH = x_BK @ weights["hidden"]
            return torch.tanh(z_BH + weights["hidden_bias"] if "hidden_bias" in weights else z_BH)
        case _:
            return x_BK


def logits(model: Model, context_BC: Tensor) -> Tensor:
    """(B, V) unnormalised log probabilities of the next token."""
    h_BH = hidden_layer(model, embed(model, context_BC))
    logits_BV = h_BH @ model.parameters["output"]
    bias = model.parameters.get("output_bias")
    return logits_BV if bias is None else logits_BV + bias


def save(model: Model, path: Path, origin: Mapping[str, Any]) -> None:
    """Write weights, architecture, and the hashes of what the model was made from."""
    arrays = {name: weights.detach().numpy() for name, weights in model.parameters.items()}
    write_tensors(path, arrays, {**origin, "architecture": model.architecture.describe()})


def load(path: Path) -> tuple[Model, dict[str, Any]]:
    """A saved model, and the description it was saved with.

    Raises ArtifactError when the file is missing or damaged, ModelError when its parts do not fit.
    """
    arrays, description = read_tensors(path)
    try:
        architecture = Architecture.from_description(description["architecture"])
    except KeyError as problem:
        raise ModelError(f"{path} describes no architecture; train it again") from problem
    return restore(architecture, arrays), description
