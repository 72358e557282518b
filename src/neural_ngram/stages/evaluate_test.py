"""evaluate-test: the trained model on test when it is unsealed; else the record that it is sealed.

What it writes never enters DVC's cache or run cache (`cache: false` with `persist: true`), so that
no figure on test comes back from there without its line in the ledger.
"""

from neural_ngram.pipeline.frame import enter

if __name__ == "__main__":
    enter()

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from neural_ngram.artifacts import read_json, sha256_of_file, write_json
from neural_ngram.pipeline.console import say
from neural_ngram.pipeline.frame import run, sandbox
from neural_ngram.pipeline.ledger import Evaluation, number_of, record
from neural_ngram.pipeline.project import (
    LEDGER,
    MODEL,
    SPLIT_REPORT,
    STORE,
    TEST,
    TOKENIZER,
    dvc_root,
    git_commit,
    parameters,
    run_name,
)
from neural_ngram.settings import Settings
from neural_ngram.tracking.run import find_run

SEALED = {"test": "sealed"}


def main(settings: Settings) -> None:
    """Score test once and record it, or write that it is sealed."""
    if settings.evaluation.unseal_test:
        _evaluate(settings)
        return
    for name in ("figures.json", "metrics.json"):
        write_json(TEST / name, SEALED)
    say("test is sealed")


def _evaluate(settings: Settings) -> None:
    """The line in the ledger comes first: no figure is written, logged or printed without it."""
    from neural_ngram.evaluation.decomposition import few, flat  # noqa: PLC0415 - imports torch
    from neural_ngram.evaluation.summary import show, summary  # noqa: PLC0415
    from neural_ngram.evaluation.unsealed import figures_on_test  # noqa: PLC0415

    figures, context_length = figures_on_test(settings)
    line = record(dvc_root() / LEDGER, _line(figures), dvc_root() / STORE, Path.cwd() / LEDGER)
    figures["evaluation"] = number_of(line)
    say(f"test is unsealed: evaluation no. {figures['evaluation']} on this test split, in {LEDGER}")
    show(summary({"test": figures}, {}, context_length))
    subject = {key: line[key] for key in ("model_sha256", "tokenizer_sha256", "corpus_sha256")}
    write_json(TEST / "figures.json", {"test": figures, **subject})
    shown = few(figures) | {"evaluation": figures["evaluation"]}
    write_json(TEST / "metrics.json", {"test": shown})
    with find_run(subject["model_sha256"], run_name(settings), parameters(settings)) as tracked:
        tracked.boundary("evaluate-test", sandbox().kind)
        tracked.metrics(dict(flat({"test": figures})), settings.training.max_steps)
        tracked.artifact(TEST, "test")


def _line(figures: dict[str, Any]) -> Evaluation:
    return Evaluation(
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=git_commit(),
        model_sha256=sha256_of_file(MODEL),
        tokenizer_sha256=sha256_of_file(TOKENIZER / "tokenizer.json"),
        corpus_sha256=read_json(SPLIT_REPORT)["manifest_sha256"],
        loss_nats=figures["loss_nats"],
        tokens=figures["tokens"],
    )


if __name__ == "__main__":
    run(main)
