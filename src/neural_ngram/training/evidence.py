"""Figures by which a run can be checked, number for number, besides its losses.

Dimension letters: C context length, D embedding width, K = C * D, V vocabulary.

Before the first step: shapes, one context (the probe) traced through the network, the gradient of
the first batch, and two windows that show what a table of short contexts confuses. All of it
depends only on the data, the settings and the seed.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from neural_ngram.model.architecture import parameter_count, parameter_shapes
from neural_ngram.model.hidden import hidden_layers
from neural_ngram.model.network import Model, embed, logits, views
from neural_ngram.ngram.sizes import table_sizes
from neural_ngram.settings import TrainingSettings
from neural_ngram.tokens.windows import Windows
from neural_ngram.training.batches import Batches
from neural_ngram.training.gradients.choice import gradients_of
from neural_ngram.training.loop import Record

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["contrast", "curves", "evidence_of_start", "first_gradients", "losses", "probe"]

HEAD = 6
LONGEST = 16  # tokens that key the largest table; longer sizes would only fill pages


def evidence_of_start(
    model: Model, windows: dict[str, Windows], probed: Sequence[int], settings: TrainingSettings
) -> dict[str, Any]:
    """Figures of a model before its first step."""
    architecture = model.architecture
    shapes = {name: list(shape) for name, shape in parameter_shapes(architecture).items()}
    return {
        "parameters": {"count": parameter_count(architecture), "shapes": shapes},
        "tables": table_sizes(
            architecture.vocabulary_size, min(max(3, architecture.context_length), LONGEST)
        ),
        "windows": {name: len(part) for name, part in windows.items()},
        "probe": probe(model, probed),
        "first_gradient_l1": first_gradients(model, windows["train"], settings),
        "contrast": contrast(windows["train"], architecture.input_width),
    }


def probe(model: Model, context: Sequence[int]) -> dict[str, Any]:
    """One context through the network: (C, D) embeddings, hidden, and the first logits of V."""
    with torch.no_grad():
        context_BC = torch.tensor([list(context)])
        x_BK = embed(model, context_BC)
        hidden_BW = hidden_layers(model.architecture.settings, model.parameters, x_BK)
        logits_V = logits(model, context_BC)[0]
    best = int(logits_V.argmax())
    return {
        "context": list(context),
        "embeddings": x_BK.view(len(context), -1).tolist(),
        "hidden": hidden_BW[0].tolist(),
        "logits": logits_V[:HEAD].tolist(),
        "argmax": best,
        "argmax_logit": float(logits_V[best]),
    }


def first_gradients(model: Model, train: Windows, settings: TrainingSettings) -> dict[str, float]:
    """The L1 norm of each parameter's gradient in the first batch, without dropout."""
    flat = torch.zeros_like(model.flat)
    gradient = views(model.architecture, flat)
    with torch.no_grad():
        batch = next(iter(Batches(model, train, settings)))
        frozen = model.architecture.settings.freeze_embedding
        gradients_of(model, gradient, frozen=frozen)(batch)
    return {name: float(values.abs().sum()) for name, values in gradient.items()}


def contrast(train: Windows, learned_width: int) -> dict[str, Any] | None:
    """The first two windows with the same last token, but different contexts and targets.

    A table keyed by the last token mixes the two targets; one keyed by all C tokens keeps them
    apart, since the chosen contexts have no other target in train. None when there are no such
    windows. `learned_width` is K, what a neural model reads in place of either table.
    """
    contexts = train.distinct
    followers = np.bincount(contexts.pairs.context, minlength=len(contexts))
    seen: dict[int, int] = {}
    for window in sorted(contexts.first[followers == 1].tolist()):
        last = int(train.tokens[train.positions[window] - 1])
        other = seen.setdefault(last, window)
        if contexts.targets[other] != contexts.targets[window]:
            pair = np.array([other, window])
            examples = zip(train.contexts(pair), contexts.targets[pair], strict=True)
            return {
                "last_token": last,
                "examples": [{"context": c.tolist(), "target": int(t)} for c, t in examples],
                "last_token_followers": len({int(t) for t in contexts.targets[pair]}),
                "full_context_followers": followers[contexts.context_of[pair]].tolist(),
                "learned_context_width": learned_width,
            }
    return None


def losses(record: Record) -> dict[str, Any]:
    """The full losses of a run, and how far validation fell; negative when it rose."""
    first = record.evaluations[0]
    return {
        "losses_nats": {
            str(o.step): {"train": o.train_loss_nats, "validation": o.validation_loss_nats}
            for o in record.evaluations
        },
        "validation_improvement_nats": first.validation_loss_nats
        - record.kept.validation_loss_nats,
    }


def curves(record: Record) -> "dict[str, pd.DataFrame]":
    """A table of the full losses, and one of each batch's loss by its step, in nats."""
    import pandas as pd  # noqa: PLC0415 - slow, and training from Python needs no tables

    batches = pd.DataFrame({"batch_loss_nats": record.batch_losses})
    batches.insert(0, "step", range(1, len(batches) + 1))
    return {"evaluations": pd.DataFrame(map(asdict, record.evaluations)), "batches": batches}
