"""From scores to cross-entropy, perplexity, bits per byte, accuracy and a loss decomposition.

A model's validation loss is its floor, plus its excess training loss, plus its generalization gap.
It is compared with the baseline (interpolated modified Kneser-Ney over the same windows) and with
interpolations of the two (Bengio et al. 2003, section 3.1).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from neural_ngram.evaluation.metrics import mean_loss
from neural_ngram.evaluation.scoring import Scores
from neural_ngram.model.network import Model, logits, views
from neural_ngram.ngram.interpolation import interpolated_loss, tuned_weight

__all__ = [
    "Decomposition",
    "Part",
    "compared",
    "decomposition",
    "few",
    "flat",
    "gap_cause",
    "interpolations",
    "logit_rank",
    "report",
]

Floats = NDArray[np.float64]
LARGEST_TABLE = 4096
COMPARED = ("loss_nats", "perplexity", "bits_per_byte", "accuracy")


@dataclass(frozen=True)
class Part:
    """One row of the decomposition: its name, its size in nats per token, and what it means."""

    part: str
    nats: float
    meaning: str


@dataclass(frozen=True, kw_only=True)
class Decomposition:
    """Where a model's validation loss comes from, and what to compare it with, in nats per token.

    floor: conditional entropy of the train windows given the model's context.
    excess: train loss above the floor.
    generalization_gap: validation loss minus train loss.
    model: validation loss, the sum of these three.
    baseline: validation loss of Kneser-Ney on the same windows.
    equally_interpolated: of the mean of the probabilities of model and baseline.
    interpolated: of both with the model weighted `model_weight`, tuned on validation.
    cause: what limits the excess, as `gap_cause` phrases it.
    """

    floor: float
    excess: float
    generalization_gap: float
    model: float
    baseline: float
    equally_interpolated: float
    interpolated: float
    model_weight: float
    cause: str

    @property
    def summands(self) -> list[Part]:
        """What adds up to the model's validation loss."""
        return [
            Part(
                "floor",
                self.floor,
                "entropy of the next token given the context, on train: no model with "
                "this context does better there",
            ),
            Part("excess training loss", self.excess, f"limited by {self.cause}"),
            Part(
                "generalization gap",
                self.generalization_gap,
                "validation loss minus train loss",
            ),
        ]

    @property
    def total(self) -> Part:
        """The model's validation loss."""
        return Part("model", self.model, "validation loss, the sum of these")

    @property
    def references(self) -> list[Part]:
        """The losses to compare it with."""
        return [
            Part(
                "Kneser-Ney",
                self.baseline,
                "validation loss of the baseline, an n-gram model counted on train",
            ),
            Part(
                "equal-weight interpolation",
                self.equally_interpolated,
                "of model and baseline",
            ),
            Part(
                "tuned interpolation",
                self.interpolated,
                f"model weight {self.model_weight:.2f}, tuned on validation",
            ),
        ]

    @property
    def all(self) -> list[Part]:
        """Every row, as tables show them."""
        return [*self.summands, self.total, *self.references]


def report(scores: Scores, *, scored_bytes: int) -> dict[str, Any]:
    """The metrics of a neural model on one partition."""
    measured = mean_loss(scores.log_probabilities, scored_bytes=scored_bytes)
    return measured | {"accuracy": scores.accuracy}


def compared(figures: Mapping[str, Any], parts: Decomposition) -> dict[str, dict[str, float]]:
    """The few of the measured figures by which experiments are compared."""
    return {
        "train": {"loss_nats": figures["train"]["loss_nats"]},
        "validation": few(figures["validation"]),
        "floor": {"loss_nats": parts.floor},
        "kneser_ney": {"loss_nats": parts.baseline},
        "interpolated": {"loss_nats": parts.interpolated},
    }


def few(figures: Mapping[str, Any]) -> dict[str, float]:
    """The figures of one partition by which experiments are compared."""
    return {key: figures[key] for key in COMPARED if key in figures}


def flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Each figure of a nested mapping, by its dotted name."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def interpolations(
    model_N: Floats, baseline_N: Floats, *, weight: float | None = None
) -> dict[str, dict[str, float]]:
    """Losses of the equal-weight interpolation and of the one with a tuned weight of the model.

    model_N, baseline_N: (N,) log probabilities of the same windows, in nats.
    weight: as tuned on validation; None tunes it here, which is for validation only.
    """
    tuned = tuned_weight(model_N, baseline_N).weight if weight is None else weight
    return {
        "equal": {"loss_nats": interpolated_loss(model_N, baseline_N)},
        "tuned": {
            "loss_nats": interpolated_loss(model_N, baseline_N, weight=tuned),
            "model_weight": tuned,
        },
    }


def decomposition(
    model: Model, figures: Mapping[str, Any], counted: Mapping[str, Any]
) -> Decomposition:
    """Where the validation loss of a model comes from.

    figures: what `evaluate` measured, including the interpolations. counted: what the stage
    oracle-conditional-entropy counted.
    """
    train, validation = (figures[name]["loss_nats"] for name in ("train", "validation"))
    floor = counted["oracle"][f"k{model.architecture.context_length}"]["entropy_nats"]
    return Decomposition(
        floor=floor,
        excess=train - floor,
        generalization_gap=validation - train,
        model=validation,
        baseline=counted["kneser_ney"]["validation"]["loss_nats"],
        equally_interpolated=figures["interpolated"]["equal"]["loss_nats"],
        interpolated=figures["interpolated"]["tuned"]["loss_nats"],
        model_weight=figures["interpolated"]["tuned"]["model_weight"],
        cause=gap_cause(model, figures.get("logit_table")),
    )


def gap_cause(model: Model, ranks: dict[str, int] | None) -> str:
    """What keeps a model above its floor, as far as the widths show.

    ranks: of `logit_rank`. If the bound is below V - 1, the widths may limit it (softmax ignores a
    constant added to a row); otherwise only training does.
    """
    if ranks and ranks["rank_bound"] >= model.architecture.vocabulary_size - 1:
        return "optimisation, not capacity (the widths allow any table)"
    return "capacity or optimisation"


def logit_rank(model: Model) -> dict[str, int] | None:
    """The rank of a bigram model's logits as a (V, V) table, and the most that its widths allow.

    A linear bigram of width D factors the table, so its rank is at most min(D, V). The weights are
    taken in float64, so that the rank is that of the factors and not of their rounded product. None
    for longer contexts, and for vocabularies whose table would be large.
    """
    architecture = model.architecture
    V, settings = architecture.vocabulary_size, architecture.settings
    if architecture.context_length > 1 or V > LARGEST_TABLE:
        return None
    flat = model.flat.double()
    exact = Model(architecture, views(architecture, flat), flat)
    with torch.no_grad():
        table_VV = logits(exact, torch.arange(V)[:, None])
        rank = int(torch.linalg.matrix_rank(table_VV))
    widths = architecture.output_width + settings.direct * architecture.input_width
    return {"rank": rank, "rank_bound": min(widths + settings.output_bias, V)}
