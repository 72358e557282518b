"""learn-bpe: the tokenizer, from the documents of train alone."""

from neural_ngram.stages import enter

if __name__ == "__main__":
    enter()

from neural_ngram.artifacts import Column, write_csv, write_json
from neural_ngram.settings import Settings
from neural_ngram.stages import SPLITS, TOKENIZER, run, say
from neural_ngram.tokenizer import learn, merge_table, save


def main(settings: Settings) -> None:
    """Learn, count what each merge did, save."""
    texts = Column(SPLITS / "train.parquet", "text")
    tokenizer = learn(texts, settings.tokenizer)
    sha256 = save(tokenizer, TOKENIZER)
    merges = merge_table(tokenizer, tokenizer.encode(texts))
    write_csv(TOKENIZER / "merges.csv", merges)
    write_json(
        TOKENIZER / "report.json",
        {"kind": tokenizer.kind, "vocabulary_size": tokenizer.vocabulary_size, "sha256": sha256},
    )
    say(f"{tokenizer.kind}: {tokenizer.vocabulary_size:,} tokens, {len(merges):,} merges")
    missing = settings.tokenizer.vocabulary_size - tokenizer.vocabulary_size
    if tokenizer.byte_level and missing > 0:
        say(
            f"warning: {missing} merges fewer than tokenizer.vocabulary_size="
            f"{settings.tokenizer.vocabulary_size} asked for: no pair of tokens is left that "
            "occurs twice in train"
        )


if __name__ == "__main__":
    run(main)
