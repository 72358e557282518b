"""Which way to its gradients a model takes."""

from collections.abc import Mapping

from torch import Tensor

from neural_ngram.gradients.autograd import Autograd
from neural_ngram.gradients.closed_form import ClosedForm, covers
from neural_ngram.model import Model
from neural_ngram.settings import ModelSettings

__all__ = ["gradients_of", "in_closed_form"]


def in_closed_form(settings: ModelSettings, asked: str) -> bool:
    """Whether the formulas are asked for and cover the model."""
    return asked == "closed_form" and covers(settings)


def gradients_of(
    model: Model, gradient: Mapping[str, Tensor], *, frozen: bool, asked: str = "closed_form"
) -> ClosedForm | Autograd:
    """The formulas, unless they do not cover the model or the reference is asked for.

    gradient: the memory for each parameter's. frozen: leave out the embedding's.
    """
    kind = ClosedForm if in_closed_form(model.architecture.settings, asked) else Autograd
    return kind(model, gradient, frozen=frozen)
