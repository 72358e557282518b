"""The test partition, when `evaluation.unseal_test=true` opens it: read, and entered in the ledger.

Nothing here prints, logs or raises with a word of its text.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from neural_ngram import tokenizer as tokenizers
from neural_ngram import windows as token_windows
from neural_ngram.artifacts import read_json, read_table, sha256_of_file
from neural_ngram.boundary import LEDGER, STORE, dvc_root
from neural_ngram.errors import TokenizerError
from neural_ngram.ledger import Look, record
from neural_ngram.settings import Settings
from neural_ngram.stages import MODEL, SPLIT_REPORT, TOKENIZER
from neural_ngram.tracking import git_commit
from neural_ngram.windows import Windows

__all__ = ["enter_in_ledger", "read_test"]


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


def enter_in_ledger(metrics: dict[str, Any]) -> int:
    """Record that the model was scored on test; returns how many looks at this split that makes."""
    look = Look(
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=git_commit(),
        model_sha256=sha256_of_file(MODEL),
        tokenizer_sha256=sha256_of_file(TOKENIZER / "tokenizer.json"),
        corpus_sha256=read_json(SPLIT_REPORT)["manifest_sha256"],
        loss_nats=metrics["loss_nats"],
        tokens=metrics["tokens"],
    )
    return record(dvc_root() / LEDGER, look, dvc_root() / STORE)
