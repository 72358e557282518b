"""How much of validation and test also occurs in train: documents, near duplicates, windows.

Figures, identifiers and hashes only: no text of a document leaves this module.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from neural_ngram.corpus.document import Document
from neural_ngram.corpus.shingles import (
    CHARACTERS_AT_ONCE,
    Hashes,
    characters_of,
    fraction_among,
    runs,
)
from neural_ngram.errors import PartitionError

__all__ = ["measure", "require"]

WIDTHS = (4, 8, 16)  # characters of the windows that are compared without a tokenizer
MOST_WINDOWS = 2**24  # of train; if there are more, a sample is compared


def measure(
    split: Mapping[str, list[Document]], rows: list[dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """The fractions of documents and character windows of validation and test that occur in train.

    If train is large, only one distinct window in N is compared, chosen by its hash.

    rows: the overlaps of the same split.
    """
    exact = {document.text for document in split["train"]}
    one_in = 1 + sum(len(document.text) for document in split["train"]) // MOST_WINDOWS
    train = {width: np.sort(_character_windows(split["train"], width, one_in)) for width in WIDTHS}
    near = Counter(row["partition"] for row in rows)
    report = {}
    for name in ("validation", "test"):
        documents = split[name]
        if not documents:
            continue
        windows = {width: _character_windows(documents, width, one_in) for width in WIDTHS}
        report[name] = {
            "documents": len(documents),
            "same_text_in_train": _fraction(d.text in exact for d in documents),
            "near_duplicate_in_train": near[name] / len(documents),
            "character_windows_in_train": {
                str(width): fraction_among(windows[width], train[width])
                for width in WIDTHS
                if len(windows[width])
            },
        }
    return report


def require(report: Mapping[str, Mapping[str, Any]], most: float) -> None:
    """Raise PartitionError when a partition has more near duplicates in train than `most`."""
    for name, figures in report.items():
        share = figures["near_duplicate_in_train"]
        if share > most:
            raise PartitionError(
                f"{share:.1%} of the {figures['documents']:,} documents of {name} have a near "
                f"duplicate in train, but corpus.split.most_overlap allows {most:.1%}; set "
                "corpus.split.keep_near_duplicates_together=true, clean the corpus, or raise it"
            )


def _character_windows(documents: list[Document], width: int, one_in: int) -> Hashes:
    """The hashes of the runs of `width` characters within a document; of one run in `one_in`."""
    kept = [np.empty(0, dtype=np.uint64)]
    for texts in _blocks(documents, width):
        hashes = runs(characters_of("".join(texts)), width)
        inside = np.ones(len(hashes), dtype=bool)
        for end in np.cumsum([len(text) for text in texts]).tolist():
            inside[max(0, end - width + 1) : end] = False
        kept.append(hashes[inside & ((hashes >> np.uint64(40)) % np.uint64(one_in) == 0)])
    return np.concatenate(kept)


def _blocks(documents: list[Document], width: int) -> Iterator[list[str]]:
    """The texts in blocks; a long text in parts that overlap by width - 1 characters."""
    block, size = list[str](), 0
    for document in documents:
        for start in range(0, len(document.text), CHARACTERS_AT_ONCE):
            block.append(document.text[start : start + CHARACTERS_AT_ONCE + width - 1])
            size += len(block[-1])
            if size >= CHARACTERS_AT_ONCE:
                yield block
                block, size = [], 0
    yield block


def _fraction(flags: Iterable[bool]) -> float:
    counted = list(flags)
    return sum(counted) / len(counted)
