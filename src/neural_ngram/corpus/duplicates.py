"""Near duplicates: texts that are nearly the same, within a corpus and across its partitions.

Near duplicates are documents whose sets of character shingles, ignoring case and runs of
whitespace, have a Jaccard similarity of at least a threshold. MinHash (Broder 1997) finds
candidates, whose similarity is then computed exactly: a pair can be missed, but none is false.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np

from neural_ngram.corpus.candidates import PERMUTATIONS, Candidates, Sketch, datasketch
from neural_ngram.corpus.document import Document
from neural_ngram.corpus.shingles import CHARACTERS_AT_ONCE, Hashes, characters_of, runs
from neural_ngram.settings import SplitSettings

__all__ = ["Kinds", "alike", "kinds", "links", "links_to_keep", "overlaps"]

SHINGLE = 5  # characters


@dataclass(frozen=True)
class Kinds:
    """Documents whose texts differ only in case and whitespace are one kind.

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
    """Pairs of a query document and a similar known one, by their indices, and their similarity.

    A query document is compared with a bounded number of candidates, the most similar ones.
    """
    sketches = [_sketch(_shingles(document.text)) for document in known]
    candidates = Candidates(np.array(sketches).reshape(-1, PERMUTATIONS), threshold)
    for place, document in enumerate(asked):
        shingles = _shingles(document.text)
        for candidate in candidates.of(_sketch(shingles)):
            similarity = _jaccard(shingles, _shingles(known[candidate].text))
            if similarity >= threshold:
                yield place, candidate, similarity


def _normal(text: str) -> str:
    return re.sub(r"\s+", " ", text.casefold()).strip()


def _shingles(text: str) -> Hashes:
    """The distinct shingles of a text, ascending; a shorter text is its own only shingle."""
    characters = characters_of(_normal(text))
    return np.unique(runs(characters, max(1, min(SHINGLE, len(characters)))))


@cache
def _empty() -> Any:
    return datasketch().MinHash(num_perm=PERMUTATIONS, seed=1, hashfunc=int)


def _sketch(shingles: Hashes) -> Sketch:
    sketch = _empty().copy()
    for start in range(0, len(shingles), CHARACTERS_AT_ONCE):
        sketch.update_batch(
            (shingles[start : start + CHARACTERS_AT_ONCE] >> np.uint64(32)).tolist()
        )
    values: Sketch = sketch.hashvalues.astype(np.uint32)
    return values


def _jaccard(one: Hashes, other: Hashes) -> float:
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / max(1, len(one) + len(other) - shared)


def links(documents: list[Document], threshold: float) -> list[tuple[str, str]]:
    """Pairs of document IDs that link all near duplicates."""
    found = kinds(documents)
    members: defaultdict[int, list[str]] = defaultdict(list)
    for document, kind in zip(documents, found.of, strict=True):
        members[kind].append(document.id)
    same = [pair for ids in members.values() for pair in pairwise(ids)]
    near = alike(found.first, found.first, threshold)
    return same + [(members[one][0], members[other][0]) for one, other, _ in near if one < other]


def links_to_keep(documents: list[Document], settings: SplitSettings) -> list[tuple[str, str]]:
    """The links that a split must not cut; they are searched for only where it heeds any."""
    heeded = settings.keep_near_duplicates_together and settings.method == "ratios"
    return links(documents, settings.near_duplicate) if heeded else []


def overlaps(split: Mapping[str, list[Document]], threshold: float) -> list[dict[str, Any]]:
    """One row per document of validation and test that has a near duplicate in train.

    It names the document, the most similar one in train (the first of several) and their
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
