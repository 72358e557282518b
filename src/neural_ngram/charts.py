"""Pictures of what was measured."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from neural_ngram.evaluation import Part

__all__ = ["decomposition_chart"]

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
