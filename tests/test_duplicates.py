"""Near duplicates, against the sets of shingles themselves."""

import pytest
from builders import documents
from hypothesis import given
from hypothesis import strategies as st

from neural_ngram.corpus.duplicates import alike, kinds, links, overlaps
from neural_ngram.corpus.partition import split_documents
from neural_ngram.settings import SplitSettings

LONG = "the quick brown fox jumps over the lazy dog and runs away from the farmer"


def test_case_and_white_space_make_no_difference_and_a_changed_word_a_small_one():
    made = documents(LONG, LONG.upper().replace(" ", "\n "), LONG + " again", "something else")
    found = kinds(made)
    assert found.of == [0, 0, 1, 2]
    assert [document.id for document in found.first] == ["d1", "d3", "d4"]
    # LONG has 68 distinct runs of five characters; " again" adds 6.
    assert list(alike(made[:1], made[1:], 0.8)) == [(0, 0, 1.0), (0, 1, pytest.approx(68 / 74))]


def test_near_duplicates_stay_together_when_asked():
    texts = [f"{n} {LONG} {n}" for n in range(20)]
    texts += [f"{'x' * n} entirely other words {n * 7919}" for n in range(20)]
    made = documents(*texts)
    settings = SplitSettings(keep_near_duplicates_together=True, train=0.5, validation=0.25)
    split = split_documents(made, settings, links=links(made, 0.8))
    owners = {name for name, part in split.items() for d in part if LONG in d.text}
    assert len(owners) == 1
    assert overlaps(split, 0.8) == [row for row in overlaps(split, 0.8) if row["similarity"] < 0.8]
    parted = split_documents(made, settings)
    assert len({name for name, part in parted.items() for d in part if LONG in d.text}) == 3


@given(st.lists(st.text("ab", min_size=1, max_size=12), max_size=12))
def test_what_is_alike_is_so_both_ways_by_the_sets_of_its_shingles(texts: list[str]):
    def shingles(text: str) -> set[str]:
        return {text[n : n + 5] for n in range(max(1, len(text) - 4))}

    made = documents(*texts)
    found = {(one, other): similarity for one, other, similarity in alike(made, made, 0.5)}
    assert all((n, n) in found for n in range(len(texts)))
    for (one, other), similarity in found.items():
        a, b = shingles(texts[one]), shingles(texts[other])
        assert found[other, one] == similarity == len(a & b) / len(a | b) >= 0.5


def test_a_threshold_of_one_finds_only_texts_of_the_same_shingles():
    made = documents(LONG, LONG.upper(), LONG + "s")
    assert [(one, other) for one, other, _ in alike(made, made, 1.0)] == [
        *((0, 0), (0, 1), (1, 0), (1, 1)),
        (2, 2),
    ]


def test_links_join_each_class_of_near_duplicates_and_no_other():
    made = documents(LONG, "another text altogether", LONG.upper(), LONG + "s", "and a third one")
    owner = {document.id: document.id for document in made}

    def root(name: str) -> str:
        return name if owner[name] == name else root(owner[name])

    for one, other in links(made, 0.8):
        owner[root(one)] = root(other)
    classes = {frozenset(name for name in owner if root(name) == root(d)) for d in owner}
    assert classes == {frozenset({"d1", "d3", "d4"}), frozenset({"d2"}), frozenset({"d5"})}
