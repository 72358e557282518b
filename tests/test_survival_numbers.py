"""No token ID ever overflows the type that it is stored in, through the stage that stores it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from neural_ngram import tokenizer as tokenizers
from neural_ngram import windows as token_windows
from neural_ngram.artifacts import write_table
from neural_ngram.settings import Settings, TokenizerSettings, WindowSettings
from neural_ngram.stages import SPLITS, TOKENIZER, WINDOWS, build_windows


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
