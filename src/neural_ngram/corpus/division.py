"""A corpus divided into train, validation and test, and what is recorded of it.

Besides the tables, nothing here holds text: the report and the sentences are counts and hashes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd

from neural_ngram.artifacts import read_json
from neural_ngram.corpus.document import Document
from neural_ngram.corpus.duplicates import links_to_keep, overlaps
from neural_ngram.corpus.overlap import measure, require
from neural_ngram.corpus.partition import PARTITIONS, Split, parted, split_documents, text_sha256
from neural_ngram.corpus.reading import Corpus
from neural_ngram.errors import ConfigurationError
from neural_ngram.settings import CorpusSettings

__all__ = ["Division", "divide", "read_lists"]


@dataclass(frozen=True, kw_only=True)
class Division:
    """The documents of each partition, and how much of validation and test also occurs in train.

    overlaps: a row per document that has a near duplicate in train, as `duplicates.overlaps` finds
    them. leakage: the fractions that `overlap.measure` computes, by partition.
    """

    settings: CorpusSettings
    corpus: Corpus
    split: Split
    overlaps: list[dict[str, Any]]
    leakage: dict[str, dict[str, Any]]

    @property
    def sizes(self) -> dict[str, int]:
        """The number of documents of each partition."""
        return {name: len(documents) for name, documents in self.split.items()}

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The documents of each partition: a row per document, with a column `text`."""
        columns = [field.name for field in fields(Document)]
        return {
            name: pd.DataFrame(documents, columns=columns).drop(columns="source")
            for name, documents in self.split.items()
        }

    @property
    def manifest(self) -> pd.DataFrame:
        """A row per document: its ID, provenance group, partition and the SHA-256 of its text."""
        rows = [
            (document.id, document.provenance_group, name, text_sha256(document))
            for name, documents in self.split.items()
            for document in documents
        ]
        return pd.DataFrame(rows, columns=["id", "provenance_group", "partition", "sha256"])

    @property
    def overlap_table(self) -> pd.DataFrame:
        """The overlaps, with their columns also where there are none."""
        columns = ["partition", "id", "train_id", "similarity"]
        return pd.DataFrame(self.overlaps, columns=columns)

    @property
    def report(self) -> dict[str, Any]:
        """Counts, fractions and hashes, as JSON holds them."""
        return {
            "corpus": self.corpus.counts,
            "documents": self.sizes,
            "overlap": parted(self.split),
            "held_out": self.settings.split.method != "whole",
            "leakage": self.leakage,
            "source_entropies_nats": self.corpus.entropies_nats,
            **_particulars(self.settings, self.split),
        }


def divide(corpus: Corpus, settings: CorpusSettings) -> Division:
    """Divide the documents as `corpus.split` says and measure what the partitions share.

    Raises PartitionError as `split_documents` does, and when more of a partition has near
    duplicates in train than `most_overlap` allows; ConfigurationError as `read_lists` does.
    """
    asked = settings.split
    lists = read_lists(Path(asked.lists)) if asked.lists is not None else None
    pairs = links_to_keep(corpus.documents, asked)
    split = split_documents(corpus.documents, asked, lists, pairs)
    rows = overlaps(split, asked.near_duplicate)
    leakage = measure(split, rows)
    require(leakage, asked.most_overlap)
    return Division(settings=settings, corpus=corpus, split=split, overlaps=rows, leakage=leakage)


def read_lists(path: Path) -> Mapping[str, list[str]]:
    """The document IDs of each partition that a JSON file names.

    Raises ConfigurationError when it holds anything else, ArtifactError when it cannot be read.
    """
    lists = read_json(path)
    for name, ids in lists.items():
        texts = isinstance(ids, list) and all(isinstance(each, str) for each in ids)
        if name not in PARTITIONS or not texts:
            raise ConfigurationError(
                f"{path} has {json.dumps(ids)[:40]} under {name!r}, but corpus.split.lists must "
                f"hold lists of document IDs under {', '.join(PARTITIONS)}; correct it"
            )
    return lists


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
