"""How a gradient becomes a step: one call over one flat tensor.

Dimension letters: P padded parameters.

    sgd     w -= rate g
    adam    m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2,
            w -= rate (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)    Kingma & Ba 2015
    adamw   the same, after w -= rate decay w                          Loshchilov & Hutter 2019

For sgd and adam, decay w is added to g instead. The state of a parameter that has never had a
gradient stays zero, and so does its step.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from neural_ngram.model import Model, bias_names
from neural_ngram.settings import OptimizerSettings

__all__ = ["Optimizer", "learning_rates"]


class Optimizer:
    """The rule, and for Adam its two running means.

    gradient: (P,) laid out like `Model.flat`. frozen: leave the embedding alone.
    """

    def __init__(
        self, model: Model, gradient: Tensor, settings: OptimizerSettings, *, frozen: bool
    ) -> None:
        self.settings = settings
        start = model.parameters["embedding"].numel() if frozen else 0
        stop = len(model.flat) if settings.decay_biases else _end_of_matrices(model)
        self.decays_all = stop == len(model.flat)
        self.decayed, self.decayed_gradient = model.flat[start:stop], gradient[start:stop]
        self.weights, self.gradient = model.flat[start:], gradient[start:]
        if settings.name != "sgd":
            self.mean, self.mean_square = (torch.zeros_like(self.weights) for _ in range(2))
            self.steps = torch.zeros(())
            self.adam = self._adam()

    def state(self) -> dict[str, Tensor]:
        """What the next step depends on besides weights and gradient; views, not copies."""
        if self.settings.name == "sgd":
            return {}
        return {"mean": self.mean, "mean_square": self.mean_square, "steps": self.steps}

    def step(self, rate: float) -> None:
        """Move the weights against the gradient."""
        decay = self.settings.weight_decay
        if decay and self.settings.name != "adamw":
            self.decayed_gradient.add_(self.decayed, alpha=decay)
        elif decay and not self.decays_all:
            self.decayed.mul_(1 - rate * decay)
        if self.settings.name == "sgd":
            self.weights.add_(self.gradient, alpha=-rate)
        else:
            self.steps.add_(1)
            self.adam(lr=rate)

    def _adam(self) -> Callable[..., None]:
        """A call that takes one step in one pass over memory.

        This is the kernel under torch.optim.AdamW(fused=True), which without decay is Adam's.
        Calling it directly saves the 60 microseconds that the class spends before it, half a step
        of a small model; tests hold both equal.
        """
        settings = self.settings
        decoupled = settings.name == "adamw" and self.decays_all
        return partial(
            torch._fused_adamw_,
            [self.weights],
            [self.gradient],
            [self.mean],
            [self.mean_square],
            [],
            [self.steps],
            beta1=settings.beta1,
            beta2=settings.beta2,
            weight_decay=settings.weight_decay if decoupled else 0.0,
            eps=settings.epsilon,
            amsgrad=False,
            maximize=False,
        )


def _end_of_matrices(model: Model) -> int:
    """Where the biases start in the flat tensor."""
    biases = [
        int(model.parameters[name].storage_offset()) for name in bias_names(model.architecture)
    ]
    return min(biases, default=len(model.flat))


def learning_rates(settings: OptimizerSettings, max_steps: int) -> Iterator[float]:
    """The step size of each step, from the first."""
    rate = settings.learning_rate
    for step in range(max_steps):
        match settings.schedule:
            case "step":
                dropped = step >= settings.schedule_at * max_steps
                yield rate * settings.schedule_factor if dropped else rate
            case "cosine":
                yield rate * (1 + math.cos(math.pi * step / max_steps)) / 2
            case "inverse":
                yield rate / (1 + step * settings.schedule_decay)
            case _:
                yield rate
