"""Run a learning-rate range test with the current settings: a table, a picture, a suggestion.

The learning rate rises from --low to --high while a fresh model trains; nothing of the pipeline
changes.
"""

import argparse
from pathlib import Path

import pandas as pd
import torch

from neural_ngram.artifacts import write_bytes, write_csv
from neural_ngram.cli.last_run import current_settings
from neural_ngram.export.charts import png, range_chart
from neural_ngram.model.threads import thread_count
from neural_ngram.pipeline.console import say
from neural_ngram.pipeline.project import TOKENIZER, WINDOWS, parameters, run_name
from neural_ngram.tokens import windows as token_windows
from neural_ngram.tracking.run import start_run
from neural_ngram.training.range_test import range_test
from neural_ngram.training.start import architecture_of, tokens_of, untrained

__all__ = ["add", "run"]

RANGE = Path("artifacts/range")


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("--low", type=float, default=1e-4, help="first rate (default 0.0001)")
    parser.add_argument("--high", type=float, default=10.0, help="last rate (default 10)")
    parser.add_argument("--steps", type=int, default=500, help="number of steps (default 500)")
    parser.epilog = "examples:\n  neural-ngram range\n  neural-ngram range --low 0.001 --high 1"


def run(chosen: argparse.Namespace) -> None:
    """Sweep on the windows of train, from fresh weights; nothing of the pipeline changes."""
    bounds, steps = (chosen.low, chosen.high), chosen.steps
    settings = current_settings()
    windows, origin = token_windows.load(WINDOWS / "train")
    architecture = architecture_of(settings, windows, origin)
    torch.set_num_threads(thread_count(architecture, settings.training))
    model = untrained(architecture, settings, tokens_of(TOKENIZER), say)
    swept = range_test(model, windows, settings, bounds=bounds, steps=steps)
    columns = {"learning_rate": swept.rates, "loss_nats": swept.losses, "smoothed": swept.smoothed}
    write_csv(RANGE / "range.csv", pd.DataFrame(columns))
    drawn = range_chart(swept.rates, swept.losses, swept.smoothed, swept.suggestion)
    write_bytes(RANGE / "range.png", png(drawn))
    with start_run(f"{run_name(settings)} range test", parameters(settings)) as tracked:
        for step, (rate, loss) in enumerate(zip(swept.rates, swept.losses, strict=True)):
            tracked.metrics({"range.learning_rate": rate, "range.loss_nats": loss}, step)
        tracked.metric("range.suggestion", swept.suggestion)
        tracked.artifact(RANGE, "range")
    print(
        f"{RANGE}: the loss fell fastest near optimizer.learning_rate={swept.suggestion:.2g} "
        f"({len(swept.rates)} steps from {swept.rates[0]:.2g} to {swept.rates[-1]:.2g})"
    )
