"""A trained model scored on whole partitions, and everything that is written of it.

Every window is scored once; figures, tables and sentences are derived from the scores.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from neural_ngram.evaluation.breakdown import (
    calibration,
    calibration_error,
    loss_by_frequency,
    loss_by_position,
)
from neural_ngram.evaluation.decomposition import (
    Decomposition,
    compared,
    decomposition,
    few,
    interpolations,
    logit_rank,
    report,
)
from neural_ngram.evaluation.scoring import Scores, score
from neural_ngram.evaluation.seen import seen_in_train
from neural_ngram.evaluation.summary import summary
from neural_ngram.model.network import Model
from neural_ngram.ngram.counts import Floats
from neural_ngram.tokens.windows import Windows

__all__ = [
    "Evaluation",
    "EvaluationOnTest",
    "Scored",
    "evaluate",
    "evaluate_test",
    "score_partition",
]

Loaded = tuple[Windows, Mapping[str, Any]]
Baseline = Callable[[Windows], Floats]


@dataclass(frozen=True, kw_only=True, eq=False)
class Scored:
    """A partition and what a model gave each of its windows.

    scored_bytes: the UTF-8 bytes that the targets stand for. unknown: the fraction of targets that
    are the unknown token; None where the tokenizer has none. seen: the fraction of windows, context
    and target, that also occur in train; None for train itself.
    """

    windows: Windows
    scores: Scores
    scored_bytes: int
    unknown: float | None
    seen: float | None = None

    @cached_property
    def figures(self) -> dict[str, Any]:
        """Losses in nats, perplexity, bits per byte, accuracy and the fractions."""
        fractions = {"unknown_fraction": self.unknown, "windows_seen_in_train": self.seen}
        measured = report(self.scores, scored_bytes=self.scored_bytes)
        return measured | {name: value for name, value in fractions.items() if value is not None}


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """A model on train and validation, between its floor and its baseline.

    counted: what the stage oracle-conditional-entropy counted: entropies, baseline losses.
    interpolated: losses of model and baseline interpolated, the weight tuned on validation.
    logit_table: rank and bound of a bigram's logits. source_entropy_nats: of a synthetic source
    given the model's context. Both are None for other models and texts.
    """

    train: Scored
    validation: Scored
    context_length: int
    counted: Mapping[str, Any]
    interpolated: Mapping[str, Any]
    parts: Decomposition
    logit_table: Mapping[str, int] | None
    source_entropy_nats: float | None
    has_test: bool

    @cached_property
    def figures(self) -> dict[str, Any]:
        """All numbers that were measured, by name."""
        error = {"calibration_error": calibration_error(self.tables["calibration"])}
        found: dict[str, Any] = {
            "train": self.train.figures,
            "validation": self.validation.figures | error,
            "interpolated": self.interpolated,
            "gap": {
                "above_floor_nats": self.parts.excess,
                "train_to_validation_nats": self.parts.generalization_gap,
                "above_baseline_nats": self.parts.model - self.parts.baseline,
            },
        }
        if self.logit_table:
            found["logit_table"] = self.logit_table
        if self.source_entropy_nats is not None:
            found["source"] = {"entropy_nats": self.source_entropy_nats}
        return found

    @property
    def report(self) -> dict[str, Any]:
        """The figures, and whether the split has a test partition, as JSON holds them."""
        return self.figures if self.has_test else self.figures | {"test_partition": "none"}

    @property
    def compared(self) -> dict[str, dict[str, float]]:
        """The few figures by which experiments are compared."""
        return compared(self.figures, self.parts)

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The decomposition, losses by position and by frequency, and the calibration."""
        partitions = {
            name: (part.windows, part.scores)
            for name, part in (("train", self.train), ("validation", self.validation))
        }
        return {
            "decomposition": pd.DataFrame(map(asdict, self.parts.all)),
            "positions": loss_by_position(partitions),
            "frequencies": loss_by_frequency(partitions),
            "calibration": calibration(self.validation.scores),
        }

    @property
    def summary(self) -> list[tuple[str, ...]]:
        """A row per partition, between its floor and its baseline."""
        return summary(self.figures, self.counted, self.context_length)

    @property
    def sentences(self) -> Iterator[str]:
        """What was found, a line each."""
        if self.logit_table:
            rank, bound = self.logit_table["rank"], self.logit_table["rank_bound"]
            yield f"the logit table has rank {rank} (the widths allow at most {bound})"
        if self.source_entropy_nats is not None:
            known = self.source_entropy_nats
            yield f"entropy of the synthetic source given this context: {known:.4f} nats"
        seen = self.validation.seen or 0.0
        yield f"{seen:.1%} of validation windows (context and target) also occur in train"
        for part in self.parts.all:
            yield f"{part.nats:8.4f} nats   {part.part}: {part.meaning}"
        if not self.has_test:
            yield "this split has no test partition"


@dataclass(frozen=True, kw_only=True, eq=False)
class EvaluationOnTest:
    """A model on test, with the weight of the interpolation that was tuned on validation."""

    test: Scored
    context_length: int
    baseline_loss_nats: float
    interpolated: Mapping[str, Any]

    @cached_property
    def figures(self) -> dict[str, Any]:
        """All numbers that were measured, by name."""
        baseline = {"kneser_ney": {"loss_nats": self.baseline_loss_nats}}
        return self.test.figures | baseline | {"interpolated": self.interpolated}

    @property
    def compared(self) -> dict[str, float]:
        """The few figures by which experiments are compared."""
        return few(self.figures)

    @property
    def summary(self) -> list[tuple[str, ...]]:
        """One row, with the baseline."""
        return summary({"test": self.figures}, {}, self.context_length)


def score_partition(
    model: Model,
    loaded: Loaded,
    *,
    unknown: int | None,
    batch_size: int,
    train: Windows | None = None,
) -> Scored:
    """Score every window of a partition once.

    loaded: the windows and their description, which has `scored_bytes`. unknown: the ID of the
    tokenizer's unknown token. batch_size: bounds memory. train: the windows of train, of any other
    partition, to find what of it occurs there.

    Raises ModelError when the windows do not belong to the model.
    """
    windows, described = loaded
    scores = score(model, windows, batch_size=batch_size)
    return Scored(
        windows=windows,
        scores=scores,
        scored_bytes=described["scored_bytes"],
        unknown=None if unknown is None else float((windows.targets() == unknown).mean()),
        seen=None if train is None else seen_in_train(train, windows),
    )


def evaluate(  # noqa: PLR0913 - what an evaluation reads
    model: Model,
    partitions: Mapping[str, Loaded],
    baseline: Baseline,
    counted: Mapping[str, Any],
    *,
    unknown: int | None,
    batch_size: int,
    source_entropies_nats: Sequence[float] = (),
    has_test: bool = True,
) -> Evaluation:
    """Score `train` and `validation` and set the model beside its floor and its baseline.

    partitions: windows and descriptions, as `tokens.windows.load` gives them.
    baseline: the (N,) log probabilities of a baseline over windows, in nats.
    counted: `oracle` and `kneser_ney`, as the stage oracle-conditional-entropy writes them.
    source_entropies_nats: H(next | last k) of a synthetic source, from k = 0. The others are those
    of `score_partition`, which says what is raised.
    """
    scored = {
        name: score_partition(
            model, partitions[name], unknown=unknown, batch_size=batch_size, train=train
        )
        for name, train in (("train", None), ("validation", partitions["train"][0]))
    }
    own_N = scored["validation"].scores.log_probabilities
    mixed = interpolations(own_N, baseline(scored["validation"].windows))
    ranks, context_length = logit_rank(model), model.architecture.context_length
    figures = {
        **{name: part.figures for name, part in scored.items()},
        "interpolated": mixed,
        "logit_table": ranks,
    }
    known = source_entropies_nats
    return Evaluation(
        **scored,
        context_length=context_length,
        counted=counted,
        interpolated=mixed,
        parts=decomposition(model, figures, counted),
        logit_table=ranks,
        source_entropy_nats=known[min(context_length, len(known) - 1)] if known else None,
        has_test=has_test,
    )


def evaluate_test(  # noqa: PLR0913 - what an evaluation reads
    model: Model,
    test: Loaded,
    train: Windows,
    baseline: Baseline,
    *,
    weight: float,
    unknown: int | None,
    batch_size: int,
) -> EvaluationOnTest:
    """Score test once: the model, the baseline, and both interpolated.

    weight: of the model in the interpolation, as it was tuned on validation. The others, and what
    is raised, are those of `evaluate`.
    """
    scored = score_partition(model, test, unknown=unknown, batch_size=batch_size, train=train)
    own_N, baseline_N = scored.scores.log_probabilities, baseline(scored.windows)
    return EvaluationOnTest(
        test=scored,
        context_length=model.architecture.context_length,
        baseline_loss_nats=-float(baseline_N.mean()),
        interpolated=interpolations(own_N, baseline_N, weight=weight),
    )
