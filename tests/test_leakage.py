"""Overlap of partitions: what is counted, against counting by hand and published figures."""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from builders import documents
from hypothesis import given
from hypothesis import strategies as st

from neural_ngram.corpus import duplicates
from neural_ngram.corpus.candidates import MOST
from neural_ngram.corpus.document import Document
from neural_ngram.corpus.duplicates import alike, links, overlaps
from neural_ngram.corpus.overlap import measure, require
from neural_ngram.corpus.partition import split_documents
from neural_ngram.corpus.reading import read_corpus
from neural_ngram.errors import PartitionError
from neural_ngram.evaluation.seen import seen_in_train
from neural_ngram.settings import SplitSettings
from neural_ngram.tokens.windows import Windows

LONG = "the quick brown fox jumps over the lazy dog and runs away from the farmer"


def split_of(train: list[str], validation: list[str], test: list[str]):
    parts = {"train": train, "validation": validation, "test": test}
    return {name: documents(*texts, prefix=name) for name, texts in parts.items()}


@pytest.mark.promise("boundary")
def test_overlaps_name_documents_but_never_their_text():
    split = split_of([LONG, "one of train"], ["of validation", LONG + "s"], [LONG, "of test"])
    rows = overlaps(split, 0.8)
    assert [(row["partition"], row["id"], row["train_id"]) for row in rows] == [
        ("validation", "validation2", "train1"),
        ("test", "test1", "train1"),
    ]
    assert rows[1]["similarity"] == 1.0
    report = measure(split, rows)
    assert report["validation"]["same_text_in_train"] == 0.0
    assert report["validation"]["near_duplicate_in_train"] == 0.5
    assert report["test"]["same_text_in_train"] == 0.5
    told = f"{rows} {report}"
    assert not any(word in told for word in ("quick", "of test", "of validation"))


def test_character_windows_are_counted_within_documents():
    split = split_of(["abcdef", "ghij"], ["abcdX", "efgh"], ["bcde"])
    report = measure(split, [])
    assert report["validation"]["character_windows_in_train"] == {"4": 1 / 3}  # abcd bcdX efgh
    assert report["test"]["character_windows_in_train"] == {"4": 1.0}


def test_more_overlap_than_allowed_is_an_error_without_text():
    report = measure(
        split_of([LONG], [LONG], ["x"]), overlaps(split_of([LONG], [LONG], ["x"]), 0.8)
    )
    require(report, 1.0)
    with pytest.raises(PartitionError, match=r"100\.0% of the 1 documents of validation") as caught:
        require(report, 0.5)
    assert "quick" not in str(caught.value)
    assert "corpus.split.most_overlap" in str(caught.value)


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_windows_are_counted_alike_however_the_text_is_taken(at_once: int, seed: int):
    generator = np.random.default_rng(seed)
    texts = ["".join(generator.choice(list("ab"), n)) for n in generator.integers(1, 60, 12)]
    split = split_of(texts[:6], texts[6:9], texts[9:])
    expected = measure(split, [])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neural_ngram.corpus.overlap.CHARACTERS_AT_ONCE", at_once)
        assert measure(split, []) == expected
    known = {t[n : n + 4] for t in texts[:6] for n in range(len(t) - 3)}
    asked = [t[n : n + 4] in known for t in texts[6:9] for n in range(len(t) - 3)]
    if asked:
        share = expected["validation"]["character_windows_in_train"]["4"]
        assert share == pytest.approx(np.mean(asked))


def test_a_part_of_the_windows_stands_for_all(monkeypatch: pytest.MonkeyPatch):
    generator = np.random.default_rng(1)
    texts = ["".join(generator.choice(list("abcdefghij"), 20_000)) for _ in range(3)]
    split = split_of(texts[:1], texts[1:2], texts[2:])
    whole = measure(split, [])["test"]["character_windows_in_train"]
    monkeypatch.setattr("neural_ngram.corpus.overlap.MOST_WINDOWS", 5_000)
    part = measure(split, [])["test"]["character_windows_in_train"]
    assert 0.8 < whole["4"] < 0.9
    assert part["4"] == pytest.approx(whole["4"], abs=0.03)
    assert part != whole


@given(st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_seen_windows_are_those_that_a_set_holds(context: int, seed: int):
    generator = np.random.default_rng(seed)

    def windows() -> Windows:
        tokens = generator.integers(0, 3, 60).astype(np.uint8)
        offsets = np.array([0, 20, 35, 60])
        return Windows(tokens=tokens, offsets=offsets, context_length=context)

    train, other = windows(), windows()

    def rows(part: Windows) -> list[tuple[int, ...]]:
        return [tuple(row) for row in np.column_stack([part.contexts(), part.targets()]).tolist()]

    known = set(rows(train))
    expected = np.mean([row in known for row in rows(other)])
    assert seen_in_train(train, other) == pytest.approx(expected)


def test_names_that_stand_in_two_partitions_are_reported(real_data: Callable[[str], Path]):
    corpus = read_corpus(real_data("names/names.txt"))
    split = split_documents(corpus.documents, SplitSettings(keep_duplicates_together=False))
    report = measure(split, overlaps(split, 0.8))
    assert round(report["validation"]["same_text_in_train"], 3) == 0.132
    assert round(report["test"]["same_text_in_train"], 3) == 0.118
    assert report["validation"]["near_duplicate_in_train"] == pytest.approx(0.146, abs=0.002)


def test_the_official_split_of_ewt_overlaps_as_reported(real_data: Callable[[str], Path]):
    settings = SplitSettings(
        method="named",
        train_names=["*train.conllu"],
        validation_names=["*dev.conllu"],
        test_names=["*test.conllu"],
    )
    split = split_documents(read_corpus(real_data("ewt"), unit="sentence").documents, settings)
    report = measure(split, overlaps(split, 0.8))
    assert round(report["validation"]["same_text_in_train"] * 2001) == 67
    assert round(report["test"]["same_text_in_train"] * 2077) == 93
    assert report["test"]["near_duplicate_in_train"] == pytest.approx(0.0645, abs=0.001)
    assert report["test"]["character_windows_in_train"]["8"] == pytest.approx(0.5278, abs=1e-4)


def templated(count: int) -> list[Document]:
    """Documents of one template, most of which are nearly alike and none the same."""
    generator = np.random.default_rng(count)
    return documents(
        *(
            f"The ferry left at {n} with {generator.integers(1000)} bicycles on deck. Nobody "
            "waved, but the dog of the harbour office barked twice."
            for n in range(count)
        )
    )


def connected(pairs: Iterable[tuple[object, object]]) -> int:
    """How many parts a graph has, of the nodes that its edges name."""
    part: dict[object, object] = {}

    def root(node: object) -> object:
        while part.setdefault(node, node) != node:
            node = part[node]
        return node

    for one, other in pairs:
        part[root(one)] = root(other)
    return len({root(node) for node in part})


@pytest.mark.promise("reliability")
def test_comparisons_grow_with_templated_text_and_not_with_its_square(
    monkeypatch: pytest.MonkeyPatch,
):
    compared = 0

    def counted(one: np.ndarray, other: np.ndarray) -> float:
        nonlocal compared
        compared += 1
        return jaccard(one, other)

    jaccard = duplicates._jaccard
    monkeypatch.setattr(duplicates, "_jaccard", counted)
    needed = {}
    for count in (300, 1200):
        compared, made = 0, templated(count)
        list(alike(made, made, 0.8))
        needed[count] = compared
        assert compared <= MOST * count
    assert needed[1200] < 5 * needed[300]


def test_in_templated_text_nearly_all_near_duplicates_are_found():
    made = templated(600)
    shingles = [{d.text.casefold()[n : n + 5] for n in range(len(d.text) - 4)} for d in made]
    every = sorted(set().union(*shingles))
    holds = np.array([[each in one for each in every] for one in shingles], dtype=np.float32)
    shared, sizes = holds @ holds.T, holds.sum(axis=1)
    near = shared >= 0.8 * (sizes[:, None] + sizes - shared)
    split = {"train": made[:480], "validation": made[480:], "test": []}
    assert len(overlaps(split, 0.8)) >= 0.95 * near[480:, :480].any(axis=1).sum() > 80
    pairs = [(made[a].id, made[b].id) for a, b in np.argwhere(np.tril(near, -1))]
    assert connected(links(made, 0.8)) == connected(pairs)
