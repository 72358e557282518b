"""Which way to its gradients a model takes."""

from collections.abc import Mapping

from torch import Tensor

from neural_ngram.gradients.autograd import Autograd
from neural_ngram.gradients.closed_form import ClosedForm, covers
from neural_ngram.model import Model

__all__ = ["gradients_of"]


def gradients_of(
    model: Model, gradient: Mapping[str, Tensor], *, frozen: bool, asked: str = "closed_form"
) -> ClosedForm | Autograd:
    """The formulas, unless they do not cover the model or the reference is asked for.

    gradient: the memory for each parameter's. frozen: leave out the embedding's.
    """
    formulas = asked == "closed_form" and covers(model.architecture.settings)
    return (ClosedForm if formulas else Autograd)(model, gradient, frozen=frozen)
