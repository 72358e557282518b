"""What a user should know of a tokenizer before and after it is learned from a text."""

from collections.abc import Iterable, Iterator

from neural_ngram.settings import TokenizerSettings
from neural_ngram.tokens.tokenizer import Tokenizer, longest_stretch

__all__ = ["caveats", "long_stretch"]


def long_stretch(texts: Iterable[str], settings: TokenizerSettings) -> Iterator[str]:
    """That BPE will take long, where the texts have a very long stretch without a break."""
    stretch = longest_stretch(texts, settings) if settings.kind == "bpe" else 0
    if stretch:
        yield (
            f"train has a stretch of {stretch:,} bytes without a break at which BPE splits text "
            f"(tokenizer.pattern={settings.pattern}); learning time grows with the square of its "
            "length, so break such stretches by spaces or lines, or divide the documents"
        )


def caveats(tokenizer: Tokenizer, settings: TokenizerSettings) -> Iterator[str]:
    """That the text spells special tokens, and that it gave fewer merges than were asked for."""
    spelt = [token for token in ("<s>", "</s>") if token in tokenizer.tokens]
    if spelt:
        yield (
            f"the text spells the special tokens {' and '.join(spelt)} as words; the tokenizer "
            "adds such tokens itself (tokenizer.markers), so remove them from the corpus"
        )
    missing = settings.vocabulary_size - tokenizer.vocabulary_size
    if tokenizer.byte_level and missing > 0:
        yield (
            f"{missing} merges fewer than tokenizer.vocabulary_size={settings.vocabulary_size} "
            "asked for: no pair of tokens is left that occurs twice in train"
        )
