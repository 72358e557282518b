"""Pictures of what was measured."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from neural_ngram.evaluation import Part

__all__ = ["decomposition_chart", "embedding_chart", "range_chart"]

_COLOURS = ("#4c78a8", "#f58518", "#e45756")
_GREY = "#9d9da1"


def decomposition_chart(parts: Sequence[Part]) -> Figure:
    """The model's validation loss as a stacked bar of its first three parts, beside the others."""
    *stacked, model = parts[:4]
    others = parts[4:]
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    axes = figure.subplots()
    left = 0.0
    for part, colour in zip(stacked, _COLOURS, strict=True):
        axes.barh("model", part.nats, left=left, color=colour, label=part.part)
        left += part.nats
    axes.barh([part.part for part in others], [part.nats for part in others], color=_GREY)
    for part in (model, *others):
        axes.annotate(f" {part.nats:.3f}", (part.nats, part.part), verticalalignment="center")
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel("nats a token on validation")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def embedding_chart(plane_V2: NDArray[np.float64], labels: Sequence[str], share: float) -> Figure:
    """Each token's label at its place in the plane; `share` is what the plane keeps of variance."""
    figure = Figure(figsize=(8, 8), layout="constrained")
    axes = figure.subplots()
    axes.scatter(plane_V2[:, 0], plane_V2[:, 1], s=2, color=_GREY)
    for (x, y), label in zip(plane_V2.tolist(), labels, strict=True):
        text = label.replace("$", r"\$")
        axes.annotate(
            text, (x, y), horizontalalignment="center", verticalalignment="center", fontsize=8
        )
    axes.set_title(f"{len(labels):,} tokens; the plane keeps {share:.0%} of the variance")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def range_chart(
    rates: NDArray[np.float64],
    losses: NDArray[np.float64],
    smoothed: NDArray[np.float64],
    suggestion: float,
) -> Figure:
    """Loss against learning rate, and the rate at which it falls fastest."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(rates, losses, color=_GREY, linewidth=0.6, label="batch")
    axes.plot(rates, smoothed, color=_COLOURS[0], label="smoothed")
    axes.axvline(suggestion, color=_COLOURS[1], label=f"suggested {suggestion:.2g}")
    axes.set_xscale("log")
    low = float(smoothed.min())
    axes.set_ylim(low - 0.3, float(smoothed[0]) + 1.0)
    axes.set_xlabel("learning rate")
    axes.set_ylabel("nats")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
