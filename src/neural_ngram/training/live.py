"""What training measures, on its way to MLflow and to the terminal while training runs."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice

from neural_ngram.settings import Settings
from neural_ngram.tracking.run import Run
from neural_ngram.training.loop import Record
from neural_ngram.training.optimizer import learning_rates
from neural_ngram.training.progress import progress

__all__ = ["live", "watched"]

EVERY = 2.0  # seconds


@contextmanager
def watched(tracked: Run, settings: Settings, windows: int) -> Iterator[Callable[[Record], None]]:
    """A function to call with the record so far, which shows it and sends it to the run.

    windows: how many of them train has.
    """
    together = min(settings.training.batch_size, windows)
    with (
        progress(settings.training.max_steps, together) as show,
        live(tracked, settings, together) as send,
    ):

        def watch(record: Record) -> None:
            show(record)
            send(record)

        yield watch


@contextmanager
def live(
    tracked: Run, settings: Settings, batch_size: int, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[Record], None]]:
    """A function to call with the record so far, which logs to the run what is new in it.

    Losses of batches go every EVERY seconds, full losses at once, and the rest when the block ends,
    however it ends. What a resumed training brings along goes too: the run keeps what it lacks.
    """
    curves = _Curves(tracked, settings, batch_size, clock)
    try:
        yield curves.watch
    finally:
        curves.send()


class _Curves:
    """How much of a record was logged to the run, and how long its newest steps took."""

    def __init__(
        self, tracked: Run, settings: Settings, batch_size: int, clock: Callable[[], float]
    ) -> None:
        self.tracked, self.batch_size, self.clock = tracked, batch_size, clock
        self.rates = learning_rates(settings.optimizer, settings.training.max_steps)
        self.record: Record | None = None
        self.steps = self.evaluations = 0
        self.sent = clock()
        self.done, self.seen = 0, self.sent
        self.timed, self.seconds = 0, 0.0

    def watch(self, record: Record) -> None:
        """Time spent on an evaluation, without a step, does not count towards the speed."""
        done, now = len(record.batch_losses), self.clock()
        if self.record is not None and done > self.done:
            self.timed += done - self.done
            self.seconds += now - self.seen
        self.record, self.done, self.seen = record, done, now
        if len(record.evaluations) > self.evaluations or now - self.sent >= EVERY:
            self.send()

    def send(self) -> None:
        """Log to the run what was not logged yet."""
        if self.record is None:
            return
        done = self._losses(self.record.batch_losses)
        if self.seconds:
            speed = self.timed * self.batch_size / self.seconds
            self.tracked.metric("tokens_per_second", speed, done)
            self.timed, self.seconds = 0, 0.0
        for evaluation in self.record.evaluations[self.evaluations :]:
            full = {"train": evaluation.train_loss_nats}
            full["validation"] = evaluation.validation_loss_nats
            self.tracked.metrics({f"{k}.loss_nats": v for k, v in full.items()}, evaluation.step)
        self.evaluations, self.sent = len(self.record.evaluations), self.clock()
        self.tracked.flush()

    def _losses(self, losses: list[float]) -> int:
        """Those of new steps, and the learning rate of the last; how many steps are done."""
        done = len(losses)
        if done > self.steps:
            self.tracked.curve("batch.loss_nats", self.steps + 1, losses[self.steps :])
            rate = next(islice(self.rates, done - self.steps - 1, None))
            self.tracked.metric("learning_rate", rate, done)
            self.steps = done
        return done
