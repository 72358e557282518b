"""One self-contained HTML page of what a run measured: it loads nothing from elsewhere.

Text of the corpus occurs in it only as escaped text or as JSON that no parser takes for a tag.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import vl_convert
from numpy.typing import NDArray

from neural_ngram.artifacts import read_text, write_text
from neural_ngram.evaluation.decomposition import Decomposition
from neural_ngram.export.charts import Chart, decomposition_chart
from neural_ngram.export.templates import fill

__all__ = ["MOST_TOKENS", "EmbeddingMap", "Measured", "drawing_library", "embedding_map", "render"]

MOST_TOKENS = 1000
NAMED_TOKENS = 40
HEIGHT = 260


@dataclass(frozen=True)
class EmbeddingMap:
    """Tokens in the plane: columns token, x, y, count; and the fraction of variance it keeps."""

    tokens: pd.DataFrame
    share: float


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What the stages wrote of one run; tables have the columns of their CSV files.

    figures: of `evaluate`, and of `evaluate-test` when test was unsealed. split: the report of
    `split-corpus`. test_evaluations: the lines of the ledger. samples: of `generate`.
    settings: values by dotted name.
    """

    name: str
    parameters: int
    figures: Mapping[str, Any]
    split: Mapping[str, Any]
    test_evaluations: Sequence[Mapping[str, Any]]
    samples: Mapping[str, Any]
    settings: Mapping[str, object]
    evaluations: pd.DataFrame
    parts: Decomposition
    positions: pd.DataFrame
    frequencies: pd.DataFrame
    calibration: pd.DataFrame
    entropies: pd.DataFrame
    embedding: EmbeddingMap


def render(measured: Measured, library: str) -> str:
    """The page; `library` is the JavaScript of `drawing_library`."""
    return fill(
        "report.html",
        measured=measured,
        figures=measured.figures,
        of_this_split=[e for e in measured.test_evaluations if _is_of_this_split(e, measured)],
        charts={name: chart.to_dict() for name, chart in _charts(measured).items()},
        library=library,
    )


def drawing_library(folder: Path) -> str:
    """The JavaScript that draws the charts; a copy in `folder` saves the seconds of bundling it.

    The copy is named after the version of the package that bundles it.
    """
    copy = folder / f"vega-{version('vl-convert-python')}.js"
    if not copy.exists():
        write_text(copy, vl_convert.javascript_bundle())  # type: ignore[call-arg]
    return read_text(copy)


def embedding_map(
    plane_V2: NDArray[np.float64], share: float, labels: Sequence[str], counts_V: NDArray[np.int64]
) -> EmbeddingMap:
    """The most frequent tokens of the plane, most frequent first."""
    order = np.argsort(-counts_V, kind="stable")[:MOST_TOKENS]
    x, y = plane_V2[order].T
    names = [labels[token] for token in order]
    tokens = pd.DataFrame({"token": names, "x": x, "y": y, "count": counts_V[order]})
    return EmbeddingMap(tokens, share)


def _is_of_this_split(evaluation: Mapping[str, Any], measured: Measured) -> bool:
    return bool(evaluation["corpus_sha256"] == measured.split["manifest_sha256"])


def _charts(measured: Measured) -> dict[str, Chart]:
    return {
        "curves": _curves(measured.evaluations, measured.parts.baseline),
        "decomposition": _wide(decomposition_chart(measured.parts), 200),
        "entropies": _entropies(measured.entropies),
        "positions": _bands(measured.positions, "first_place", "position in the document, from"),
        "frequencies": _bands(measured.frequencies, "least_count", "occurrences in train, from"),
        "calibration": _calibration(measured.calibration),
        "embedding": _embedding(measured.embedding.tokens),
    }


def _wide(chart: Chart, height: int = HEIGHT) -> Chart:
    return chart.properties(width="container", height=height)


def _by_partition(table: pd.DataFrame, key: str) -> pd.DataFrame:
    """One row per key and partition, from one column of losses per partition."""
    parts = [
        pd.DataFrame({key: table[key], "partition": name, "nats": table[f"{name}_loss_nats"]})
        for name in ("train", "validation")
    ]
    return pd.concat(parts, ignore_index=True).dropna()


def _colour(*others: str) -> alt.Color:
    """The partitions in the same colours on every chart."""
    domain = ["train", "validation", *others]
    return alt.Color("partition:N", title=None, scale=alt.Scale(domain=domain))


def _curves(evaluations: pd.DataFrame, baseline: float) -> Chart:
    lines = alt.Chart(_by_partition(evaluations, "step")).mark_line(point=True)
    level = pd.DataFrame({"part": ["Kneser-Ney"], "partition": "Kneser-Ney", "nats": baseline})
    rule = alt.Chart(level).mark_rule(strokeDash=[5, 4], strokeWidth=1.5)
    nats = alt.Y("nats:Q", title="nats per token", scale=alt.Scale(zero=False))
    colour = _colour("Kneser-Ney")
    tooltip = ["partition:N", "step:Q", alt.Tooltip("nats:Q", format=".4f")]
    return _wide(
        lines.encode(x=alt.X("step:Q", title="step"), y=nats, color=colour, tooltip=tooltip)
        + rule.encode(y="nats:Q", color=colour, tooltip=["part:N", "nats:Q"])
    )


def _entropies(entropies: pd.DataFrame) -> Chart:
    return _wide(
        alt.Chart(entropies)
        .mark_line(point=True)
        .encode(
            x=alt.X("k:O", title="context length in tokens", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("entropy_nats:Q", title="nats per token"),
            tooltip=["k:O", alt.Tooltip("entropy_nats:Q", format=".4f"), "contexts:Q"],
        )
    )


def _bands(table: pd.DataFrame, key: str, title: str) -> Chart:
    return _wide(
        alt.Chart(_by_partition(table, key))
        .mark_line(point=True)
        .encode(
            x=alt.X(f"{key}:O", title=title, axis=alt.Axis(labelAngle=0, labelOverlap=True)),
            y=alt.Y("nats:Q", title="nats per token"),
            color=_colour(),
            tooltip=["partition:N", f"{key}:O", alt.Tooltip("nats:Q", format=".4f")],
        )
    )


def _calibration(calibration: pd.DataFrame) -> Chart:
    """Predicted against observed probability; on the diagonal, confidence equals accuracy."""
    unit = alt.Scale(domain=[0, 1])
    ends = alt.Chart(pd.DataFrame({"predicted": [0, 1], "observed": [0, 1]}))
    diagonal = ends.mark_line(strokeDash=[5, 4], opacity=0.5)
    points = alt.Chart(calibration).mark_line(point=True)
    x = alt.X("predicted:Q", title="probability given", scale=unit)
    y = alt.Y("observed:Q", title="observed fraction", scale=unit)
    shown = [alt.Tooltip(f"{name}:Q", format=".3f") for name in ("predicted", "observed")]
    return _wide(diagonal.encode(x=x, y=y) + points.encode(x=x, y=y, tooltip=[*shown, "tokens:Q"]))


def _embedding(tokens: pd.DataFrame) -> Chart:
    plane = {name: alt.X if name == "x" else alt.Y for name in "xy"}
    places = {name: axis(f"{name}:Q", title=None, axis=None) for name, axis in plane.items()}
    points = alt.Chart(tokens).mark_circle(size=42, opacity=0.65)
    names = alt.Chart(tokens[:NAMED_TOKENS]).mark_text(dy=-8, fontSize=11)
    rarity = alt.Color("count:Q", scale=alt.Scale(type="symlog"), legend=None)
    tooltip = ["token:N", "count:Q"]
    return _wide(
        points.encode(**places, color=rarity, tooltip=tooltip)
        + names.encode(**places, text="token:N", tooltip=tooltip),
        480,
    )
