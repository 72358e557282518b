"""Train, validation and test: which document goes where, and proof of it.

Documents of one provenance group, and documents with the same text, are never separated under
`ratios`. Under `contiguous` and `position` the order of the text decides, and under `named` the
user does; all report what they separate. Where `position` gives all of the text to train and
validation, there is no test partition. Under `whole` nothing is held out: some published models
were trained on all of their text. Validation then equals train, so that the stages can run, and
test is empty, so that no number can be mistaken for a result on new text.
"""

import hashlib
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import islice, pairwise

from neural_ngram.corpus.document import Document
from neural_ngram.errors import PartitionError
from neural_ngram.settings import SplitSettings

__all__ = ["PARTITIONS", "Split", "parted", "split_documents", "text_sha256"]

PARTITIONS = ("train", "validation", "test")

Split = dict[str, list[Document]]


def text_sha256(document: Document) -> str:
    """Hexadecimal SHA-256 of a document's UTF-8 text."""
    return hashlib.sha256(document.text.encode("utf-8")).hexdigest()


def split_documents(
    documents: list[Document],
    settings: SplitSettings,
    lists: Mapping[str, Iterable[str]] | None = None,
    links: Iterable[tuple[str, str]] = (),
) -> Split:
    """Divide documents as the settings say; `lists` holds IDs by partition for `named`.

    `links` are pairs of IDs that `ratios` does not separate, such as near duplicates.

    Raises PartitionError when a partition is empty, a name matches nothing, or a document is
    named for two partitions.
    """
    if settings.method == "ratios":
        split = _by_ratios(documents, settings, links)
    elif settings.method == "contiguous":
        split = _contiguous(documents, settings)
    elif settings.method == "position":
        split = _by_position(documents, settings)
    elif settings.method == "whole":
        again = [replace(document, id=f"{document.id}/again") for document in documents]
        split = {"train": documents, "validation": again, "test": []}
    else:
        split = _by_name(documents, settings, lists)
    for name in PARTITIONS:
        if not split[name] and (name != "test" or settings.has_test):
            raise PartitionError(_empty_message(name, documents, settings))
    return {**split, "train": split["train"][: settings.max_train_documents]}


def parted(split: Split) -> dict[str, int]:
    """How many provenance groups and distinct texts occur in more than one partition."""
    groups: defaultdict[str, set[str]] = defaultdict(set)
    texts: defaultdict[str, set[str]] = defaultdict(set)
    for name, documents in split.items():
        for document in documents:
            texts[text_sha256(document)].add(name)
            if document.provenance_group is not None:
                groups[document.provenance_group].add(name)
    return {
        "parted_groups": sum(len(names) > 1 for names in groups.values()),
        "parted_texts": sum(len(names) > 1 for names in texts.values()),
    }


def _by_ratios(
    documents: list[Document], settings: SplitSettings, links: Iterable[tuple[str, str]]
) -> Split:
    units = _units(documents, links, together=settings.keep_duplicates_together)
    random.Random(settings.seed).shuffle(units)
    first, second = _cuts(len(units), settings)
    cuts = {"train": units[:first], "validation": units[first:second], "test": units[second:]}
    return {name: [d for unit in chosen for d in unit] for name, chosen in cuts.items()}


def _cuts(size: int, settings: SplitSettings) -> tuple[int, int]:
    """Where train and validation end among that many."""
    # Rounded first, since 0.6 + 0.3 falls just short of the intended 0.9.
    first, second = (
        int(round(fraction * size, 6))
        for fraction in (settings.train, settings.train + settings.validation)
    )
    return first, second


def _units(
    documents: list[Document], links: Iterable[tuple[str, str]], *, together: bool
) -> list[list[Document]]:
    """Documents that must stay together, in order of first appearance: a union-find by key."""
    parent: dict[str, str] = {}

    def root(key: str) -> str:
        while parent.setdefault(key, key) != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    for document in documents:
        if document.provenance_group is not None:
            parent[root(f"group {document.provenance_group}")] = root(f"id {document.id}")
        if together:
            parent[root(f"text {text_sha256(document)}")] = root(f"id {document.id}")
    for one, other in links:
        parent[root(f"id {one}")] = root(f"id {other}")
    units: defaultdict[str, list[Document]] = defaultdict(list)
    for document in documents:
        units[root(f"id {document.id}")].append(document)
    return list(units.values())


def _contiguous(documents: list[Document], settings: SplitSettings) -> Split:
    rest, split = list(documents), Split()
    for name, size in (
        ("train", settings.train_tokens),
        ("validation", settings.validation_tokens),
    ):
        split[name], rest = _take(rest, size)
    return {**split, "test": rest}


def _take(documents: list[Document], size: int) -> tuple[list[Document], list[Document]]:
    """The first `size` whitespace tokens, and the rest; a document at the cut is divided there."""
    taken: list[Document] = []
    for number, document in enumerate(documents):
        tokens = len(document.text.split())
        if tokens <= size:
            taken.append(document)
            size -= tokens
            continue
        rest = documents[number + 1 :]
        if size == 0:
            return taken, [document, *rest]
        cut = next(islice(re.finditer(r"\S+", document.text), size, None)).start()
        head = replace(document, id=f"{document.id}/a", text=document.text[:cut].rstrip())
        tail = replace(document, id=f"{document.id}/b", text=document.text[cut:])
        return [*taken, head], [tail, *rest]
    return taken, []


def _by_position(documents: list[Document], settings: SplitSettings) -> Split:
    in_bytes = settings.position_unit == "bytes"
    sizes = [len(d.text.encode("utf-8") if in_bytes else d.text) for d in documents]
    total = sum(sizes)
    first, second = _cuts(total, settings)
    split: Split = {name: [] for name in PARTITIONS}
    end = 0
    for document, size in zip(documents, sizes, strict=True):
        start, end = end, end + size
        places = [min(max(cut - start, 0), size) for cut in (0, first, second, total)]
        if in_bytes:
            places = [_characters_before(document.text, place, size) for place in places]
        for name, (left, right) in zip(PARTITIONS, pairwise(places), strict=True):
            if left < right:
                split[name].append(_piece(document, left, right))
    return split


def _characters_before(text: str, place: int, size: int) -> int:
    """How many characters of a text of `size` UTF-8 bytes end before a byte offset."""
    if place in (0, size):
        return len(text) if place else 0
    return len(text.encode("utf-8")[:place].decode("utf-8", "ignore"))


def _piece(document: Document, left: int, right: int) -> Document:
    """Characters left to right, added to its ID as a Python slice; all: the document itself."""
    size = len(document.text)
    if (left, right) == (0, size):
        return document
    span = f"{left or ''}:{right if right < size else ''}"
    return replace(document, id=f"{document.id}[{span}]", text=document.text[left:right])


def _by_name(
    documents: list[Document],
    settings: SplitSettings,
    lists: Mapping[str, Iterable[str]] | None,
) -> Split:
    owners: defaultdict[str, set[str]] = defaultdict(set)
    globs: set[str] = set()
    for name in PARTITIONS:
        patterns = getattr(settings, f"{name}_names")
        globs.update(pattern for pattern in patterns if set(pattern) & set("*?["))
        for pattern in (*(lists or {}).get(name, ()), *patterns):
            owners[pattern].add(name)
    split: Split = {name: [] for name in PARTITIONS}
    unused = set(owners)
    for document in documents:
        matched = {key for key in (document.id, document.source) if key in owners}
        matched |= {
            glob
            for glob in globs
            if fnmatchcase(document.id, glob) or fnmatchcase(document.source, glob)
        }
        split[_owner(document, set().union(*(owners[key] for key in matched)))].append(document)
        unused -= matched
    if unused:
        raise PartitionError(
            f"corpus.split names {min(unused)!r}, but no document or file has that name; "
            "correct the name"
        )
    return split


def _owner(document: Document, names: set[str]) -> str:
    if len(names) != 1:
        raise PartitionError(
            f"document {document.id!r} of {document.source} is named for "
            f"{' and '.join(sorted(names)) or 'no partition'}; "
            "name it for exactly one in corpus.split"
        )
    return next(iter(names))


def _empty_message(name: str, documents: list[Document], settings: SplitSettings) -> str:
    remedies = {
        "ratios": "provide more documents, more distinct texts, or other corpus.split ratios",
        "contiguous": "lower corpus.split.train_tokens or corpus.split.validation_tokens",
        "position": "provide more text, or change corpus.split.train and corpus.split.validation",
        "named": f"name files or IDs in corpus.split.{name}_names",
        "whole": "provide a corpus with text",
    }
    return (
        f"the {name} partition is empty: {len(documents)} documents under "
        f"corpus.split.method={settings.method} leave none for it; {remedies[settings.method]}"
    )
