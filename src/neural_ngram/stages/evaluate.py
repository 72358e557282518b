"""evaluate: the trained model on train and validation, between its floor and its rival."""

from neural_ngram.stages import enter

if __name__ == "__main__":
    enter()

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd
import torch

from neural_ngram import model as models
from neural_ngram import tokenizer as tokenizers
from neural_ngram import windows as token_windows
from neural_ngram.artifacts import read_json, sha256_of_file, write_csv, write_figure, write_json
from neural_ngram.boundary import LEDGER
from neural_ngram.charts import decomposition_chart
from neural_ngram.errors import ArtifactError
from neural_ngram.evaluation import decomposition, gap_cause, logit_rank, mixtures, report
from neural_ngram.leakage import seen_in_train
from neural_ngram.ngram import load_kneser_ney
from neural_ngram.scoring import Scores, score
from neural_ngram.settings import Settings
from neural_ngram.stages import (
    EVALUATION,
    MODEL,
    ORACLE,
    SPLIT_REPORT,
    TOKENIZER,
    WINDOWS,
    parameters,
    run,
    run_name,
    say,
    walls,
)
from neural_ngram.stages.summary import show, summary
from neural_ngram.stages.unsealed import enter_in_ledger, read_test
from neural_ngram.tracking import find_run
from neural_ngram.windows import Windows


def main(settings: Settings) -> None:
    """Score every window once, compare, save and log."""
    torch.set_num_threads(settings.training.threads)
    model, origin = models.load(MODEL)
    metrics, windows, scores = _scored(settings, model, origin)
    counted = read_json(ORACLE / "metrics.json")
    _mix(metrics, windows, scores)
    context_length = model.architecture.context_length
    ranks = logit_rank(model)
    if ranks:
        metrics["logit_table"] = ranks
        say(f"logit table of rank {ranks['rank']} of at most {ranks['rank_bound']}")
    sources = decomposition(
        floor=counted["oracle"][f"k{context_length}"]["entropy_nats"],
        losses={name: metrics[name]["loss_nats"] for name in ("train", "validation")},
        rival=counted["kneser_ney"]["validation"]["loss_nats"],
        mixed=metrics["mixture"],
        cause=gap_cause(model, ranks),
    )
    metrics["gap"] = {
        "above_floor_nats": sources[1].nats,
        "train_to_validation_nats": sources[2].nats,
        "above_rival_nats": sources[3].nats - sources[4].nats,
    }
    seen = metrics["validation"]["windows_seen_in_train"]
    say(f"{seen:.1%} of the windows of validation also stand in train, target included")
    split_report = read_json(SPLIT_REPORT)
    entropies = split_report["source_entropies_nats"]
    if entropies:
        known = entropies[min(context_length, len(entropies) - 1)]
        metrics["source"] = {"entropy_nats": known}
        say(f"the source's own entropy with this context is {known:.4f} nats")
    for part in sources:
        say(f"{part.nats:8.4f} nats   {part.part}: {part.meaning}")
    show(summary(metrics, counted, context_length))
    write_json(EVALUATION / "metrics.json", metrics)
    write_csv(EVALUATION / "decomposition.csv", pd.DataFrame(map(asdict, sources)))
    write_figure(EVALUATION / "decomposition.png", decomposition_chart(sources))
    with find_run(sha256_of_file(MODEL), run_name(settings), parameters(settings)) as tracked:
        tracked.boundary("evaluate", walls().kind)
        tracked.metrics(dict(_flat(metrics)), settings.training.max_steps)
        tracked.metrics(dict(_flat(counted)))
        tracked.metrics(dict(_flat({"leakage": split_report["leakage"]})))
        tracked.artifact(EVALUATION, "evaluation")
        for table in ("entropies.csv", "discounts.csv"):
            tracked.artifact(ORACLE / table, "oracle")


def _scored(
    settings: Settings, model: models.Model, origin: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Windows], dict[str, Scores]]:
    """The metrics, windows and scores of each partition."""
    metrics: dict[str, Any] = {}
    parts: dict[str, Windows] = {}
    scored: dict[str, Scores] = {}
    unknown = tokenizers.load(TOKENIZER).unknown
    for name, windows, described in _partitions(settings):
        parts[name] = windows
        if described["tokenizer_sha256"] != origin["tokenizer_sha256"]:
            raise ArtifactError(
                f"{MODEL} was trained with another tokenizer than the windows of {name} were made "
                "with; run `dvc repro`"
            )
        scores = score(model, windows, batch_size=settings.evaluation.batch_size)
        scored[name] = scores
        metrics[name] = report(scores, scored_bytes=described["scored_bytes"])
        if unknown is not None:
            metrics[name]["unknown_share"] = float((windows.targets() == unknown).mean())
        if name == "test":
            metrics[name]["looks"] = enter_in_ledger(metrics[name])
            say(f"test is unsealed: look {metrics[name]['looks']} at this partition, in {LEDGER}")
    for name in metrics.keys() - {"train"}:
        metrics[name]["windows_seen_in_train"] = seen_in_train(parts["train"], parts[name])
    return metrics, parts, scored


def _mix(metrics: dict[str, Any], windows: dict[str, Windows], scored: dict[str, Scores]) -> None:
    """Add the mixtures with the rival; on test with the weight that was tuned on validation."""
    rival = load_kneser_ney(ORACLE / "kneser_ney.safetensors")
    rival_N = rival.log_probabilities(windows["validation"])
    metrics["mixture"] = mixtures(scored["validation"].log_probabilities, rival_N)
    if "test" in scored:
        rival_N = rival.log_probabilities(windows["test"])
        weight = metrics["mixture"]["tuned"]["model_weight"]
        metrics["test"]["kneser_ney"] = {"loss_nats": -float(rival_N.mean())}
        metrics["test"]["mixture"] = mixtures(
            scored["test"].log_probabilities, rival_N, weight=weight
        )


def _partitions(settings: Settings) -> Iterator[tuple[str, Windows, dict[str, Any]]]:
    """Name, windows and description of what is scored."""
    if settings.evaluation.unseal_test:
        yield "test", *read_test(settings)
    for name in ("train", "validation"):
        yield name, *token_windows.load(WINDOWS / name)


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


if __name__ == "__main__":
    run(main)
