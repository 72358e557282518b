"""What `learn-bpe` warns of."""

import pytest

from neural_ngram.settings import TokenizerSettings
from neural_ngram.stages.learn_bpe import _warn_of_long_stretches, _warn_of_special_tokens
from neural_ngram.tokens.tokenizer import learn


def test_a_long_stretch_is_told_with_its_length_before_it_is_learned(
    capsys: pytest.CaptureFixture[str],
):
    texts = ["a b", "a" * 200_000]
    _warn_of_long_stretches(texts, TokenizerSettings())
    assert "a stretch of 200,000 bytes without a break" in capsys.readouterr().out
    _warn_of_long_stretches(texts[:1], TokenizerSettings())
    _warn_of_long_stretches(texts, TokenizerSettings(kind="character"))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("text", "told"), [("<s> yes </s>", "<s> and </s> as words"), ("<s>yes</s> no", "")]
)
def test_special_tokens_that_the_text_spells_are_told(
    capsys: pytest.CaptureFixture[str], text: str, told: str
):
    _warn_of_special_tokens(learn([text], TokenizerSettings(kind="word")))
    found = capsys.readouterr().out
    assert (told in found) if told else not found
