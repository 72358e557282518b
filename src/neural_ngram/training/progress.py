"""How far a training run is: a bar in a terminal, plain lines elsewhere."""

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Thread

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from neural_ngram.pipeline.console import say
from neural_ngram.training.loop import Evaluation, Record

__all__ = ["Lines", "outcome", "pace", "progress"]

SILENCE = 25.0  # seconds after which a line reports only the current step


@contextmanager
def progress(steps: int, batch_size: int) -> Iterator[Callable[[Record], None]]:
    """A function to call with the record so far; evaluations are printed as they come.

    Without a bar, a line is printed at least every 30 seconds, also during an evaluation.
    """
    measured = pace(steps, batch_size)
    if not sys.stderr.isatty():
        with _beating(Lines(say, measured)) as lines:
            yield lines.watch
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=steps)
        lines = Lines(lambda text: bar.console.print(f"  {text}", highlight=False), measured)

        def watch(record: Record) -> None:
            lines.watch(record)
            done = len(record.batch_losses)
            loss = f"loss {record.batch_losses[-1]:.4f}   " if done else ""
            bar.update(task, completed=done, description=loss + lines.speed)

        yield watch


@contextmanager
def _beating(lines: "Lines") -> Iterator["Lines"]:
    """Update the lines in a separate thread, since a step or an evaluation may take long."""
    over = Event()

    def beat() -> None:
        while not over.wait(1):
            lines.beat()

    thread = Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield lines
    finally:
        over.set()
        thread.join()


def pace(
    steps: int, batch_size: int, clock: Callable[[], float] = time.monotonic
) -> Callable[[int], str]:
    """A function from the steps done to tokens per second and time left.

    Counted from the step at which training starts or resumes. Empty before the first step.
    """
    start: tuple[int, float] | None = None

    def measured(done: int) -> str:
        nonlocal start
        now = clock()
        if start is None or done == start[0]:
            start = (done, now)
        first, since = start
        if done == first or now == since:
            return ""
        rate = (done - first) / (now - since)
        left = timedelta(seconds=round((steps - done) / rate))
        return f"{rate * batch_size:,.0f} tokens/s   {left} left"

    return measured


class Lines:
    """A line for each evaluation, and one whenever nothing was printed for long."""

    def __init__(
        self,
        write: Callable[[str], None],
        measured: Callable[[int], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.write, self.measured, self.clock = write, measured, clock
        self.losses: list[float] = []
        self.told, self.speed, self.last = 0, "", clock()

    def watch(self, record: Record) -> None:
        """Write the evaluations that are new."""
        self.losses = record.batch_losses
        self.speed = self.measured(len(self.losses))
        for evaluation in record.evaluations[self.told :]:
            self._line(_losses(evaluation))
        self.told = len(record.evaluations)

    def beat(self) -> None:
        """Write the current step when nothing was written for long."""
        if self.clock() - self.last >= SILENCE:
            done = len(self.losses)
            loss = f"batch {self.losses[-1]:.4f} nats" if done else "first evaluation"
            self._line(f"step {done:>7,}   {loss}")

    def _line(self, text: str) -> None:
        self.last = self.clock()
        self.write(f"{text}   {self.speed}".rstrip())


def _losses(evaluation: Evaluation) -> str:
    return (
        f"step {evaluation.step:>7,}   train {evaluation.train_loss_nats:.4f}   "
        f"validation {evaluation.validation_loss_nats:.4f} nats"
    )


def outcome(record: Record, vocabulary_size: int) -> Iterator[str]:
    """Sentences about a finished training: where it started, and which weights it kept."""
    yield (
        f"initial loss {record.evaluations[0].train_loss_nats:.4f} nats "
        f"(a uniform model: ln V = {math.log(vocabulary_size):.4f})"
    )
    if record.kept_step < len(record.batch_losses):
        yield f"kept the weights of step {record.kept_step:,}, the best on validation"
