"""Pictures of what was measured, as Vega-Lite charts: for the page of a run, or as PNG."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd
import vl_convert
from numpy.typing import NDArray

from neural_ngram.evaluation.decomposition import Decomposition

__all__ = [
    "Chart",
    "decomposition_chart",
    "decomposition_png",
    "embedding_chart",
    "png",
    "range_chart",
]

Chart = alt.Chart | alt.LayerChart | alt.FacetChart | alt.HConcatChart
MODEL, REFERENCE = "model", "reference"


def png(chart: Chart) -> bytes:
    """The chart as a PNG picture, the same bytes for the same chart."""
    config = {"legend": {"orient": "top"}}
    return bytes(vl_convert.vegalite_to_png(chart.to_json(), scale=2, config=config))


def decomposition_chart(parts: Decomposition) -> Chart:
    """The model's validation loss as a stacked bar of its parts, next to the reference losses."""
    rows = [MODEL, *(each.part for each in parts.references)]
    kinds = [*(each.part for each in parts.summands), REFERENCE]
    y = alt.Y("row:N", title=None, scale=alt.Scale(domain=rows))
    x = alt.X(
        "start:Q",
        title="nats per token on validation",
        scale=alt.Scale(domain=[0, 1.15 * max(each.nats for each in parts.all)]),
    )
    colour = alt.Color(
        "kind:N", title=None, scale=alt.Scale(domain=kinds), legend=alt.Legend(columns=2)
    )
    tooltip = ["part:N", alt.Tooltip("nats:Q", format=".4f"), "meaning:N"]
    bars = alt.Chart(_bars(parts)).mark_bar(height={"band": 0.7})
    totals = pd.DataFrame(
        {"row": rows, "nats": [each.nats for each in (parts.total, *parts.references)]}
    )
    texts = alt.Chart(totals).mark_text(align="left", dx=5)
    return alt.layer(
        bars.encode(x=x, x2="end:Q", y=y, color=colour, tooltip=tooltip),
        texts.encode(x="nats:Q", y=y, text=alt.Text("nats:Q", format=".3f")),
    )


def decomposition_png(parts: Decomposition) -> bytes:
    """That chart as a picture by itself."""
    return png(decomposition_chart(parts).properties(width=520, height=200))


def _bars(parts: Decomposition) -> pd.DataFrame:
    """One row per bar: row, kind, start, end, and the part that it shows."""
    bars, end = list[dict[str, Any]](), 0.0
    for each in parts.summands:
        start, end = end, end + each.nats
        bars.append({"row": MODEL, "kind": each.part, "start": start, "end": end, **vars(each)})
    for each in parts.references:
        bars.append(
            {"row": each.part, "kind": REFERENCE, "start": 0.0, "end": each.nats, **vars(each)}
        )
    return pd.DataFrame(bars)


def embedding_chart(plane_V2: NDArray[Any], labels: Sequence[str], share: float) -> Chart:
    """Each token's label at its position; `share` is the fraction of variance the plane keeps."""
    places = [
        {"x": x, "y": y, "label": label}
        for (x, y), label in zip(plane_V2.tolist(), labels, strict=True)
    ]
    tokens = alt.Chart(
        _data(places),
        title=f"{len(labels):,} tokens; the plane keeps {share:.0%} of the variance",
    ).encode(x=alt.X("x:Q", title=None), y=alt.Y("y:Q", title=None))
    points = tokens.mark_circle(size=6, color="#9d9da1")
    texts = tokens.mark_text(fontSize=9).encode(text="label:N")
    return alt.layer(points, texts, width=800, height=800)


def range_chart(
    rates: NDArray[Any], losses: NDArray[Any], smoothed: NDArray[Any], suggestion: float
) -> Chart:
    """Loss against learning rate, and the rate at which it falls fastest."""
    top = float(smoothed[0]) + 1.0
    x = alt.X("rate:Q", title="learning rate", scale=alt.Scale(type="log"))
    y = alt.Y("nats:Q", title="nats", scale=alt.Scale(domain=[float(smoothed.min()) - 0.3, top]))
    suggested = f"suggested {suggestion:.2g}"
    colour = alt.Color(
        "curve:N",
        title=None,
        scale=alt.Scale(
            domain=["batch", "smoothed", suggested], range=["#9d9da1", "#4c78a8", "#f58518"]
        ),
    )
    curves = [
        alt.Chart(_data(_points(rates, nats, curve)))
        .mark_line(clip=True, strokeWidth=width)
        .encode(x=x, y=y, color=colour)
        for curve, nats, width in (("batch", losses, 0.7), ("smoothed", smoothed, 2))
    ]
    rule = alt.Chart(_data([{"rate": suggestion, "curve": suggested}])).mark_rule()
    return alt.layer(*curves, rule.encode(x=x, color=colour), width=640, height=300)


def _data(rows: list[dict[str, Any]]) -> alt.Data:
    """Rows as plain values: the library accepts at most 5,000 rows of a table."""
    return alt.Data(values=rows)  # type: ignore[no-untyped-call]


def _points(rates: NDArray[Any], nats: NDArray[Any], curve: str) -> list[dict[str, Any]]:
    rows = zip(rates.tolist(), nats.tolist(), strict=True)
    return [{"rate": rate, "nats": value, "curve": curve} for rate, value in rows]
