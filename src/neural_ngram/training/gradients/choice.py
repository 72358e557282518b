"""How a model's gradients are computed."""

from collections.abc import Mapping

from torch import Tensor

from neural_ngram.model.network import Model
from neural_ngram.training.gradients.autograd import Autograd
from neural_ngram.training.gradients.closed_form import ClosedForm

__all__ = ["gradients_of"]


def gradients_of(
    model: Model, gradient: Mapping[str, Tensor], *, frozen: bool, asked: str = "closed_form"
) -> ClosedForm | Autograd:
    """The formulas, unless the reference is asked for (`training.gradients`).

    gradient: the memory for each parameter's gradient. frozen: leave out the embedding's.
    """
    kind = ClosedForm if asked == "closed_form" else Autograd
    return kind(model, gradient, frozen=frozen)
