"""Distinct contexts, beside collecting them one window at a time."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from builders import windows_over
from hypothesis import given
from hypothesis import strategies as st

from neural_ngram.contexts import distinct_contexts

CORPORA = st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=12), min_size=1, max_size=4)


@given(CORPORA, st.integers(1, 3))
def test_contexts_and_pairs_are_those_collected_one_by_one(documents, context_length):
    windows = windows_over(documents, context_length)
    found = distinct_contexts(windows)
    rows = [tuple(row) for row in windows.contexts().tolist()]
    targets = windows.targets().tolist()
    counted = Counter(rows)
    assert [tuple(row) for row in found.tokens.tolist()] == sorted(counted)
    assert found.sharing.tolist() == [counted[row] for row in sorted(counted)]
    assert [tuple(found.tokens[which]) for which in found.context_of] == rows
    pairs = Counter(zip(rows, targets, strict=True))
    held = found.pairs
    named = zip([tuple(found.tokens[c]) for c in held.context], held.target.tolist(), strict=True)
    assert dict(zip(named, held.counts.tolist(), strict=True)) == pairs
    assert [held.target[which] for which in held.pair_of] == targets
    assert [held.context[which] for which in held.pair_of] == found.context_of.tolist()


def test_contexts_too_many_for_one_number_are_told_apart():
    """Eight tokens of a vocabulary of 2^31 do not fit the 62 bits of a key."""
    largest, generator = 2**31 - 1, np.random.default_rng(0)
    pool = [0, 1, largest - 1, largest]
    ids = generator.choice(pool, 400)
    windows = windows_over([ids, ids], 8, largest + 1)
    found = distinct_contexts(windows)
    rows = windows.contexts().astype(np.int64)
    np.testing.assert_array_equal(found.tokens[found.context_of], rows)
    assert len(found) == len({tuple(row) for row in rows.tolist()})


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_contexts_expected_in_a_batch_are_those_of_all_batches(size):
    found = distinct_contexts(windows_over([[0, 1, 0, 1, 2, 0, 1]], 1))
    drawn = np.stack(np.meshgrid(*[found.context_of] * size), axis=-1).reshape(-1, size)
    exact = np.mean([len(set(row)) for row in drawn.tolist()])
    assert found.expected_in_batch(size) == pytest.approx(exact)


def test_they_are_found_once_a_partition(monkeypatch):
    windows = windows_over([[0, 1, 0, 1]])
    found = distinct_contexts(windows)
    monkeypatch.setattr("neural_ngram.contexts._analyse", None)
    assert distinct_contexts(windows) is found
    assert all(len(set(pair)) == 2 for pair in combinations(map(tuple, found.tokens), 2))
