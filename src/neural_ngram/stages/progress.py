"""How far a training run is: a bar in a terminal, a plain line an objective elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from neural_ngram.stages import say
from neural_ngram.training import Objective, Record

__all__ = ["progress"]


@contextmanager
def progress(steps: int) -> Iterator[Callable[[Record], None]]:
    """A function to call with the record so far; objectives are printed as they come."""
    if not sys.stderr.isatty():
        yield _announcer(say)
        return
    columns = (
        TextColumn("  {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("training", total=steps)
        announce = _announcer(lambda text: bar.console.print(f"  {text}", highlight=False))

        def watch(record: Record) -> None:
            announce(record)
            bar.update(task, completed=len(record.batch_losses))

        yield watch


def _announcer(write: Callable[[str], None]) -> Callable[[Record], None]:
    told = 0

    def announce(record: Record) -> None:
        nonlocal told
        for objective in record.objectives[told:]:
            write(_line(objective))
        told = len(record.objectives)

    return announce


def _line(objective: Objective) -> str:
    return (
        f"step {objective.step:>7,}   train {objective.train_loss_nats:.4f}   "
        f"validation {objective.validation_loss_nats:.4f} nats"
    )
