"""What fixes the shapes of a model, and its number of parameters, before any is allocated."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from neural_ngram.errors import ConfigurationError, ModelError
from neural_ngram.model.hidden import hidden_shapes
from neural_ngram.settings import ModelSettings, check_model, read_group

__all__ = ["Architecture", "bias_names", "parameter_count", "parameter_shapes"]

MOST_PARAMETERS = 2**33


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """All that fixes the shapes of a model."""

    vocabulary_size: int
    context_length: int
    settings: ModelSettings

    @property
    def input_width(self) -> int:
        """K, the width of the concatenated embeddings."""
        return self.context_length * self.settings.embedding_width

    @property
    def output_width(self) -> int:
        """W, the width that the output layer reads."""
        return self.input_width if self.settings.hidden == "none" else self.settings.hidden_width

    def describe(self) -> dict[str, Any]:
        """Plain values, enough to build it again."""
        return asdict(self)

    @staticmethod
    def from_description(description: Mapping[str, Any]) -> "Architecture":
        """The inverse of `describe`.

        Raises ModelError when a value is missing, extra, of the wrong type or out of range.
        """
        try:
            settings = {**description["settings"]}
            if settings.pop("output", "softmax") != "softmax":  # of models of earlier versions
                raise TypeError("its output is an adaptive softmax, which is not supported")
            others = ("settings", "frequent_first")
            sizes = {name: value for name, value in description.items() if name not in others}
            if not all(type(size) is int for size in sizes.values()):
                raise TypeError(f"the sizes {sizes} must be integers")
            return Architecture(settings=read_group(ModelSettings, settings), **sizes)
        except (TypeError, KeyError, AttributeError, ConfigurationError) as problem:
            raise ModelError(f"invalid model description: {problem}; train it again") from problem


def parameter_shapes(architecture: Architecture) -> dict[str, tuple[int, ...]]:
    """Name and shape of each parameter, in the order in which they are filled.

    Raises ModelError when a size is not positive or the model would be too large, and
    ConfigurationError when settings contradict each other.
    """
    settings = architecture.settings
    V, K, W = architecture.vocabulary_size, architecture.input_width, architecture.output_width
    _require_sizes(architecture)
    shapes: dict[str, tuple[int, ...]] = {"embedding": (V, settings.embedding_width)}
    shapes |= hidden_shapes(settings, K)
    if not settings.tied_output:
        shapes["output"] = (W, V)
    if settings.direct:
        shapes["direct"] = (K, V)
    if settings.output_bias:
        shapes["output_bias"] = (V,)
    count = sum(map(math.prod, shapes.values()))
    if count > MOST_PARAMETERS:
        raise ModelError(
            f"this model would have {count:,} parameters, more than {MOST_PARAMETERS:,}; "
            "lower model.embedding_width, model.hidden_width or windows.context_length"
        )
    return shapes


def parameter_count(architecture: Architecture) -> int:
    """How many numbers the model holds; raises what `parameter_shapes` raises."""
    return sum(map(math.prod, parameter_shapes(architecture).values()))


def bias_names(architecture: Architecture) -> set[str]:
    """The parameters that are biases, not matrices."""
    return {name for name, shape in parameter_shapes(architecture).items() if len(shape) == 1}


def _require_sizes(architecture: Architecture) -> None:
    settings = architecture.settings
    sizes = {
        "vocabulary size": architecture.vocabulary_size,
        "context length": architecture.context_length,
        "embedding width": settings.embedding_width,
        "hidden width": settings.hidden_width,
        "number of hidden layers": settings.hidden_layers,
    }
    for name, size in sizes.items():
        if size < 1:
            raise ModelError(f"the {name} of a model is {size}; it must be at least 1")
    check_model(settings)
    if settings.tied_output and architecture.output_width != settings.embedding_width:
        raise ModelError(
            f"a tied output reads the embedding width ({settings.embedding_width}), but without a "
            f"hidden layer it gets {architecture.output_width}, the concatenated context; "
            "set model.tied_output=false or windows.context_length=1"
        )
