import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural_ngram.randomness import SplitMix64, uniform_of_each

SEEDS = st.integers(0, 2**64 - 1)


def outputs(seed):
    """SplitMix64 one output at a time, in Python integers, after Vigna's splitmix64.c."""
    mask = 2**64 - 1
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & mask
        z = seed
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield z ^ (z >> 31)


def below(bound, stream):
    threshold = 2**64 % bound
    return next(draw for draw in stream if draw >= threshold) % bound


def test_the_published_vectors():
    assert SplitMix64(1234567).draw(5).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@given(SEEDS)
def test_a_block_is_what_one_draw_after_another_gives(seed):
    assert SplitMix64(seed).draw(50).tolist() == list(itertools.islice(outputs(seed), 50))


@given(SEEDS, st.lists(st.integers(0, 9), max_size=9))
def test_drawing_in_blocks_equals_drawing_at_once(seed, sizes):
    blocks, whole = SplitMix64(seed), SplitMix64(seed)
    drawn = [number for size in sizes for number in blocks.draw(size).tolist()]
    assert drawn == whole.draw(sum(sizes)).tolist()
    assert blocks.state == whole.state


@given(SEEDS)
def test_the_state_is_all_there_is_to_save(seed):
    original = SplitMix64(seed)
    original.draw(7)
    assert SplitMix64(original.state).draw(3).tolist() == original.draw(3).tolist()


@pytest.mark.parametrize(("seed", "same"), [(-1, 2**64 - 1), (2**64 + 5, 5)])
def test_a_seed_counts_modulo_two_to_the_64(seed, same):
    assert SplitMix64(seed).draw(3).tolist() == SplitMix64(same).draw(3).tolist()


@given(SEEDS)
def test_a_unit_float_is_the_high_53_bits(seed):
    drawn = SplitMix64(seed).uniform(20)
    assert drawn.tolist() == [(z >> 11) / 2**53 for z in itertools.islice(outputs(seed), 20)]
    assert drawn.max() < 1


@given(SEEDS, st.integers(0, 60) | st.integers(900, 2500))
def test_a_permutation_is_that_of_sequential_fisher_yates(seed, size):
    stream, expected = outputs(seed), list(range(size))
    for last in range(size - 1, 0, -1):
        other = below(last + 1, stream)
        expected[last], expected[other] = expected[other], expected[last]
    assert SplitMix64(seed).permutation(size).tolist() == expected


# Just above 2^63 nearly half of all draws must be thrown away.
@given(SEEDS, st.lists(st.integers(2**63 - 2, 2**63 + 2) | st.integers(1, 9), max_size=30))
def test_a_rejected_draw_is_drawn_again_and_shifts_the_rest(seed, bounds):
    generator, stream = SplitMix64(seed), outputs(seed)
    drawn = generator._below(np.array(bounds, dtype=np.uint64)).tolist()
    assert drawn == [below(bound, stream) for bound in bounds]
    assert next(stream) == generator.draw(1)[0]


def test_every_permutation_of_four_is_about_equally_frequent():
    generator, times = SplitMix64(0), 2400
    seen = [tuple(generator.permutation(4).tolist()) for _ in range(times)]
    counts = [seen.count(order) for order in itertools.permutations(range(4))]
    chi_squared = sum((count - 100) ** 2 / 100 for count in counts)
    assert chi_squared < 49.7  # 23 degrees of freedom, p = 0.001


@given(st.lists(SEEDS, min_size=1, max_size=5))
def test_many_streams_move_as_each_alone(seeds):
    states = np.array(seeds, dtype=np.uint64)
    rows = [uniform_of_each(states).tolist() for _ in range(3)]
    assert np.transpose(rows).tolist() == [SplitMix64(seed).uniform(3).tolist() for seed in seeds]
