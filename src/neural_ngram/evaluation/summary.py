"""The table at the end of an evaluation: each partition between its floor and its baseline."""

import math
import sys
from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

__all__ = ["show", "summary"]

HEADER = ("partition", "tokens", "loss", "perplexity", "bits per byte", "floor", "baseline")


def summary(
    metrics: Mapping[str, Any], counted: Mapping[str, Any], context_length: int
) -> list[tuple[str, ...]]:
    """One row per partition, losses in nats; the floor is that of train, where it was counted.

    metrics: of the model. counted: of the stage oracle-conditional-entropy.
    """
    rows: list[tuple[str, ...]] = []
    floor = ""
    if "train" in metrics:
        floor = f"{counted['oracle'][f'k{context_length}']['entropy_nats']:.4f}"
    for name in ("train", "validation", "test"):
        if name in metrics:
            own = metrics[name]
            baseline = own.get("kneser_ney") or counted["kneser_ney"][name]
            figures = (
                f"{own['tokens']:,}",
                f"{own['loss_nats']:.4f}",
                f"{own.get('perplexity', math.inf):.2f}",
                f"{own.get('bits_per_byte', math.nan):.4f}",
                floor if name == "train" else "",
                f"{baseline['loss_nats']:.4f}",
            )
            rows.append((name, *figures))
    return rows


def show(rows: list[tuple[str, ...]]) -> None:
    """Print the rows: ruled in a terminal, as aligned plain text elsewhere."""
    terminal = sys.stdout.isatty()
    table = Table(
        box=box.SIMPLE_HEAD if terminal else None, pad_edge=terminal, padding=(0, 3, 0, 0)
    )
    for column, name in enumerate(HEADER):
        table.add_column(name, justify="right" if column else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = Console(width=None if terminal else 100, highlight=False)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        print(f"  {line.rstrip()}", flush=True)
