"""The test partition, when `evaluation.unseal_test=true` opens it: read, scored and recorded.

The line in the ledger comes first: no figure is written, logged or printed without it. Nothing here
prints, logs or raises with a word of the test documents.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from neural_ngram.artifacts import (
    read_json,
    read_table,
    require_tokenizer,
    sha256_of_file,
    write_json,
)
from neural_ngram.corpus.leakage import seen_in_train
from neural_ngram.errors import TokenizerError
from neural_ngram.evaluation.decomposition import few, flat, mixtures, report
from neural_ngram.evaluation.scoring import score
from neural_ngram.evaluation.summary import show, summary
from neural_ngram.model import storage as model_storage
from neural_ngram.model.network import Model
from neural_ngram.model.threads import thread_count
from neural_ngram.ngram.storage import load_kneser_ney
from neural_ngram.pipeline.console import say
from neural_ngram.pipeline.frame import walls
from neural_ngram.pipeline.ledger import Evaluation, number_of, record
from neural_ngram.pipeline.project import (
    EVALUATION,
    LEDGER,
    MODEL,
    ORACLE,
    SPLIT_REPORT,
    STORE,
    TEST,
    TOKENIZER,
    WINDOWS,
    dvc_root,
    parameters,
    run_name,
)
from neural_ngram.settings import Settings
from neural_ngram.tokens import tokenizer as tokenizers
from neural_ngram.tokens import windows as token_windows
from neural_ngram.tokens.windows import Windows
from neural_ngram.tracking.run import find_run, git_commit

__all__ = ["evaluate", "read_test"]


def evaluate(settings: Settings) -> None:
    """Score every window of test once, record that, then save and log."""
    model, origin = model_storage.load(MODEL)
    torch.set_num_threads(thread_count(model.architecture, settings.training))
    figures = _figures(settings, model, origin)
    line = record(
        dvc_root() / LEDGER, _evaluation(figures), dvc_root() / STORE, Path.cwd() / LEDGER
    )
    figures["evaluation"] = number_of(line)
    say(f"test is unsealed: evaluation no. {figures['evaluation']} on this test split, in {LEDGER}")
    show(summary({"test": figures}, {}, model.architecture.context_length))
    subject = {key: line[key] for key in ("model_sha256", "tokenizer_sha256", "corpus_sha256")}
    write_json(TEST / "figures.json", {"test": figures, **subject})
    shown = few(figures) | {"evaluation": figures["evaluation"]}
    write_json(TEST / "metrics.json", {"test": shown})
    with find_run(subject["model_sha256"], run_name(settings), parameters(settings)) as tracked:
        tracked.boundary("evaluate-test", walls().kind)
        tracked.metrics(dict(flat({"test": figures})), settings.training.max_steps)
        tracked.artifact(TEST, "test")


def _figures(settings: Settings, model: Model, origin: dict[str, Any]) -> dict[str, Any]:
    """The model, the baseline and their mixtures on test, with the weight tuned on validation."""
    windows, described = read_test(settings)
    require_tokenizer(origin, described["tokenizer_sha256"], "the windows of test are")
    scores = score(model, windows, batch_size=settings.evaluation.batch_size)
    figures = report(scores, scored_bytes=described["scored_bytes"])
    unknown = tokenizers.load(TOKENIZER).unknown
    if unknown is not None:
        figures["unknown_share"] = float((windows.targets() == unknown).mean())
    train, _ = token_windows.load(WINDOWS / "train")
    figures["windows_seen_in_train"] = seen_in_train(train, windows)
    weight = read_json(EVALUATION / "figures.json")["mixture"]["tuned"]["model_weight"]
    baseline_N = load_kneser_ney(ORACLE / "kneser_ney.safetensors").log_probabilities(windows)
    figures["kneser_ney"] = {"loss_nats": -float(baseline_N.mean())}
    figures["mixture"] = mixtures(scores.log_probabilities, baseline_N, weight=weight)
    return figures


def read_test(settings: Settings) -> tuple[Windows, dict[str, Any]]:
    """The windows of the test documents, made in memory as build-windows makes the others.

    Raises TokenizerError when the tokenizer has no token for something in them.
    """
    texts = read_table(Path(settings.evaluation.test_documents))["text"].tolist()
    tokenizer = tokenizers.load(TOKENIZER)
    try:
        windows, counts = token_windows.encode(texts, tokenizer, settings.windows)
    except TokenizerError:
        raise TokenizerError(
            f"{settings.evaluation.test_documents} holds what tokenizer.kind={tokenizer.kind} did "
            "not see in train (sealed text is not shown); set tokenizer.unknown=true"
        ) from None
    return windows, counts | {"tokenizer_sha256": sha256_of_file(TOKENIZER / "tokenizer.json")}


def _evaluation(figures: dict[str, Any]) -> Evaluation:
    return Evaluation(
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=git_commit(),
        model_sha256=sha256_of_file(MODEL),
        tokenizer_sha256=sha256_of_file(TOKENIZER / "tokenizer.json"),
        corpus_sha256=read_json(SPLIT_REPORT)["manifest_sha256"],
        loss_nats=figures["loss_nats"],
        tokens=figures["tokens"],
    )
