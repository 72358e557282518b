"""The learning-rate range test of the current settings: a table, a picture, a suggestion."""

from pathlib import Path

import pandas as pd
import torch

from neural_ngram.artifacts import write_bytes, write_csv
from neural_ngram.cli.last_run import current_settings
from neural_ngram.export.charts import png, range_chart
from neural_ngram.model.threads import thread_count
from neural_ngram.pipeline.project import WINDOWS, parameters, run_name
from neural_ngram.tokens import windows as token_windows
from neural_ngram.tracking.run import start_run
from neural_ngram.training.range_test import range_test
from neural_ngram.training.start import architecture_of, untrained

__all__ = ["sweep_learning_rates"]

RANGE = Path("artifacts/range")


def sweep_learning_rates(low: float, high: float, steps: int) -> None:
    """Sweep on the train windows, from fresh weights; no file of the pipeline changes."""
    settings = current_settings()
    windows, origin = token_windows.load(WINDOWS / "train")
    architecture = architecture_of(settings, windows, origin)
    torch.set_num_threads(thread_count(architecture, settings.training))
    model = untrained(architecture, settings)
    swept = range_test(model, windows, settings, bounds=(low, high), steps=steps)
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
