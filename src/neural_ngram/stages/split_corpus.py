"""split-corpus: the corpus to train, validation and test documents, and a manifest of them all."""

from neural_ngram.pipeline.frame import enter

if __name__ == "__main__":
    enter()

from neural_ngram.artifacts import sha256_of_file, write_csv, write_json, write_table
from neural_ngram.corpus.division import divide
from neural_ngram.corpus.origin import corpus_of
from neural_ngram.corpus.summary import sentences
from neural_ngram.pipeline.console import say
from neural_ngram.pipeline.frame import run
from neural_ngram.pipeline.heartbeat import heartbeat
from neural_ngram.pipeline.project import RAW, SPLIT_REPORT, SPLITS
from neural_ngram.settings import Settings


def main(settings: Settings) -> None:
    """Read, split, save."""
    corpus = corpus_of(settings.corpus, RAW)
    with heartbeat("looking for near duplicates"):
        division = divide(corpus, settings.corpus)
    for name, table in division.tables.items():
        write_table(SPLITS / f"{name}.parquet", table)
    write_csv(SPLITS / "manifest.csv", division.manifest)
    manifest = {"manifest_sha256": sha256_of_file(SPLITS / "manifest.csv")}
    write_json(SPLIT_REPORT, division.report | manifest)
    write_csv(SPLIT_REPORT.with_name("overlaps.csv"), division.overlap_table)
    for sentence in sentences(division):
        say(sentence)


if __name__ == "__main__":
    run(main)
