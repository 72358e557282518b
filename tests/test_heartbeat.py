"""Work that says nothing itself is seen to go on."""

import threading

import pytest

from neural_ngram.pipeline import heartbeat as module
from neural_ngram.pipeline.heartbeat import heartbeat
from neural_ngram.settings import TokenizerSettings
from neural_ngram.tokens.tokenizer import learn


def test_lines_come_until_the_work_ends(monkeypatch: pytest.MonkeyPatch):
    lines, enough = list[str](), threading.Event()

    def say(text: str) -> None:
        lines.append(text)
        if len(lines) == 3:
            enough.set()

    monkeypatch.setattr(module, "say", say)
    with heartbeat("counting", every=0.001):
        assert enough.wait(60)
    assert not any(thread.name == "heartbeat" for thread in threading.enumerate())
    assert all(line.startswith("counting: ") for line in lines)


def test_work_that_fails_ends_it_as_well():
    with pytest.raises(ValueError, match="gone"), heartbeat("counting", every=60):
        raise ValueError("gone")
    assert not any(thread.name == "heartbeat" for thread in threading.enumerate())


def test_learning_in_compiled_code_does_not_silence_it(
    monkeypatch: pytest.MonkeyPatch,
):
    lines = list[str]()
    monkeypatch.setattr(module, "say", lines.append)
    with heartbeat("learning", every=0.001):
        learn(["ab" * 20_000], TokenizerSettings(vocabulary_size=300))
    assert lines
