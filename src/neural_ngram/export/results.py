"""Published figures and those measured here, as a table.

A figure names where its value is found in a run:

    metric:NAME            the last value of an MLflow metric; metric:NAME@STEP that of a step
    perplexity:NAME        exp of the last value of a metric in nats
    mean:NAME@FIRST-LAST   the mean of a metric over steps, both included
    evidence:PATH          a value of evidence.json, keys joined by dots
    generation:PATH        the same of samples.json
    EXPERIMENT/…           a figure that another experiment has as well, for comparison
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from neural_ngram.errors import ArtifactError
from neural_ngram.evaluation.metrics import perplexity

__all__ = [
    "SPEED",
    "Figure",
    "Measured",
    "difference",
    "look_up",
    "read_figures",
    "render",
    "render_speed",
]

SMALL = 5e-7
SPEED = "## Speed"
COLUMNS = ("experiment", "figure", "where", "published", "source")
HEAD = """# Published figures and ours

Written by `neural-ngram results` from the MLflow runs of this machine: for each experiment the
newest run whose settings are exactly those of its preset (`training.threads` and `corpus.path`
aside; the preset says where a path is needed; a setting added after the run counts as its
default). Ours is printed to six decimals and the difference is taken before rounding.
Losses are in nats per token; times are wall-clock, on a machine that may have had other work.
Test partitions are sealed, so where a source gives a figure on test, ours is on validation and the
row says so; only on Brown was test scored as well (`-S evaluation.unseal_test=true`; each test
evaluation is recorded in `ledger.jsonl`). There the vocabularies also differ, and perplexities over
different vocabularies are not comparable: the preset `bengio_brown` says by how much they differ.
"""


@dataclass(frozen=True)
class Figure:
    """One published number, or one of ours that nobody published (`published` is then empty)."""

    experiment: str
    figure: str
    where: str
    published: str
    source: str


@dataclass(frozen=True)
class Measured:
    """A run: how long training took, its metrics by name and step, its JSON files by name."""

    seconds: float
    metrics: Mapping[str, Mapping[int, float]]
    files: Mapping[str, Mapping[str, Any]]


def read_figures(text: str) -> list[Figure]:
    """The rows of a CSV file with the columns experiment, figure, where, published, source."""
    rows = csv.DictReader(text.splitlines())
    if tuple(rows.fieldnames or ()) != COLUMNS:
        raise ArtifactError(
            f"docs/published.csv has the columns {rows.fieldnames}, not {', '.join(COLUMNS)}; "
            "fix its first line"
        )
    return [Figure(**row) for row in rows]


def look_up(measured: Measured, where: str) -> Any:
    """The value that a figure names, None when the run has none."""
    kind, _, path = where.partition(":")
    if kind == "perplexity":
        nats = look_up(measured, f"metric:{path}")
        return None if nats is None else perplexity(nats)
    if kind in ("metric", "mean"):
        name, _, steps = path.partition("@")
        history = measured.metrics.get(name, {})
        first, _, last = steps.partition("-")
        if kind == "mean":
            wanted = range(int(first), int(last) + 1)
            complete = all(step in history for step in wanted)
            return sum(history[s] for s in wanted) / len(wanted) if complete else None
        return history.get(int(first) if first else max(history, default=0))
    value: Any = measured.files.get(kind)
    for key in path.split("."):
        if isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            value = value.get(key) if isinstance(value, Mapping) else None
    return value


def difference(published: str, ours: Any) -> str:
    """Ours minus the published number; for other values, whether they are the same."""
    if not published or ours is None:
        return ""
    if isinstance(ours, list | bool | str):
        return "same" if _plain(ours) == published else "differs"
    gap = float(ours) - float(published.replace(",", ""))
    if gap and gap.is_integer():
        return f"{gap:+,.0f}"
    if abs(gap) >= SMALL:
        return f"{gap:+.6f}"
    return f"{gap:+.0e}" if gap else "0"


def render(figures: Sequence[Figure], measured: Mapping[str, Measured], machine: str) -> str:
    """The Markdown page: one table per experiment, in the order of the figures."""
    parts = [HEAD, f"Machine: {machine}.\n"]
    for experiment, group in groupby(figures, lambda figure: figure.experiment):
        run = measured.get(experiment)
        cost = f"trained in {run.seconds:,.0f} s" if run else "not run on this machine"
        parts.append(
            f"## {experiment}\n\n`dvc exp run -S experiment={experiment}` "
            f"([settings](../conf/experiment/{experiment}.yaml); {cost})\n"
        )
        rows = ["| figure | published | ours | difference | source |", "| --- " * 5 + "|"]
        for figure in group:
            other, _, where = figure.where.rpartition("/")
            source = measured.get(other) if other else run
            ours = look_up(source, where) if source else None
            gap = difference(figure.published, ours)
            cells = (figure.figure, figure.published, _plain(ours), gap, figure.source)
            rows.append("| " + " | ".join(cells) + " |")
        parts.append("\n".join(rows) + "\n")
    return "\n".join(parts)


def render_speed(text: str) -> str:
    """The Markdown section of a CSV file that `make bench` wrote."""
    rows = list(csv.DictReader(text.splitlines()))
    lines = [
        SPEED,
        "",
        "Ours beside the usual way, in turns within one run of `make bench`: medians, and the",
        "median ratio of neighbouring turns. Written from [speed.csv](speed.csv); how cost grows:",
        "[growth.csv](growth.csv) and [the picture](growth.png). Why not more:",
        "[speed.md](speed.md).",
        "",
        f"Machine: {rows[0]['machine']}.",
        "",
        "| task | ours, ms | peer, ms | ratio | peer | reached, ours / peer |",
        "| --- " * 6 + "|",
    ]
    for row in rows:
        times = f"{float(row['ours_ms']):,.3f} | {float(row['peer_ms']):,.3f}"
        ratio = f"{float(row['ratio']):.2f}"
        lines.append(f"| {row['task']} | {times} | {ratio} | {row['peer']} | {row['reached']} |")
    return "\n".join(lines) + "\n"


def _plain(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() else f"{value:.6f}"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else str(value).replace(", ", " ")
