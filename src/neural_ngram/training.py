"""The training loop: shuffled epochs of mini-batches, full objectives at chosen steps."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from neural_ngram.errors import TrainingError
from neural_ngram.model import Model, logits
from neural_ngram.randomness import SplitMix64
from neural_ngram.scoring import score
from neural_ngram.settings import OptimizerSettings, TrainingSettings
from neural_ngram.windows import Windows

__all__ = ["Objective", "Record", "batches", "make_optimizer", "train"]


@dataclass(frozen=True)
class Objective:
    """Full losses in nats after `step` updates."""

    step: int
    train_loss_nats: float
    validation_loss_nats: float


@dataclass(frozen=True)
class Record:
    """What training measured: the loss of each step's batch before its update, and objectives."""

    batch_losses: list[float] = field(default_factory=list)
    objectives: list[Objective] = field(default_factory=list)


def batches(size: int, batch_size: int, generator: SplitMix64) -> Iterator[NDArray[np.int64]]:
    """Endless index arrays: each epoch is a fresh permutation; its last batch may be smaller."""
    while True:
        order = generator.permutation(size)
        for start in range(0, size, batch_size):
            yield order[start : start + batch_size]


def make_optimizer(parameters: list[Tensor], settings: OptimizerSettings) -> torch.optim.Optimizer:
    """SGD, Adam (Kingma & Ba 2015) or AdamW (Loshchilov & Hutter 2019) over all parameters."""
    rate, decay = settings.learning_rate, settings.weight_decay
    if settings.name == "sgd":
        return torch.optim.SGD(parameters, lr=rate, weight_decay=decay)
    rule = torch.optim.AdamW if settings.name == "adamw" else torch.optim.Adam
    betas = (settings.beta1, settings.beta2)
    return rule(
        parameters, lr=rate, betas=betas, eps=settings.epsilon, weight_decay=decay, fused=True
    )


def train(
    model: Model,
    windows: dict[str, Windows],
    optimizer_settings: OptimizerSettings,
    settings: TrainingSettings,
    watch: Callable[[Record], None] = lambda _: None,
) -> Record:
    """Train the model in place on `windows["train"]`; `windows["validation"]` is only scored.

    Full objectives are taken at step 0, every `evaluate_every` steps and at the last step, which is
    fixed beforehand. `watch` is called after each step and each objective.

    Raises TrainingError at the first step whose loss is not finite.
    """
    parameters = [weights.requires_grad_() for weights in model.parameters.values()]
    optimizer = make_optimizer(parameters, optimizer_settings)
    order = batches(len(windows["train"]), settings.batch_size, SplitMix64(settings.seed))
    record = Record()
    for step in range(settings.max_steps + 1):
        if step % settings.evaluate_every == 0 or step == settings.max_steps:
            record.objectives.append(_objective(model, windows, step, settings.batch_size))
        if step < settings.max_steps:
            loss = _step(model, windows["train"], next(order), optimizer)
            _require_finite(loss, f"the loss of step {step + 1}", optimizer_settings)
            record.batch_losses.append(loss)
        _require_finite(
            record.objectives[-1].train_loss_nats,
            f"the full loss on train after step {step}",
            optimizer_settings,
        )
        watch(record)
    for weights in parameters:
        weights.requires_grad_(False)
    return record


def _step(
    model: Model, windows: Windows, rows: NDArray[np.int64], optimizer: torch.optim.Optimizer
) -> float:
    context_BC = torch.from_numpy(windows.contexts(rows).astype(np.int64))
    target_B = torch.from_numpy(windows.targets(rows).astype(np.int64))
    optimizer.zero_grad()
    loss = functional.cross_entropy(logits(model, context_BC), target_B)
    torch.autograd.backward(loss)
    optimizer.step()
    return float(loss.detach())


def _objective(model: Model, windows: dict[str, Windows], step: int, batch_size: int) -> Objective:
    rows = max(batch_size, 4096)
    losses = {
        name: score(model, windows[name], batch_size=rows).loss_nats
        for name in ("train", "validation")
    }
    return Objective(step, losses["train"], losses["validation"])


def _require_finite(loss: float, what: str, settings: OptimizerSettings) -> None:
    if not math.isfinite(loss):
        raise TrainingError(
            f"{what} is {loss}: training diverged; "
            f"lower optimizer.learning_rate (now {settings.learning_rate:g})"
        )
