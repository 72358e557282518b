"""No token ID ever overflows the type that it is stored in, through the stage that stores it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from neural_ngram.artifacts import read_json, write_json, write_table
from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import initialise
from neural_ngram.pipeline.project import SPLITS, TOKENIZER, WINDOWS
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import (
    ModelSettings,
    Settings,
    TokenizerSettings,
    TrainingSettings,
    WindowSettings,
)
from neural_ngram.stages import build_windows
from neural_ngram.tokens import tokenizer as tokenizers
from neural_ngram.tokens import windows as token_windows
from neural_ngram.tokens.windows import Windows
from neural_ngram.training.evidence import evidence_of_start


@pytest.mark.parametrize(
    ("vocabulary_size", "stored"),
    [(255, "u1"), (256, "u1"), (257, "u2"), (65_535, "u2"), (65_536, "u2"), (65_537, "u4")],
)
def test_the_last_ids_come_back_from_build_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vocabulary_size: int, stored: str
):
    monkeypatch.chdir(tmp_path)
    points = [point for point in range(70_000) if not 0xD800 <= point < 0xE000]
    text = "".join(map(chr, points[:vocabulary_size]))
    kind = TokenizerSettings(kind="character", markers="none")
    tokenizers.save(tokenizers.learn([text], kind), TOKENIZER)
    for name in ("train", "validation"):
        write_table(SPLITS / f"{name}.parquet", pd.DataFrame({"text": [text, text[::-1]]}))
    windows = WindowSettings(context_length=1, padding="none")
    build_windows.main(Settings(tokenizer=kind, windows=windows))
    found, described = token_windows.load(WINDOWS / "train")
    assert described["vocabulary_size"] == vocabulary_size
    assert found.tokens.dtype == np.dtype(stored)
    forwards = list(range(vocabulary_size))
    assert found.tokens.tolist() == forwards + forwards[::-1]
    assert found.targets()[[0, -1]].tolist() == [1, 0]
    assert found.targets().max() == vocabulary_size - 1


def test_the_evidence_of_a_context_of_thousands_of_tokens_is_written(tmp_path: Path):
    """A table keyed by 3,000 tokens of 300 kinds would have 300^3001 cells: 7,434 digits."""
    length, narrow = 3000, ModelSettings(embedding_width=1, hidden_width=1)
    architecture = Architecture(vocabulary_size=300, context_length=length, settings=narrow)
    model = initialise(architecture, SplitMix64(1), torch.float32)
    tokens = np.arange(length + 10, dtype=np.uint16) % 300
    windows = Windows(
        tokens=tokens, offsets=np.array([0, len(tokens)]), context_length=length, bos=None
    )
    evidence = evidence_of_start(
        model, {"train": windows}, tokens[:length].tolist(), TrainingSettings()
    )
    write_json(tmp_path / "evidence.json", evidence)
    assert read_json(tmp_path / "evidence.json")["tables"]["context_16"] == 300**17
