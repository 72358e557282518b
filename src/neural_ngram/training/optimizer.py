"""How a gradient becomes a step: one call over one flat tensor, by a rule of `optimizers`.

Dimension letters: P padded parameters.

Unless the rule decouples weight decay (adamw), decay w is added to the gradient. The state of a
parameter that has never had a gradient stays zero, and so does its step.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from neural_ngram.choices.optimizers import OPTIMIZERS
from neural_ngram.model.architecture import bias_names
from neural_ngram.model.network import Model
from neural_ngram.settings import OptimizerSettings

__all__ = ["Optimizer", "learning_rates"]


class Optimizer:
    """An optimizer and its state.

    gradient: (P,) laid out like `Model.flat`. frozen: leave the embedding alone.
    """

    def __init__(
        self, model: Model, gradient: Tensor, settings: OptimizerSettings, *, frozen: bool
    ) -> None:
        rule, decay = OPTIMIZERS[settings.name], settings.weight_decay
        start = model.parameters["embedding"].numel() if frozen else 0
        stop = len(model.flat) if settings.decay_biases else _end_of_matrices(model)
        self.decayed, self.decayed_gradient = model.flat[start:stop], gradient[start:stop]
        weights, gradient = model.flat[start:], gradient[start:]
        # Decay of all weights is left to the rule, which reads them anyway; of some, done here.
        by_rule = decay if rule.decoupled and stop == len(model.flat) else 0.0
        self.added = 0.0 if rule.decoupled else decay
        self.shrunk = decay - by_rule if rule.decoupled else 0.0
        self.memory = {name: torch.zeros_like(weights) for name in rule.state}
        if rule.counts:
            self.memory["steps"] = torch.zeros(())
        settings = replace(settings, weight_decay=by_rule)
        self.move = rule.prepare(torch, weights, gradient, self.memory, settings)

    def state(self) -> dict[str, Tensor]:
        """What the next step depends on besides weights and gradient; views, not copies."""
        return dict(self.memory)

    def step(self, rate: float) -> None:
        """Move the weights against the gradient."""
        if self.added:
            self.decayed_gradient.add_(self.decayed, alpha=self.added)
        if self.shrunk:
            self.decayed.mul_(1 - rate * self.shrunk)
        self.move(rate)


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
