import numpy as np
import pytest
from builders import windows_over
from hypothesis import given
from hypothesis import strategies as st

from neural_ngram.errors import WindowError
from neural_ngram.tokens.windows import Windows, join, token_type

BOS, VOCABULARY = 0, 300


def documents(min_size=0):
    ids = st.lists(st.integers(1, VOCABULARY - 1), max_size=9)
    return st.lists(ids, min_size=min_size, max_size=6)


def by_hand(documents, context_length, pad):
    """Every (context, target), one document after another, in a plain loop."""
    pairs = []
    for document in documents:
        tokens = [BOS] * context_length * (pad is not None) + document
        for at in range(context_length, len(tokens)):
            pairs.append((tokens[at - context_length : at], tokens[at]))
    return pairs


def windows_of(documents, context_length, pad, vocabulary_size=VOCABULARY):
    return windows_over(documents, context_length, vocabulary_size, pad)


def pairs_of(windows, index=slice(None)):
    contexts, targets = windows.contexts(index).tolist(), windows.targets(index).tolist()
    return list(zip(contexts, targets, strict=True))


def test_a_worked_example():
    windows = windows_of([[5, 6, 7], [8], [9, 10, 11]], 2, None)
    assert pairs_of(windows) == [([5, 6], 7), ([9, 10], 11)]
    assert windows.offsets.tolist() == [0, 3, 4, 7]
    assert windows.positions.tolist() == [2, 6]


def test_left_padding_makes_every_token_a_target():
    windows = windows_of([[5, 6], [], [7]], 3, BOS)
    assert pairs_of(windows) == [([0, 0, 0], 5), ([0, 0, 5], 6), ([0, 0, 0], 7)]


@given(documents(), st.integers(1, 4), st.sampled_from([None, BOS]))
def test_windows_are_those_of_a_plain_loop(documents, context_length, pad):
    expected = by_hand(documents, context_length, pad)
    if not expected:
        with pytest.raises(WindowError, match=f"longer than the context of {context_length}"):
            windows_of(documents, context_length, pad)
        return
    windows = windows_of(documents, context_length, pad)
    assert pairs_of(windows) == expected
    assert len(windows) == len(expected)


@given(documents(), st.integers(1, 4), st.data())
def test_any_batch_of_windows_can_be_asked_for(documents, context_length, data):
    expected = by_hand([[1], *documents], context_length, BOS)
    windows = windows_of([[1], *documents], context_length, BOS)
    index = data.draw(st.lists(st.integers(0, len(expected) - 1), max_size=8))
    assert pairs_of(windows, np.array(index, dtype=np.int64)) == [expected[i] for i in index]
    start = data.draw(st.integers(0, len(expected)))
    assert pairs_of(windows, slice(start, start + 3)) == expected[start : start + 3]


def test_no_context_crosses_a_document():
    documents = [[value] * length for value, length in enumerate((4, 1, 3, 2, 5), start=1)]
    for context, target in pairs_of(windows_of(documents, 2, None)):
        assert set(context) == {target}


@given(documents(min_size=1), documents(min_size=1), st.integers(1, 3))
def test_joined_partitions_have_the_windows_of_each_in_turn(first, second, context_length):
    parts = [windows_of([[1], *ids], context_length, BOS) for ids in (first, second)]
    assert pairs_of(join(parts)) == [pair for part in parts for pair in pairs_of(part)]


def test_memory_mapped_tokens_give_the_same_windows(tmp_path):
    windows = windows_of([[5, 6, 7, 8], [9, 299, 1]], 2, BOS)
    np.save(tmp_path / "tokens.npy", windows.tokens)
    mapped = Windows(
        tokens=np.load(tmp_path / "tokens.npy", mmap_mode="r"),
        offsets=windows.offsets,
        context_length=2,
    )
    assert isinstance(mapped.tokens, np.memmap)
    assert pairs_of(mapped) == pairs_of(windows)


@pytest.mark.parametrize(
    ("vocabulary_size", "bits"),
    [(1, 8), (256, 8), (257, 16), (65_536, 16), (65_537, 32), (2**32, 32)],
)
def test_the_type_of_tokens_is_the_smallest_that_holds_the_vocabulary(vocabulary_size, bits):
    chosen = token_type(vocabulary_size)
    assert (chosen.kind, chosen.itemsize * 8) == ("u", bits)


def test_a_vocabulary_beyond_32_bits_is_refused():
    with pytest.raises(WindowError, match=r"4294967297 .*tokenizer\.vocabulary_size"):
        token_type(2**32 + 1)


@pytest.mark.parametrize("vocabulary_size", [256, 257, 65_536, 65_537])
def test_the_last_id_of_a_vocabulary_survives(vocabulary_size):
    last = vocabulary_size - 1
    windows = windows_of([[0, last]], 1, None, vocabulary_size)
    assert pairs_of(windows) == [([0], last)]


@pytest.mark.parametrize("outside", [-1, 256, 2**40])
def test_an_id_outside_the_vocabulary_is_named_with_its_position(outside):
    with pytest.raises(WindowError, match=f"ID {outside} at stream position 4 .*of 256"):
        windows_of([[1, 2], [3, 4, outside]], 1, None, vocabulary_size=256)


def test_padding_with_an_id_outside_the_vocabulary_is_refused():
    with pytest.raises(WindowError, match="ID 256 at stream position 0"):
        windows_of([[1, 2]], 1, 256, vocabulary_size=256)


def test_no_window_anywhere_says_how_long_the_documents_are():
    with pytest.raises(WindowError, match=r"context of 3 tokens .*longest of 2 has 3"):
        windows_of([[1, 2, 3], [4]], 3, None)


def test_no_document_at_all_is_no_window():
    with pytest.raises(WindowError, match="longest of 0 has 0"):
        windows_of([], 3, BOS)
