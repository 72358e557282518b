"""evaluate: the trained model on train and validation, between its floor and its baseline."""

from neural_ngram.pipeline.frame import enter

if __name__ == "__main__":
    enter()

from dataclasses import asdict
from typing import Any

import pandas as pd
import torch

from neural_ngram.artifacts import (
    read_json,
    require_tokenizer,
    sha256_of_file,
    write_bytes,
    write_csv,
    write_json,
)
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
    flat,
    interpolations,
    logit_rank,
    report,
)
from neural_ngram.evaluation.scoring import Scores, score
from neural_ngram.evaluation.seen import seen_in_train
from neural_ngram.evaluation.summary import show, summary
from neural_ngram.export.charts import decomposition_chart, png
from neural_ngram.model import storage as model_storage
from neural_ngram.model.network import Model
from neural_ngram.model.threads import thread_count
from neural_ngram.ngram.storage import load_kneser_ney
from neural_ngram.pipeline.console import say
from neural_ngram.pipeline.frame import run, sandbox
from neural_ngram.pipeline.project import (
    EVALUATION,
    MODEL,
    ORACLE,
    SPLIT_REPORT,
    TOKENIZER,
    WINDOWS,
    parameters,
    run_name,
)
from neural_ngram.settings import Settings
from neural_ngram.tokens import tokenizer as tokenizers
from neural_ngram.tokens import windows as token_windows
from neural_ngram.tokens.windows import Windows
from neural_ngram.tracking.run import find_run

Scored = dict[str, tuple[Windows, Scores]]


def main(settings: Settings) -> None:
    """Score every window once, compare, save and log."""
    model, origin = model_storage.load(MODEL)
    torch.set_num_threads(thread_count(model.architecture, settings.training))
    figures, scored = _scored(settings, model, origin)
    counted, split_report = read_json(ORACLE / "figures.json"), read_json(SPLIT_REPORT)
    figures |= _limits(model, split_report["source_entropies_nats"])
    _mix(figures, scored)
    parts = decomposition(model, figures, counted)
    figures["gap"] = {
        "above_floor_nats": parts.excess,
        "train_to_validation_nats": parts.generalization_gap,
        "above_baseline_nats": parts.model - parts.baseline,
    }
    seen = figures["validation"]["windows_seen_in_train"]
    say(f"{seen:.1%} of validation windows (context and target) also occur in train")
    for part in parts.all:
        say(f"{part.nats:8.4f} nats   {part.part}: {part.meaning}")
    show(summary(figures, counted, model.architecture.context_length))
    no_test = {} if split_report["documents"]["test"] else {"test_partition": "none"}
    if no_test:
        say("this split has no test partition")
    _save(figures | no_test, parts, scored)
    with find_run(sha256_of_file(MODEL), run_name(settings), parameters(settings)) as tracked:
        tracked.boundary("evaluate", sandbox().kind)
        tracked.metrics(dict(flat(figures)), settings.training.max_steps)
        tracked.metrics(dict(flat(counted)))
        tracked.metrics(dict(flat({"leakage": split_report["leakage"]})))
        tracked.artifact(EVALUATION, "evaluation")
        for table in ("entropies.csv", "discounts.csv"):
            tracked.artifact(ORACLE / table, "oracle")


def _save(figures: dict[str, Any], parts: Decomposition, scored: Scored) -> None:
    seen = {name: scored[name] for name in ("train", "validation")}
    sure = calibration(seen["validation"][1])
    figures["validation"]["calibration_error"] = calibration_error(sure)
    write_json(EVALUATION / "figures.json", figures | {"model_sha256": sha256_of_file(MODEL)})
    write_json(EVALUATION / "metrics.json", compared(figures, parts))
    write_csv(EVALUATION / "decomposition.csv", pd.DataFrame(map(asdict, parts.all)))
    drawn = decomposition_chart(parts).properties(width=520, height=200)
    write_bytes(EVALUATION / "decomposition.png", png(drawn))
    write_csv(EVALUATION / "positions.csv", loss_by_position(seen))
    write_csv(EVALUATION / "frequencies.csv", loss_by_frequency(seen))
    write_csv(EVALUATION / "calibration.csv", sure)


def _limits(model: Model, source_entropies: list[float]) -> dict[str, Any]:
    """What is known of the least loss: by the widths of a bigram model, by a made source."""
    limits: dict[str, Any] = {}
    ranks = logit_rank(model)
    if ranks:
        limits["logit_table"] = ranks
        say(f"logit table of rank {ranks['rank']} of at most {ranks['rank_bound']}")
    if source_entropies:
        known = source_entropies[min(model.architecture.context_length, len(source_entropies) - 1)]
        limits["source"] = {"entropy_nats": known}
        say(f"the source's own entropy with this context is {known:.4f} nats")
    return limits


def _scored(
    settings: Settings, model: Model, origin: dict[str, Any]
) -> tuple[dict[str, Any], Scored]:
    """The figures, windows and scores of each partition."""
    figures: dict[str, Any] = {}
    scored: Scored = {}
    unknown = tokenizers.load(TOKENIZER).unknown
    for name in ("train", "validation"):
        windows, described = token_windows.load(WINDOWS / name)
        require_tokenizer(origin, described["tokenizer_sha256"], f"the windows of {name} are")
        scores = score(model, windows, batch_size=settings.evaluation.batch_size)
        scored[name] = windows, scores
        figures[name] = report(scores, scored_bytes=described["scored_bytes"])
        if unknown is not None:
            figures[name]["unknown_fraction"] = float((windows.targets() == unknown).mean())
    seen = seen_in_train(scored["train"][0], scored["validation"][0])
    figures["validation"]["windows_seen_in_train"] = seen
    return figures, scored


def _mix(figures: dict[str, Any], scored: Scored) -> None:
    """Add the interpolations with the baseline, their weight tuned on validation."""
    baseline = load_kneser_ney(ORACLE / "kneser_ney.safetensors")
    windows, scores = scored["validation"]
    baseline_N = baseline.log_probabilities(windows)
    figures["interpolated"] = interpolations(scores.log_probabilities, baseline_N)


if __name__ == "__main__":
    run(main)
