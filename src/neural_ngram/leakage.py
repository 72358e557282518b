"""How much of validation and test also stands in train: documents, near duplicates, windows.

Figures, identifiers and hashes only: no text of a document leaves this module.

Near duplicates are documents whose sets of character shingles, case and runs of white space aside,
have a Jaccard similarity of at least a threshold. MinHash (Broder 1997) finds candidates, whose
similarity is then computed exactly, so that a pair can be missed but none is made up.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from datasketch import MinHash, MinHashLSH
from numpy.typing import NDArray

from neural_ngram.corpus import Document
from neural_ngram.errors import PartitionError
from neural_ngram.windows import Windows

__all__ = ["Alike", "alike", "links", "measure", "overlaps", "require", "seen_in_train"]

SHINGLE = 5  # characters
WIDTHS = (4, 8, 16)  # characters of the windows that are compared without a tokenizer
_PERMUTATIONS = 128
_RATHER_FIND = (0.1, 0.9)  # what a false candidate weighs, and what a missed one
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class Alike:
    """Texts that are the same but for case and white space are one kind; near[k] are k's likes.

    kinds: of each text. near: of each kind, the kinds alike to it, with their similarity.
    """

    kinds: list[int]
    near: Mapping[int, Mapping[int, float]]


def alike(texts: Iterable[str], threshold: float) -> Alike:
    """Which texts are near duplicates of which."""
    known: dict[str, int] = {}
    kinds = [known.setdefault(_normal(text), len(known)) for text in texts]
    shingles = [_shingles(text) for text in known]
    near: defaultdict[int, dict[int, float]] = defaultdict(dict)
    for one, other in _candidates(shingles, threshold):
        similarity = _jaccard(shingles[one], shingles[other])
        if similarity >= threshold:
            near[one][other] = near[other][one] = similarity
    return Alike(kinds, dict(near))


def _normal(text: str) -> str:
    return re.sub(r"\s+", " ", text.casefold()).strip()


def _shingles(text: str) -> frozenset[str]:
    return frozenset(text[n : n + SHINGLE] for n in range(max(1, len(text) - SHINGLE + 1)))


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)


def _candidates(shingles: list[frozenset[str]], threshold: float) -> Iterable[tuple[int, int]]:
    encoded = ([shingle.encode() for shingle in each] for each in shingles)
    index = MinHashLSH(threshold=threshold, num_perm=_PERMUTATIONS, weights=_RATHER_FIND)
    for kind, sketch in enumerate(MinHash.generator(encoded, num_perm=_PERMUTATIONS, seed=1)):
        yield from ((kind, earlier) for earlier in index.query(sketch))
        index.insert(kind, sketch, check_duplication=False)


def links(documents: list[Document], threshold: float) -> list[tuple[str, str]]:
    """Pairs of document IDs that hold all near duplicates together."""
    found = alike((document.text for document in documents), threshold)
    members: defaultdict[int, list[str]] = defaultdict(list)
    for document, kind in zip(documents, found.kinds, strict=True):
        members[kind].append(document.id)
    same = [pair for ids in members.values() for pair in pairwise(ids)]
    likes = [(members[a][0], members[b][0]) for a, more in found.near.items() for b in more]
    return same + [pair for pair in likes if pair[0] < pair[1]]


def measure(
    split: Mapping[str, list[Document]], rows: list[dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Of validation and of test: what share of documents and of character windows train holds.

    rows: the overlaps of the same split.
    """
    exact = {document.text for document in split["train"]}
    train = {width: np.sort(_character_windows(split["train"], width)) for width in WIDTHS}
    near = Counter(row["partition"] for row in rows)
    report = {}
    for name in ("validation", "test"):
        documents = split[name]
        if not documents:
            continue
        windows = {width: _character_windows(documents, width) for width in WIDTHS}
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

    It names the document, the most similar one of train, and their similarity.
    """
    documents = [(name, document) for name, part in split.items() for document in part]
    found = alike((document.text for _, document in documents), threshold)
    in_train: dict[int, str] = {}
    for (name, document), kind in zip(documents, found.kinds, strict=True):
        if name == "train":
            in_train.setdefault(kind, document.id)
    rows = []
    for (name, document), kind in zip(documents, found.kinds, strict=True):
        likes = {kind: 1.0, **found.near.get(kind, {})}
        best = max((k for k in likes if k in in_train), key=lambda k: (likes[k], -k), default=None)
        if name != "train" and best is not None:
            rows.append(
                {"partition": name, "id": document.id}
                | {"train_id": in_train[best], "similarity": likes[best]}
            )
    return rows


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
    known = np.sort(_hashes(train.tokens, train.positions, width))
    return _share_among(_hashes(other.tokens, other.positions, width), known)


def _character_windows(documents: list[Document], width: int) -> Hashes:
    """The hash of every run of `width` characters that lies within a document."""
    characters = np.frombuffer("".join(d.text for d in documents).encode("utf-32-le"), np.uint32)
    ends = np.cumsum([len(document.text) for document in documents])
    inside = np.ones(len(characters), dtype=bool)
    for lead in range(width - 1):
        starts = np.concatenate([[0], ends[:-1]]) + lead
        inside[starts[starts < ends]] = False
    return _hashes(characters, np.flatnonzero(inside), width)


def _hashes(values: NDArray[Any], positions: NDArray[np.int64], width: int) -> Hashes:
    """(N,) a 64-bit polynomial hash of the `width` values that end at each position."""
    hashes = np.zeros(len(positions), dtype=np.uint64)
    for lag in range(width - 1, -1, -1):
        hashes = hashes * _MULTIPLIER + values[positions - lag].astype(np.uint64) + np.uint64(1)
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
