"""Which windows share a context: found once, and the same for scoring, counting and training."""

from collections import Counter

import numpy as np
import pytest
from builders import windows_over
from hypothesis import given
from hypothesis import strategies as st

from neural_ngram.ngram.entropy import conditional_entropies
from neural_ngram.tokens.windows import Windows, build_stream

CORPORA = st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=12), min_size=1, max_size=4)


def windows(documents: list[list[int]], vocabulary: int, context_length: int = 2) -> Windows:
    tokens, offsets = build_stream(
        [np.array(ids) for ids in documents],
        context_length=context_length,
        vocabulary_size=vocabulary,
        pad=0,
    )
    return Windows(tokens=tokens, offsets=offsets, context_length=context_length, bos=0)


def test_distinct_contexts_are_found_and_kept():
    text = windows([[1, 2, 3], [1, 2, 3], [1, 2, 4]], 5)
    contexts = text.distinct
    assert text.contexts(contexts.first).tolist() == [[0, 0], [0, 1], [1, 2]]
    assert contexts.tokens.tolist() == [[0, 0], [0, 1], [1, 2]]
    assert contexts.multiplicity.tolist() == [3, 3, 3]
    assert np.bincount(contexts.pairs.pair_of).tolist() == [3, 3, 2, 1]
    assert contexts.pairs.target.tolist() == [1, 2, 3, 4]
    assert text.distinct is contexts


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=20), min_size=1, max_size=5),
    st.integers(1, 4),
)
def test_the_floor_counts_the_distinct_contexts_that_scoring_and_training_share(documents, length):
    text = windows(documents, 4, length)
    expected = Counter(map(tuple, text.contexts().tolist()))
    assert list(map(tuple, text.distinct.tokens.tolist())) == sorted(expected)
    assert text.distinct.multiplicity.tolist() == [expected[key] for key in sorted(expected)]
    floor = conditional_entropies(text)[-1]
    assert floor.contexts == len(text.distinct)
    assert floor.pairs == len(text.distinct.pairs)
    assert floor.contexts_seen_once == (text.distinct.multiplicity == 1).sum()


def test_distinct_contexts_of_a_length_and_vocabulary_beyond_64_bits():
    draws = np.random.default_rng(0)
    ids = draws.integers(0, 50_000, 400)
    text = windows([np.concatenate([ids, ids]).tolist()], 50_000, context_length=9)
    contexts = text.distinct
    np.testing.assert_array_equal(contexts.tokens[contexts.context_of], text.contexts())
    rows = list(map(tuple, contexts.tokens.tolist()))
    assert rows == sorted(set(map(tuple, text.contexts().tolist())))


def test_expected_distinct_contexts_match_a_simulation():
    draws = np.random.default_rng(5)
    contexts = windows([draws.integers(0, 8, 400).tolist() for _ in range(3)], 8).distinct
    draws = np.random.default_rng(1).integers(0, len(contexts.context_of), (2000, 50))
    seen = np.mean([len(set(row)) for row in contexts.context_of[draws].tolist()])
    assert contexts.expected_in_batch(50) == pytest.approx(seen, rel=0.01)


def test_a_single_context_is_always_in_the_batch():
    assert windows([[1], [2], [1]], 3).distinct.expected_in_batch(5) == 1


@given(CORPORA, st.integers(1, 3))
def test_contexts_and_pairs_are_those_collected_one_by_one(documents, context_length):
    windows = windows_over(documents, context_length)
    found = windows.distinct
    rows = [tuple(row) for row in windows.contexts().tolist()]
    targets = windows.targets().tolist()
    counted = Counter(rows)
    assert [tuple(row) for row in found.tokens.tolist()] == sorted(counted)
    assert found.multiplicity.tolist() == [counted[row] for row in sorted(counted)]
    assert [tuple(found.tokens[which]) for which in found.context_of] == rows
    pairs = Counter(zip(rows, targets, strict=True))
    held = found.pairs
    named = zip([tuple(found.tokens[c]) for c in held.context], held.target.tolist(), strict=True)
    assert dict(zip(named, held.counts.tolist(), strict=True)) == pairs
    assert [held.target[which] for which in held.pair_of] == targets
    assert [held.context[which] for which in held.pair_of] == found.context_of.tolist()


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_contexts_expected_in_a_batch_are_those_of_all_batches(size):
    found = windows_over([[0, 1, 0, 1, 2, 0, 1]], 1).distinct
    drawn = np.stack(np.meshgrid(*[found.context_of] * size), axis=-1).reshape(-1, size)
    exact = np.mean([len(set(row)) for row in drawn.tolist()])
    assert found.expected_in_batch(size) == pytest.approx(exact)
