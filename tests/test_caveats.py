"""What a user is warned of before and after a tokenizer is learned."""

import pytest

from neural_ngram.settings import TokenizerSettings
from neural_ngram.tokens.caveats import caveats, long_stretch
from neural_ngram.tokens.tokenizer import learn


def test_a_long_stretch_is_reported_with_its_length_before_it_is_learned():
    texts = ["a b", "a" * 200_000]
    (sentence,) = long_stretch(texts, TokenizerSettings())
    assert "a stretch of 200,000 bytes without a break" in sentence
    assert not list(long_stretch(texts[:1], TokenizerSettings()))
    assert not list(long_stretch(texts, TokenizerSettings(kind="character")))


@pytest.mark.parametrize(
    ("text", "spelt"), [("<s> yes </s>", ["<s> and </s> as words"]), ("<s>yes</s> no", [])]
)
def test_special_tokens_that_the_text_spells_are_reported(text: str, spelt: list[str]):
    asked = TokenizerSettings(kind="word")
    found = list(caveats(learn([text], asked), asked))
    assert len(found) == len(spelt)
    assert all(words in sentence for words, sentence in zip(spelt, found, strict=True))


def test_merges_that_no_pair_is_left_for_are_counted():
    asked = TokenizerSettings(vocabulary_size=400)
    tokenizer = learn(["abab ab"], asked)
    (sentence,) = caveats(tokenizer, asked)
    missing = 400 - tokenizer.vocabulary_size
    assert sentence.startswith(f"{missing} merges fewer than tokenizer.vocabulary_size=400")
