"""How much of validation and test also stands in train: documents, near duplicates, windows.

Figures, identifiers and hashes only: no text of a document leaves this module.

Near duplicates are documents whose sets of character shingles, case and runs of white space aside,
have a Jaccard similarity of at least a threshold. MinHash (Broder 1997) finds candidates, whose
similarity is then computed exactly, so that a pair can be missed but none is made up. Sets of runs
of characters are held as 64-bit hashes, of which two that differ are next to never the same.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from datasketch import MinHash, MinHashLSH
from numpy.typing import NDArray

from neural_ngram.corpus import Document
from neural_ngram.errors import PartitionError
from neural_ngram.windows import Windows

__all__ = ["Kinds", "alike", "kinds", "links", "measure", "overlaps", "require", "seen_in_train"]

SHINGLE = 5  # characters
WIDTHS = (4, 8, 16)  # characters of the windows that are compared without a tokenizer
MOST_WINDOWS = 2**24  # of train; of more, a part is compared
CHARACTERS_AT_ONCE = 2**18
_PERMUTATIONS = 128
_RATHER_FIND = (0.1, 0.9)  # what a false candidate weighs, and what a missed one
_EMPTY = MinHash(num_perm=_PERMUTATIONS, seed=1, hashfunc=int)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class Kinds:
    """Documents whose texts are the same but for case and white space are one kind.

    first: a document of each kind. of: the kind of each document.
    """

    first: list[Document]
    of: list[int]


def kinds(documents: Iterable[Document]) -> Kinds:
    """The kinds of some documents, in order of first appearance."""
    known: dict[bytes, int] = {}
    first, of = list[Document](), list[int]()
    for document in documents:
        digest = blake2b(_normal(document.text).encode(), digest_size=16).digest()
        of.append(known.setdefault(digest, len(known)))
        if len(known) > len(first):
            first.append(document)
    return Kinds(first, of)


def alike(
    asked: list[Document], known: list[Document], threshold: float
) -> Iterator[tuple[int, int, float]]:
    """Which asked document is like which known one, by their places, and how similar they are."""
    # Above 0.99 the library finds no bands; what they find there is found below, too.
    banded = min(threshold, 0.99)
    index = MinHashLSH(threshold=banded, num_perm=_PERMUTATIONS, weights=_RATHER_FIND)
    for place, document in enumerate(known):
        index.insert(place, _sketch(_shingles(document.text)), check_duplication=False)
    for place, document in enumerate(asked):
        shingles = _shingles(document.text)
        for candidate in sorted(index.query(_sketch(shingles))):
            similarity = _jaccard(shingles, _shingles(known[candidate].text))
            if similarity >= threshold:
                yield place, candidate, similarity


def _normal(text: str) -> str:
    return re.sub(r"\s+", " ", text.casefold()).strip()


def _shingles(text: str) -> Hashes:
    """The distinct shingles of a text, ascending; a text shorter than one is its only shingle."""
    characters = _characters(_normal(text))
    return np.unique(_runs(characters, max(1, min(SHINGLE, len(characters)))))


def _sketch(shingles: Hashes) -> MinHash:
    sketch = _EMPTY.copy()
    for start in range(0, len(shingles), CHARACTERS_AT_ONCE):
        sketch.update_batch(
            (shingles[start : start + CHARACTERS_AT_ONCE] >> np.uint64(32)).tolist()
        )
    return sketch


def _jaccard(one: Hashes, other: Hashes) -> float:
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / max(1, len(one) + len(other) - shared)


def links(documents: list[Document], threshold: float) -> list[tuple[str, str]]:
    """Pairs of document IDs that hold all near duplicates together."""
    found = kinds(documents)
    members: defaultdict[int, list[str]] = defaultdict(list)
    for document, kind in zip(documents, found.of, strict=True):
        members[kind].append(document.id)
    same = [pair for ids in members.values() for pair in pairwise(ids)]
    near = alike(found.first, found.first, threshold)
    return same + [(members[one][0], members[other][0]) for one, other, _ in near if one < other]


def measure(
    split: Mapping[str, list[Document]], rows: list[dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Of validation and of test: what share of documents and of character windows train holds.

    In a large train partition, one distinct window in so many is looked at, chosen by its hash.

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
            "same_text_in_train": _share(d.text in exact for d in documents),
            "near_duplicate_in_train": near[name] / len(documents),
            "character_windows_in_train": {
                str(width): _share_among(windows[width], train[width])
                for width in WIDTHS
                if len(windows[width])
            },
        }
    return report


def overlaps(split: Mapping[str, list[Document]], threshold: float) -> list[dict[str, Any]]:
    """A row for each document of validation and test that has a near duplicate in train.

    It names the document, the most similar one of train, the first of several, and their
    similarity.
    """
    held_out = [(name, d) for name, part in split.items() if name != "train" for d in part]
    found, train = kinds(d for _, d in held_out), kinds(split["train"])
    best: dict[int, tuple[float, str]] = {}
    for place, kind, similarity in alike(train.first, found.first, threshold):
        if similarity > best.get(kind, (0.0, ""))[0]:
            best[kind] = similarity, train.first[place].id
    return [
        {"partition": name, "id": document.id, "train_id": best[kind][1]}
        | {"similarity": best[kind][0]}
        for (name, document), kind in zip(held_out, found.of, strict=True)
        if kind in best
    ]


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


def seen_in_train(train: Windows, other: Windows) -> float:
    """The share of the other windows whose whole context and target occur in train."""
    width = train.context_length + 1
    known, asked = (
        _runs(part.tokens, width)[part.positions - part.context_length] for part in (train, other)
    )
    return _share_among(asked, np.sort(known))


def _character_windows(documents: list[Document], width: int, one_in: int) -> Hashes:
    """The hashes of the runs of `width` characters within a document, of one run in so many."""
    kept = [np.empty(0, dtype=np.uint64)]
    for texts in _blocks(documents, width):
        hashes = _runs(_characters("".join(texts)), width)
        inside = np.ones(len(hashes), dtype=bool)
        for end in np.cumsum([len(text) for text in texts]).tolist():
            inside[max(0, end - width + 1) : end] = False
        kept.append(hashes[inside & ((hashes >> np.uint64(40)) % np.uint64(one_in) == 0)])
    return np.concatenate(kept)


def _blocks(documents: list[Document], width: int) -> Iterator[list[str]]:
    """The texts, some at a time; a long one in parts that share width - 1 characters."""
    block, size = list[str](), 0
    for document in documents:
        for start in range(0, len(document.text), CHARACTERS_AT_ONCE):
            block.append(document.text[start : start + CHARACTERS_AT_ONCE + width - 1])
            size += len(block[-1])
            if size >= CHARACTERS_AT_ONCE:
                yield block
                block, size = [], 0
    yield block


def _characters(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)


def _runs(values: NDArray[Any], width: int) -> Hashes:
    """A 64-bit polynomial hash of every run of `width` values, in the order of their ends."""
    coefficients = values.astype(np.uint64) + np.uint64(1)
    count = max(0, len(values) - width + 1)
    hashes = coefficients[:count].copy()
    for place in range(1, width):
        hashes *= _MULTIPLIER
        hashes += coefficients[place : place + count]
    return hashes


def _share_among(hashes: Hashes, known: Hashes) -> float:
    """The share of `hashes` among `known`, which is sorted."""
    if not len(known):
        return 0.0
    places = np.searchsorted(known, hashes).clip(max=len(known) - 1)
    return float((known[places] == hashes).mean())


def _share(flags: Iterable[bool]) -> float:
    counted = list(flags)
    return sum(counted) / len(counted)
