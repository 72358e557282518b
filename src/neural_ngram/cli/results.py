"""The table of published figures and those measured here."""

import os
import platform
from pathlib import Path

from omegaconf import OmegaConf

from neural_ngram.artifacts import write_text
from neural_ngram.export.results import Figure, Measured, read_figures, render, render_speed
from neural_ngram.pipeline.configuration import composed, typed
from neural_ngram.pipeline.ledger import confirm
from neural_ngram.pipeline.project import parameters
from neural_ngram.pipeline.recorded import lines
from neural_ngram.settings import Settings
from neural_ngram.tracking.past import PastRun, newest_run

__all__ = ["write_results"]

PUBLISHED = Path("docs/published.csv")
PAGE = Path("docs/results.md")
SPEED_TABLE = Path("docs/speed.csv")
ASIDE = (
    *("corpus.path", "corpus.dependency", "corpus.split.lists_dependency"),
    *("training.vectors_dependency", "training.threads"),
)


def write_results() -> None:
    """Rewrite the page from the runs of this machine."""
    figures = read_figures(PUBLISHED.read_text(encoding="utf-8"))
    names = list(dict.fromkeys(figure.experiment for figure in figures))
    measured = {name: run for name in names if (run := _measured(name, figures)) is not None}
    page = render(figures, measured, _machine())
    if SPEED_TABLE.exists():
        page += "\n" + render_speed(SPEED_TABLE.read_text(encoding="utf-8"))
    write_text(PAGE, page)
    print(f"{PAGE}: {len(measured)} of {len(names)} experiments have a run")
    for name in names:
        if name not in measured:
            print(f"  dvc exp run -S experiment={name}")


def _measured(experiment: str, figures: list[Figure]) -> Measured | None:
    configuration = OmegaConf.create(composed(Path.cwd(), [f"experiment={experiment}"]))
    settings = typed(configuration, Path.cwd())  # type: ignore[arg-type]
    wanted = {k: v for k, v in parameters(settings).items() if k not in ASIDE}
    run = newest_run(wanted, parameters(Settings()))
    if run is None:
        return None
    places = [figure.where for figure in figures if figure.experiment == experiment]
    names = {
        place.partition(":")[2].partition("@")[0]
        for place in places
        if place.startswith(("metric:", "mean:", "perplexity:"))
    }
    _require_recorded(run)
    files = {"evidence": "training/evidence.json", "generation": "generation/samples.json"}
    return Measured(
        run.seconds,
        {name: run.history(name) for name in names},
        {kind: run.json(path) for kind, path in files.items()},
    )


def _require_recorded(run: PastRun) -> None:
    """Raise BoundaryError when the run has a loss on test that no line of the ledger records."""
    for loss in run.history("test.loss_nats").values():
        figures = {"model_sha256": run.model_sha256, "loss_nats": loss}
        confirm(lines(), figures, f"the MLflow run {run.run_id} ({run.name})")


def _machine() -> str:
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        models = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
        processor = models[0] if models else processor
    return f"{processor}, {os.cpu_count()} cores"
