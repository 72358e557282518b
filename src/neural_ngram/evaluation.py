"""What scores say: cross-entropy, perplexity, bits per byte, accuracy, and where a loss comes from.

A model's validation loss is its floor, plus what capacity or optimisation left above the floor on
train, plus the gap between train and validation. Beside it stand the rival (interpolated modified
Kneser-Ney over the same windows) and mixtures of the two (Bengio et al. 2003, section 3.1).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from neural_ngram.metrics import mean_loss
from neural_ngram.model import Model, logits, views
from neural_ngram.ngram import mixture_loss, tuned_weight
from neural_ngram.scoring import Scores

__all__ = ["Part", "compared", "decomposition", "gap_cause", "logit_rank", "mixtures", "report"]

Floats = NDArray[np.float64]
LARGEST_TABLE = 4096
COMPARED = ("loss_nats", "perplexity", "bits_per_byte", "accuracy")


@dataclass(frozen=True)
class Part:
    """One row of the decomposition: its name, its size in nats a token, and what it means."""

    part: str
    nats: float
    meaning: str


def report(scores: Scores, *, scored_bytes: int) -> dict[str, Any]:
    """The metrics of a neural model on one partition."""
    measured = mean_loss(scores.log_probabilities, scored_bytes=scored_bytes)
    return measured | {"accuracy": scores.accuracy}


def compared(figures: Mapping[str, Any], parts: Sequence[Part]) -> dict[str, dict[str, float]]:
    """The few figures by which experiments are compared, out of all that were measured."""
    nats = {part.part: part.nats for part in parts}
    partitions = {
        name: {key: figures[name][key] for key in COMPARED if key in figures[name]}
        for name in ("validation", "test")
        if name in figures
    }
    return {
        "train": {"loss_nats": figures["train"]["loss_nats"]},
        **partitions,
        "floor": {"loss_nats": nats["floor"]},
        "kneser_ney": {"loss_nats": nats["Kneser-Ney"]},
        "mixture": {"loss_nats": nats["tuned mixture"]},
    }


def mixtures(
    model_N: Floats, rival_N: Floats, *, weight: float | None = None
) -> dict[str, dict[str, float]]:
    """Losses of the half-and-half mixture and of the one with a tuned weight of the model.

    model_N, rival_N: (N,) log probabilities of the same windows, in nats.
    weight: as it was tuned on validation; None tunes it here, which only validation is for.
    """
    tuned = tuned_weight(model_N, rival_N).weight if weight is None else weight
    return {
        "half": {"loss_nats": mixture_loss(model_N, rival_N)},
        "tuned": {
            "loss_nats": mixture_loss(model_N, rival_N, weight=tuned),
            "model_weight": tuned,
        },
    }


def decomposition(
    *,
    floor: float,
    losses: Mapping[str, float],
    rival: float,
    mixed: dict[str, dict[str, float]],
    cause: str,
) -> list[Part]:
    """Where the validation loss comes from, and what stands beside it; all in nats a token.

    losses: the model's on train and validation.
    cause: what the gap above the floor is put down to, as `gap_cause` says it.
    """
    train, validation = losses["train"], losses["validation"]
    return [
        Part("floor", floor, "what the context cannot tell, even to a table of all train windows"),
        Part("above the floor", train - floor, f"what {cause} left on train"),
        Part("train to validation", validation - train, "what does not carry over to new text"),
        Part("model", validation, "the sum of these: the model's loss on validation"),
        Part("Kneser-Ney", rival, "the rival's loss on validation, counting the same windows"),
        Part("half and half", mixed["half"]["loss_nats"], "the mean of both probabilities"),
        Part(
            "tuned mixture",
            mixed["tuned"]["loss_nats"],
            f"the model weighted {mixed['tuned']['model_weight']:.2f}, tuned on validation",
        ),
    ]


def gap_cause(model: Model, ranks: dict[str, int] | None) -> str:
    """What keeps a model above its floor, as far as the widths tell.

    ranks: of `logit_rank`. Where the bound is below V - 1 the widths may (the softmax does not see
    a constant added to a row); else nothing but training does.
    """
    if ranks and ranks["rank_bound"] >= model.architecture.vocabulary_size - 1:
        return "optimisation, not capacity (the widths allow any table),"
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
