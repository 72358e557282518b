"""The optimizers, by the name that `optimizer.name` gives: one entry each.

Dimension letters: P padded parameters.

    sgd     w -= rate g
    adam    m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2,
            w -= rate (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)    Kingma & Ba 2015
    adamw   the same, after w -= rate decay w                          Loshchilov & Hutter 2019

Only the standard library is imported here, since the settings read the names from here and must
not load the tensor library; functions that need it receive it as an argument.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor

    from neural_ngram.settings import OptimizerSettings

    State = Mapping[str, Tensor]

__all__ = ["OPTIMIZERS", "Rule", "Step"]

Step = Callable[[float], object]


class Rule(NamedTuple):
    """What turns a gradient into a step.

    prepare: (torch, w, g, state, settings) to a call that takes one step in place at a given rate.
        w and g: (P,) weights and gradient. state: the tensors named below, zero before the first
        step. settings: with the weight decay that is left for the call to apply, which is zero
        unless it is decoupled.
    state: the names of the tensors of shape (P,) that the rule keeps from step to step.
    counts: whether `state` also holds `steps`, a number, for the rule to count in.
    decoupled: whether weight decay shrinks the weights, instead of being added to the gradient.

    Where a gradient is always zero, state and step must be, so that gaps between parameters stay 0.
    """

    prepare: "Callable[[Any, Tensor, Tensor, State, OptimizerSettings], Step]"
    state: tuple[str, ...] = ()
    counts: bool = False
    decoupled: bool = False


def _sgd(_: Any, w: "Tensor", g: "Tensor", __: "State", ___: "OptimizerSettings") -> Step:
    return lambda rate: w.add_(g, alpha=-rate)


def _adam(
    torch: Any, w: "Tensor", g: "Tensor", state: "State", settings: "OptimizerSettings"
) -> Step:
    """One pass over memory: the kernel of torch.optim.AdamW(fused=True); without decay, of Adam.

    Calling it directly saves the 60 microseconds that the class spends before it, half a step of a
    small model; tests check that both give the same result.
    """
    steps = state["steps"]
    fused = partial(
        torch._fused_adamw_,
        [w],
        [g],
        [state["mean"]],
        [state["mean_square"]],
        [],
        [steps],
        beta1=settings.beta1,
        beta2=settings.beta2,
        weight_decay=settings.weight_decay,
        eps=settings.epsilon,
        amsgrad=False,
        maximize=False,
    )

    def step(rate: float) -> None:
        steps.add_(1)
        fused(lr=rate)

    return step


OPTIMIZERS = {
    "sgd": Rule(_sgd),
    "adam": Rule(_adam, state=("mean", "mean_square"), counts=True),
    "adamw": Rule(_adam, state=("mean", "mean_square"), counts=True, decoupled=True),
}
