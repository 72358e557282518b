"""split-corpus: the corpus to train, validation and test documents, and a manifest of them all."""

from neural_ngram.pipeline.frame import enter

if __name__ == "__main__":
    enter()

import json
from collections.abc import Mapping
from dataclasses import fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from neural_ngram.artifacts import read_json, sha256_of_file, write_csv, write_json, write_table
from neural_ngram.corpus.document import Document
from neural_ngram.corpus.download import fetch
from neural_ngram.corpus.duplicates import links, overlaps
from neural_ngram.corpus.overlap import measure, require
from neural_ngram.corpus.partition import PARTITIONS, Split, parted, split_documents, text_sha256
from neural_ngram.corpus.reading import Corpus, merge_rare_words, read_corpus
from neural_ngram.corpus.synthetic import MarkovSource
from neural_ngram.errors import ConfigurationError
from neural_ngram.pipeline.console import say
from neural_ngram.pipeline.frame import run
from neural_ngram.pipeline.heartbeat import heartbeat
from neural_ngram.pipeline.project import RAW, SPLIT_REPORT, SPLITS
from neural_ngram.settings import CorpusSettings, Settings, SourceSettings, SplitSettings


def main(settings: Settings) -> None:
    """Read, split, save."""
    corpus, entropies = _corpus(settings.corpus)
    asked = settings.corpus.split
    with heartbeat("looking for near duplicates"):
        split = split_documents(corpus.documents, asked, _lists(asked.lists), _links(corpus, asked))
        rows = overlaps(split, asked.near_duplicate)
    leakage = measure(split, rows)
    require(leakage, asked.most_overlap)
    for name, documents in split.items():
        write_table(SPLITS / f"{name}.parquet", _table(documents))
    write_csv(SPLITS / "manifest.csv", _manifest(split))
    counts = {name: len(documents) for name, documents in split.items()}
    manifest = {"manifest_sha256": sha256_of_file(SPLITS / "manifest.csv")}
    write_json(
        SPLIT_REPORT,
        {"corpus": corpus.counts, "documents": counts, "overlap": parted(split)}
        | {"held_out": settings.corpus.split.method != "whole"}
        | {"leakage": leakage}
        | _particulars(settings.corpus, split)
        | {"source_entropies_nats": entropies, **manifest},
    )
    columns = ["partition", "id", "train_id", "similarity"]
    write_csv(SPLIT_REPORT.with_name("overlaps.csv"), pd.DataFrame(rows, columns=columns))
    say(_counted(corpus.counts))
    _warn(corpus.counts)
    say("divided into " + ", ".join(f"{n:,} {name}" for name, n in counts.items()))
    if settings.corpus.split.method == "whole":
        say("nothing is held out: validation is train again, and test is empty")
    elif not asked.has_test:
        say("there is no test partition: train and validation take all of the text")
    for name, found in leakage.items():
        say(
            f"{name}: {found['same_text_in_train']:.1%} of documents also occur in train, "
            f"{found['near_duplicate_in_train']:.1%} have a near duplicate there"
        )


def _particulars(settings: CorpusSettings, split: Split) -> dict[str, Any]:
    """What is worth recording only where a corpus is read or divided in an unusual way."""
    found: dict[str, Any] = {}
    if settings.encoding != "utf-8":
        found["encoding"] = settings.encoding
    if settings.split.method == "position":
        found["characters"] = {name: sum(len(d.text) for d in split[name]) for name in split}
    if not settings.split.has_test:
        found["test_partition"] = "none"
    return found


def _counted(counts: Mapping[str, int]) -> str:
    """How many documents, from how many files, and what else occurred at all."""
    rest = dict(counts)
    text = f"{rest.pop('documents'):,} documents"
    if files := rest.pop("files", 0):
        dropped = rest.pop("empty_documents_dropped", 0)
        text += f" from {files:,} file{'s' * (files > 1)} ({dropped:,} empty dropped)"
    more = [f"{n:,} {name.replace('_', ' ')}" for name, n in rest.items() if n]
    return ", ".join([text, *more])


def _warn(counts: Mapping[str, int]) -> None:
    odd = {
        "nul_characters": "NUL",
        "byte_order_marks_within_text": "byte order marks (U+FEFF) within the text",
    }
    for name, what in odd.items():
        if counts.get(name):
            say(f"warning: {counts[name]:,} {what} are read as characters; remove them if unmeant")


def _lists(path: str | None) -> dict[str, Any] | None:
    """The IDs of each partition that a file names."""
    if path is None:
        return None
    lists = read_json(Path(path))
    for name, ids in lists.items():
        texts = isinstance(ids, list) and all(isinstance(each, str) for each in ids)
        if name not in PARTITIONS or not texts:
            raise ConfigurationError(
                f"{path} has {json.dumps(ids)[:40]} under {name!r}, but corpus.split.lists must "
                f"hold lists of document IDs under {', '.join(PARTITIONS)}; correct it"
            )
    return lists


def _links(corpus: Corpus, settings: SplitSettings) -> list[tuple[str, str]]:
    if not settings.keep_near_duplicates_together:
        return []
    return links(corpus.documents, settings.near_duplicate)


def _corpus(settings: CorpusSettings) -> tuple[Corpus, list[float]]:
    """The documents, and the exact conditional entropies of the source when there is one."""
    if not settings.source.documents:
        corpus = read_corpus(
            _path(settings),
            unit=settings.unit,
            encoding=settings.encoding,
            files=settings.files,
            document_mark=settings.document_mark,
            paragraph_mark=settings.paragraph_mark,
        )
        if settings.minimum_frequency > 1:
            corpus = merge_rare_words(corpus, settings.minimum_frequency)
        return corpus, []
    source, texts = _draw(settings.source)
    documents = [Document(id=f"{n}", text=text) for n, text in enumerate(texts, start=1)]
    return Corpus(documents=documents, counts={"documents": len(documents)}), (
        source.conditional_entropies()
    )


def _draw(settings: SourceSettings) -> tuple[MarkovSource, list[str]]:
    generator = np.random.default_rng(settings.seed)
    source = MarkovSource.draw(
        generator,
        alphabet=settings.alphabet,
        order=settings.order,
        concentration=settings.concentration,
    )
    return source, source.documents(generator, count=settings.documents, length=settings.length)


def _path(settings: CorpusSettings) -> Path:
    if settings.path is not None:
        return Path(settings.path)
    if settings.url is None:
        raise ConfigurationError(
            f"the corpus {settings.name!r} has no corpus.url; set corpus.path to a local copy"
        )
    pinned = sha256(f"{settings.url} {settings.sha256}".encode()).hexdigest()[:12]
    folder = RAW / settings.name / pinned  # of another version, no file may be read along
    return fetch(settings.url, settings.sha256, folder, most_bytes=settings.most_bytes)


def _table(documents: list[Document]) -> pd.DataFrame:
    columns = [field.name for field in fields(Document)]
    return pd.DataFrame(documents, columns=columns).drop(columns="source")


def _manifest(split: Split) -> pd.DataFrame:
    rows = [
        (document.id, document.provenance_group, name, text_sha256(document))
        for name, documents in split.items()
        for document in documents
    ]
    return pd.DataFrame(rows, columns=["id", "provenance_group", "partition", "sha256"])


if __name__ == "__main__":
    run(main)
