"""learn-bpe: the tokenizer, from the documents of train alone."""

from neural_ngram.pipeline.frame import enter

if __name__ == "__main__":
    enter()

from collections.abc import Iterable

from neural_ngram.artifacts import Column, write_csv, write_json
from neural_ngram.pipeline.console import say
from neural_ngram.pipeline.frame import run
from neural_ngram.pipeline.heartbeat import heartbeat
from neural_ngram.pipeline.project import SPLITS, TOKENIZER
from neural_ngram.settings import Settings, TokenizerSettings
from neural_ngram.tokens.tokenizer import Tokenizer, learn, longest_stretch, merge_table, save


def main(settings: Settings) -> None:
    """Learn, count what each merge did, save."""
    texts = Column(SPLITS / "train.parquet", "text")
    _warn_of_long_stretches(texts, settings.tokenizer)
    with heartbeat("learning the tokenizer"):
        tokenizer = learn(texts, settings.tokenizer)
    sha256 = save(tokenizer, TOKENIZER)
    merges = merge_table(tokenizer, tokenizer.encode(texts))
    write_csv(TOKENIZER / "merges.csv", merges)
    write_json(
        TOKENIZER / "report.json",
        {"kind": tokenizer.kind, "vocabulary_size": tokenizer.vocabulary_size, "sha256": sha256},
    )
    say(f"{tokenizer.kind}: {tokenizer.vocabulary_size:,} tokens, {len(merges):,} merges")
    _warn_of_special_tokens(tokenizer)
    missing = settings.tokenizer.vocabulary_size - tokenizer.vocabulary_size
    if tokenizer.byte_level and missing > 0:
        say(
            f"warning: {missing} merges fewer than tokenizer.vocabulary_size="
            f"{settings.tokenizer.vocabulary_size} asked for: no pair of tokens is left that "
            "occurs twice in train"
        )


def _warn_of_long_stretches(texts: Iterable[str], settings: TokenizerSettings) -> None:
    stretch = longest_stretch(texts, settings) if settings.kind == "bpe" else 0
    if stretch:
        say(
            f"warning: train has a stretch of {stretch:,} bytes without a break at which BPE "
            f"divides (tokenizer.pattern={settings.pattern}); learning takes time with the square "
            "of its length: break such stretches by spaces or lines, or divide the documents"
        )


def _warn_of_special_tokens(tokenizer: Tokenizer) -> None:
    spelt = [token for token in ("<s>", "</s>") if token in tokenizer.tokens]
    if spelt:
        say(
            f"warning: the text spells the special tokens {' and '.join(spelt)} as words; the "
            "tokenizer adds such tokens itself (tokenizer.markers), so take them out of the corpus"
        )


if __name__ == "__main__":
    run(main)
