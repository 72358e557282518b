"""learn-bpe: the tokenizer, from the documents of train alone."""

from neural_ngram.pipeline.frame import enter

if __name__ == "__main__":
    enter()

from neural_ngram.artifacts import Column, write_csv, write_json
from neural_ngram.pipeline.console import say
from neural_ngram.pipeline.frame import run
from neural_ngram.pipeline.heartbeat import heartbeat
from neural_ngram.pipeline.project import SPLITS, TOKENIZER
from neural_ngram.settings import Settings
from neural_ngram.tokens.caveats import caveats, long_stretch
from neural_ngram.tokens.tokenizer import learn, merge_table, save


def main(settings: Settings) -> None:
    """Learn, count what each merge did, save."""
    texts = Column(SPLITS / "train.parquet", "text")
    for caveat in long_stretch(texts, settings.tokenizer):
        say(f"warning: {caveat}")
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
    for caveat in caveats(tokenizer, settings.tokenizer):
        say(f"warning: {caveat}")


if __name__ == "__main__":
    run(main)
