"""The learning-rate range test: one short training whose rate grows from step to step.

Smith (2017), Cyclical learning rates for training neural networks: while the rate is too small the
loss hardly moves, then it falls, and where the rate is too large it rises. The rate at which it
falls fastest is a good one to start from.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from neural_ngram.errors import ConfigurationError
from neural_ngram.model.network import Model, views
from neural_ngram.settings import Settings
from neural_ngram.tokens.windows import Windows
from neural_ngram.training.batches import Batches
from neural_ngram.training.gradients.choice import gradients_of
from neural_ngram.training.optimizer import Optimizer

__all__ = ["RangeTest", "range_test"]

SMOOTHING = 0.95
GIVE_UP = 4.0


@dataclass(frozen=True, eq=False)
class RangeTest:
    """One entry per step.

    rates, losses: the rate and the batch's loss in nats before the step.
    smoothed: exponential mean of the losses, its start corrected.
    """

    rates: NDArray[np.float64]
    losses: NDArray[np.float64]
    smoothed: NDArray[np.float64]

    @property
    def suggestion(self) -> float:
        """The rate at which the smoothed loss falls fastest, a tenth of the steps at a time."""
        span = max(1, len(self.smoothed) // 10)
        drops = self.smoothed[:-span] - self.smoothed[span:]
        return float(self.rates[int(drops.argmax()) + span // 2])


def range_test(
    model: Model,
    windows: Windows,
    settings: Settings,
    *,
    bounds: tuple[float, float] = (1e-5, 10.0),
    steps: int = 500,
) -> RangeTest:
    """Train the model in place while the rate grows exponentially between the bounds.

    Ends early when the smoothed loss is not finite or exceeds four times its best. Weight decay and
    dropout are not used. Raises ConfigurationError when the bounds or the number of steps are
    impossible, or when the loss is not finite from the start.
    """
    low, high = bounds
    if not 0 < low < high or steps < 20:
        raise ConfigurationError(
            f"a range test from {low:g} to {high:g} in {steps} steps is impossible; the rates must "
            "be positive and ascending, and the steps at least 20"
        )
    rates = np.geomspace(low, high, steps)
    gradient = torch.zeros_like(model.flat)
    rule = replace(settings.optimizer, weight_decay=0.0)
    losses, mean, best, smoothed = list[float](), 0.0, np.inf, list[float]()
    with torch.no_grad():
        frozen = settings.model.freeze_embedding
        optimizer = Optimizer(model, gradient, rule, frozen=frozen)
        gradients = gradients_of(model, views(model.architecture, gradient), frozen=frozen)
        batches = iter(Batches(model, windows, settings.training))
        for step, rate in enumerate(rates, start=1):
            losses.append(gradients(next(batches)))
            mean = SMOOTHING * mean + (1 - SMOOTHING) * losses[-1]
            smoothed.append(mean / (1 - SMOOTHING**step))
            best = min(best, smoothed[-1])
            if not smoothed[-1] < GIVE_UP * best or not torch.isfinite(gradient).all():
                break
            optimizer.step(rate)
    seen = int(np.isfinite(losses).sum())
    if seen < 2:
        raise ConfigurationError(
            f"the loss is not finite after a step at the rate {low:g}; start from a lower one"
        )
    return RangeTest(rates[:seen], np.array(losses[:seen]), np.array(smoothed[:seen]))
