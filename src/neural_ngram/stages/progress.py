"""How far a training run is: a bar in a terminal, a plain line an objective elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from neural_ngram.stages import say
from neural_ngram.training import Objective, Record

__all__ = ["pace", "progress"]


@contextmanager
def progress(steps: int, batch_size: int) -> Iterator[Callable[[Record], None]]:
    """A function to call with the record so far; objectives are printed as they come."""
    measured = pace(steps, batch_size)
    if not sys.stderr.isatty():
        yield _announcer(say, measured)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=steps)
        announce = _announcer(
            lambda text: bar.console.print(f"  {text}", highlight=False), measured
        )

        def watch(record: Record) -> None:
            announce(record)
            done = len(record.batch_losses)
            loss = f"loss {record.batch_losses[-1]:.4f}   " if done else ""
            bar.update(task, completed=done, description=loss + measured(done))

        yield watch


def pace(
    steps: int, batch_size: int, clock: Callable[[], float] = time.monotonic
) -> Callable[[int], str]:
    """A function from the steps done to tokens a second and time left, counted from its first call.

    A training that goes on starts at the steps of its checkpoint. Nothing is told before a step.
    """
    start: tuple[int, float] | None = None

    def measured(done: int) -> str:
        nonlocal start
        now = clock()
        start = start or (done, now)
        first, since = start
        if done == first or now == since:
            return ""
        rate = (done - first) / (now - since)
        left = timedelta(seconds=round((steps - done) / rate))
        return f"{rate * batch_size:,.0f} tokens/s   {left} left"

    return measured


def _announcer(
    write: Callable[[str], None], measured: Callable[[int], str]
) -> Callable[[Record], None]:
    told = 0

    def announce(record: Record) -> None:
        nonlocal told
        speed = measured(len(record.batch_losses))
        for objective in record.objectives[told:]:
            write(f"{_line(objective)}   {speed}".rstrip())
        told = len(record.objectives)

    return announce


def _line(objective: Objective) -> str:
    return (
        f"step {objective.step:>7,}   train {objective.train_loss_nats:.4f}   "
        f"validation {objective.validation_loss_nats:.4f} nats"
    )
