"""Reading and scoring the test partition when `evaluation.unseal_test=true` opens it.

No message, log line or error from here contains a word of the test documents.
"""

from pathlib import Path
from typing import Any

import torch

from neural_ngram.artifacts import read_json, read_table, require_tokenizer, sha256_of_file
from neural_ngram.errors import TokenizerError
from neural_ngram.evaluation.run import EvaluationOnTest, evaluate_test
from neural_ngram.model import storage as model_storage
from neural_ngram.model.threads import thread_count
from neural_ngram.ngram.storage import load_kneser_ney
from neural_ngram.pipeline.project import EVALUATION, MODEL, ORACLE, TOKENIZER, WINDOWS
from neural_ngram.settings import Settings
from neural_ngram.tokens import tokenizer as tokenizers
from neural_ngram.tokens import windows as token_windows
from neural_ngram.tokens.windows import Windows

__all__ = ["read_test", "score_test"]


def score_test(settings: Settings) -> EvaluationOnTest:
    """The project's trained model on the project's test documents.

    The weight of the interpolation is the one tuned on validation.
    """
    model, origin = model_storage.load(MODEL)
    torch.set_num_threads(thread_count(model.architecture, settings.training))
    windows, described = read_test(settings)
    require_tokenizer(origin, described["tokenizer_sha256"], "the windows of test are")
    tuned = read_json(EVALUATION / "figures.json")["interpolated"]["tuned"]
    return evaluate_test(
        model,
        (windows, described),
        token_windows.load(WINDOWS / "train")[0],
        load_kneser_ney(ORACLE / "kneser_ney.safetensors").log_probabilities,
        weight=tuned["model_weight"],
        unknown=tokenizers.load(TOKENIZER).unknown,
        batch_size=settings.evaluation.batch_size,
    )


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
