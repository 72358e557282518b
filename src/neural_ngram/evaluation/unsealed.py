"""Reading and scoring the test partition when `evaluation.unseal_test=true` opens it.

No message, log line or error from here contains a word of the test documents.
"""

from pathlib import Path
from typing import Any

import torch

from neural_ngram.artifacts import (
    read_json,
    read_table,
    require_tokenizer,
    sha256_of_file,
)
from neural_ngram.errors import TokenizerError
from neural_ngram.evaluation.decomposition import interpolations, report
from neural_ngram.evaluation.scoring import score
from neural_ngram.evaluation.seen import seen_in_train
from neural_ngram.model import storage as model_storage
from neural_ngram.model.threads import thread_count
from neural_ngram.ngram.storage import load_kneser_ney
from neural_ngram.pipeline.project import (
    EVALUATION,
    MODEL,
    ORACLE,
    TOKENIZER,
    WINDOWS,
)
from neural_ngram.settings import Settings
from neural_ngram.tokens import tokenizer as tokenizers
from neural_ngram.tokens import windows as token_windows
from neural_ngram.tokens.windows import Windows

__all__ = ["figures_on_test", "read_test"]


def figures_on_test(settings: Settings) -> tuple[dict[str, Any], int]:
    """Every window of test scored once: model, baseline and both interpolated; the context length.

    The weight of the interpolation is the one tuned on validation.
    """
    model, origin = model_storage.load(MODEL)
    torch.set_num_threads(thread_count(model.architecture, settings.training))
    windows, described = read_test(settings)
    require_tokenizer(origin, described["tokenizer_sha256"], "the windows of test are")
    scores = score(model, windows, batch_size=settings.evaluation.batch_size)
    figures = report(scores, scored_bytes=described["scored_bytes"])
    unknown = tokenizers.load(TOKENIZER).unknown
    if unknown is not None:
        figures["unknown_fraction"] = float((windows.targets() == unknown).mean())
    train, _ = token_windows.load(WINDOWS / "train")
    figures["windows_seen_in_train"] = seen_in_train(train, windows)
    weight = read_json(EVALUATION / "figures.json")["interpolated"]["tuned"]["model_weight"]
    baseline_N = load_kneser_ney(ORACLE / "kneser_ney.safetensors").log_probabilities(windows)
    figures["kneser_ney"] = {"loss_nats": -float(baseline_N.mean())}
    figures["interpolated"] = interpolations(scores.log_probabilities, baseline_N, weight=weight)
    return figures, model.architecture.context_length


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
            f"{settings.evaluation.test_documents} contains something that tokenizer.kind="
            f"{tokenizer.kind} did not see in train (sealed text is not shown); set "
            "tokenizer.unknown=true"
        ) from None
    return windows, counts | {"tokenizer_sha256": sha256_of_file(TOKENIZER / "tokenizer.json")}
