"""The training loop: batches, gradients, steps; full evaluations at chosen steps."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from time import monotonic

import numpy as np
import torch
from torch import Tensor

from neural_ngram.errors import TrainingError
from neural_ngram.evaluation.scoring import check_windows, score
from neural_ngram.model.network import Model, views, without_autograd
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import OptimizerSettings, Settings, TrainingSettings
from neural_ngram.tokens.windows import Windows, join
from neural_ngram.training.batches import Batches, Position, dropout_masks
from neural_ngram.training.checkpoints import Checkpoints, State
from neural_ngram.training.gradients.choice import gradients_of
from neural_ngram.training.optimizer import Optimizer, learning_rates

__all__ = ["Evaluation", "Record", "resume", "train"]

DROPOUT_STREAM = 0x5851F42D4C957F2D
WATCH_EVERY = 1.0  # seconds


@dataclass(frozen=True)
class Evaluation:
    """Full losses in nats and accuracies after `step` updates."""

    step: int
    train_loss_nats: float
    validation_loss_nats: float
    train_accuracy: float = math.nan
    validation_accuracy: float = math.nan


@dataclass
class Record:
    """What training measured.

    batch_losses: nats of each step's batch before its update, under that step's dropout.
    evaluations: full losses, of the averaged weights when they are averaged.
    kept_step: the number of updates after which the final weights were taken.
    """

    batch_losses: list[float] = field(default_factory=list)
    evaluations: list[Evaluation] = field(default_factory=list)
    kept_step: int = 0

    @property
    def kept(self) -> Evaluation:
        """The losses of the weights that the model ends with."""
        return next(each for each in self.evaluations if each.step == self.kept_step)


def train(
    model: Model,
    windows: dict[str, Windows],
    optimizer_settings: OptimizerSettings,
    settings: TrainingSettings,
    watch: Callable[[Record], None] = lambda _: None,
) -> Record:
    """Train the model in place on `windows["train"]`; `windows["validation"]` is only scored.

    Full evaluations take place at step 0, every `evaluate_every` steps and at the last step, which
    is fixed beforehand unless `patience` is set. `watch` is called before and after each of them,
    and about once per second.

    Raises TrainingError at the first step whose loss or gradient is not finite, before its update,
    and ModelError when the windows do not belong to the model.
    """
    with _arithmetic(settings):
        run = Run(model, windows, optimizer_settings, settings)
        return _advance(run, watch, lambda _, __: None)


def resume(
    model: Model,
    windows: dict[str, Windows],
    settings: Settings,
    watch: Callable[[Record], None],
    checkpoints: Checkpoints,
) -> Record:
    """The same from the newest checkpoint, if there is one; writes one every `checkpoint_every`.

    The weights and the record are bit-identical to those of an uninterrupted training.

    Raises what `train` and `Checkpoints.latest` raise.
    """
    with _arithmetic(settings.training):
        run = Run(model, windows, settings.optimizer, settings.training)
        saved = checkpoints.latest()
        if saved is not None:
            run.restore(saved)
        try:
            return _advance(run, watch, lambda run, step: checkpoints.write(run.state(step)))
        except TrainingError as problem:
            kept = checkpoints.newest()
            raise TrainingError(
                f"{problem}; the last good weights are in {kept}" if kept else str(problem)
            ) from problem


def _advance(
    run: "Run", watch: Callable[[Record], None], save: Callable[["Run", int], None]
) -> Record:
    """Take the remaining steps."""
    settings, first = run.settings, run.taken + 1
    watch(run.record)
    if not run.taken:
        run.take_objective(0)
        watch(run.record)
    watched = monotonic()
    for step in range(first, settings.max_steps + 1):
        run.step(step)
        objective_due = step % settings.evaluate_every == 0 or step == settings.max_steps
        if objective_due or monotonic() - watched >= WATCH_EVERY:
            watch(run.record)
            watched = monotonic()
        if objective_due:
            run.take_objective(step)
            watch(run.record)
        if run.out_of_patience():
            break
        if step % settings.checkpoint_every == 0:
            save(run, step)
    run.keep()
    return run.record


class Run:
    """One training: what changes from step to step."""

    def __init__(
        self,
        model: Model,
        windows: dict[str, Windows],
        optimizer_settings: OptimizerSettings,
        settings: TrainingSettings,
    ) -> None:
        frozen = model.architecture.settings.freeze_embedding
        self.model, self.settings = model, settings
        self.windows = {name: windows[name] for name in ("train", "validation")}
        self.rate = optimizer_settings.learning_rate
        self.record, self.taken = Record(), 0
        self.gradient = torch.zeros_like(model.flat)
        into = views(model.architecture, self.gradient)
        weights = without_autograd(model) if torch.is_inference_mode_enabled() else model
        self.gradients = gradients_of(weights, into, frozen=frozen, asked=settings.gradients)
        self.optimizer = Optimizer(weights, self.gradient, optimizer_settings, frozen=frozen)
        for part in self.windows.values():
            check_windows(model, part)
        self.scored = join(list(self.windows.values()))
        self.sampler = Batches(model, windows["train"], settings)
        self.batches = iter(self.sampler)
        self.rates = learning_rates(optimizer_settings, settings.max_steps)
        self.drops = model.architecture.settings.dropout > 0
        self.dropout = SplitMix64(settings.seed ^ DROPOUT_STREAM)
        self.average = model.flat.clone() if settings.averaging == "ema" else None
        self.best = model.flat.clone() if settings.patience else None

    def step(self, step: int) -> None:
        """One batch, its gradient, its update; raises TrainingError when it is not finite."""
        batch = next(self.batches)
        masks = self.masks(len(batch.tokens)) if self.drops else ()
        loss = self.gradients(batch, masks)
        if not math.isfinite(loss + self.gradient.sum().item()):
            self.require_finite(step, loss)
        self.optimizer.step(next(self.rates))
        self.record.batch_losses.append(loss)
        if self.average is not None:
            self.average.lerp_(self.model.flat, 1 - self._averaging_decay(step))

    def state(self, step: int) -> State:
        """Everything that the steps after this one depend on.

        Raises TrainingError when a weight is not finite.
        """
        for name, weights in self.model.parameters.items():
            broken = weights[~weights.isfinite()]
            if len(broken):
                self._refuse(float(broken[0]), f"{name} after step {step}", step)
        evaluations = [tuple(vars(evaluation).values()) for evaluation in self.record.evaluations]
        arrays = {
            "batch_losses": np.array(self.record.batch_losses),
            "evaluations": np.array(evaluations, dtype=np.float64),
        } | {name: tensor.numpy() for name, tensor in self._tensors().items()}
        position = self.sampler.position
        return State(step, arrays, (position.state, position.taken), self.dropout.state)

    def restore(self, saved: State) -> None:
        """Resume after the saved state."""
        for name, tensor in self._tensors().items():
            tensor.copy_(torch.from_numpy(saved.arrays[name].copy()))
        self.record.batch_losses = saved.arrays["batch_losses"].tolist()
        self.record.evaluations = [
            Evaluation(int(step), *losses) for step, *losses in saved.arrays["evaluations"].tolist()
        ]
        self.taken = saved.step
        self.batches = self.sampler.after(saved.step, Position(*saved.position))
        self.rates = islice(self.rates, saved.step, None)
        self.dropout.state = saved.dropout

    def _tensors(self) -> dict[str, Tensor]:
        kept = {"weights": self.model.flat, "average": self.average, "best": self.best}
        named = {name: tensor for name, tensor in kept.items() if tensor is not None}
        return named | self.optimizer.state()

    def masks(self, tokens: int) -> list[Tensor]:
        """The dropout masks of a batch whose contexts have this many tokens in total."""
        architecture = self.model.architecture
        rows = tokens // architecture.context_length
        return dropout_masks(architecture, self.model.dtype, self.dropout, rows)

    def _averaging_decay(self, step: int) -> float:
        """Smaller at first, since the average starts at random weights."""
        return min(self.settings.averaging_decay, (1 + step) / (10 + step))

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """The averaged weights in the model's place, if there are any."""
        if self.average is None:
            yield
            return
        latest = self.model.flat.clone()
        self.model.flat.copy_(self.average)
        yield
        self.model.flat.copy_(latest)

    def take_objective(self, step: int) -> None:
        """Score both partitions; keep the weights when validation has a new best."""
        with self.averaged(), products_of_float32("full"):
            whole = score(self.model, self.scored, batch_size=4096)
            scores = whole.parts([len(part) for part in self.windows.values()])
            train, validation = (each.loss_nats for each in scores)
            losses = [evaluation.validation_loss_nats for evaluation in self.record.evaluations]
            if self.best is not None and validation < min(losses, default=math.inf):
                self.best.copy_(self.model.flat)
        accuracies = (each.accuracy for each in scores)
        self.record.evaluations.append(Evaluation(step, train, validation, *accuracies))
        self._refuse(train, f"the full loss on train after step {step}", step)
        self._refuse(validation, f"the full loss on validation after step {step}", step)

    def out_of_patience(self) -> bool:
        """Whether none of the last `patience` validation losses was a new best."""
        return (
            self.best is not None
            and self.settings.patience is not None
            and len(self.record.evaluations) - 1 - self._best_number() >= self.settings.patience
        )

    def _best_number(self) -> int:
        losses = [evaluation.validation_loss_nats for evaluation in self.record.evaluations]
        return losses.index(min(losses))

    def keep(self) -> None:
        """Put the final weights into the model."""
        self.record.kept_step = self.record.evaluations[-1].step
        if self.best is not None:
            self.model.flat.copy_(self.best)
            self.record.kept_step = self.record.evaluations[self._best_number()].step
        elif self.average is not None:
            self.model.flat.copy_(self.average)

    def require_finite(self, step: int, loss: float) -> None:
        """Raise TrainingError if the loss or a gradient is not finite."""
        self._refuse(loss, f"the loss of step {step}", step)
        for name, gradient in views(self.model.architecture, self.gradient).items():
            broken = gradient[~gradient.isfinite()]
            if len(broken):
                self._refuse(float(broken[0]), f"the gradient of {name} in step {step}", step)

    def _refuse(self, value: float, what: str, step: int) -> None:
        if not math.isfinite(value):
            batch = step - self.sampler.position.taken
            raise TrainingError(
                f"{what} is {value}: training diverged; "
                f"lower optimizer.learning_rate (now {self.rate:g}); "
                f"it was batch {batch} of its pass over the windows"
            )


@contextmanager
def _arithmetic(settings: TrainingSettings) -> Iterator[None]:
    closed_form = settings.gradients == "closed_form"
    with products_of_float32(settings.products), torch.inference_mode(closed_form):
        yield


@contextmanager
def products_of_float32(kind: str) -> Iterator[None]:
    """Set whether float32 matrix products round their factors to bf16."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium" if kind == "bf16" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
