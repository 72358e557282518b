"""Which sketches are proposed for comparison: those of an LSH index, boundedly many."""

import numpy as np
import pytest
from datasketch import MinHash, MinHashLSH
from hypothesis import given
from hypothesis import strategies as st

from neural_ngram.corpus.candidates import MOST, NEAREST, PERMUTATIONS, Candidates


def related(generator: np.random.Generator, count: int, agreeing: float) -> np.ndarray:
    """Sketches that agree with a common one in that fraction of values."""
    common = generator.integers(0, 2**32, PERMUTATIONS, dtype=np.uint32)
    own = generator.integers(0, 2**32, (count, PERMUTATIONS), dtype=np.uint32)
    return np.where(generator.random((count, PERMUTATIONS)) < agreeing, common, own)


@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(0, MOST),
    threshold=st.sampled_from([0.3, 0.5, 0.8, 0.99, 1.0]),
)
def test_few_candidates_are_those_of_the_library(seed: int, count: int, threshold: float):
    generator = np.random.default_rng(seed)
    sketches = related(generator, count, generator.random())
    sketches[:, generator.random(PERMUTATIONS) < 0.1] = 0
    law = MinHashLSH(threshold=min(threshold, 0.99), num_perm=PERMUTATIONS, weights=(0.1, 0.9))
    for place, sketch in enumerate(sketches):
        law.insert(place, MinHash(num_perm=PERMUTATIONS, hashvalues=sketch, scheme="affine32"))
    candidates = Candidates(sketches, threshold)
    for sketch in sketches:
        as_made = MinHash(num_perm=PERMUTATIONS, hashvalues=sketch, scheme="affine32")
        assert candidates.of(sketch) == sorted(law.query(as_made))


@pytest.mark.parametrize("agreeing", [0.9, 1.0])
def test_of_many_the_most_similar_are_proposed_and_no_more(agreeing: float):
    generator = np.random.default_rng(1)
    sketches = related(generator, 40 * (MOST + NEAREST), agreeing)
    asked = sketches[100].copy()
    asked[generator.permutation(PERMUTATIONS)[:3]] += 1
    found = Candidates(sketches, 0.8).of(asked)
    assert len(found) == MOST
    assert found == sorted(set(found))
    if agreeing < 1:
        assert 100 in found
