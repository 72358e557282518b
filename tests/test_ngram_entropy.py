import os
from collections import Counter
from itertools import pairwise
from math import log
from pathlib import Path

import numpy as np
import pytest
from builders import windows_over
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

from neural_ngram.errors import ConfigurationError, WindowError
from neural_ngram.ngram.counts import chunks
from neural_ngram.ngram.entropy import Entropy, conditional_entropies
from neural_ngram.tokens.windows import Windows


def counted_plainly(windows, order):
    """The entropy, the contexts, the pairs and the contexts seen once, with dictionaries."""
    rows = zip(windows.contexts().tolist(), windows.targets().tolist(), strict=True)
    grams = [(tuple(context[len(context) - order :]), target) for context, target in rows]
    pairs, contexts = Counter(grams), Counter(context for context, _ in grams)
    entropy = -sum(
        number / len(grams) * log(number / contexts[context])
        for (context, _), number in pairs.items()
    )
    return entropy, len(contexts), len(pairs), sum(n == 1 for n in contexts.values())


unhurried = settings(deadline=None, max_examples=50)
documents_of_few_tokens = st.lists(st.lists(st.integers(0, 3), max_size=30), max_size=6).filter(
    lambda documents: any(len(ids) > 4 for ids in documents)
)


@unhurried
@given(documents_of_few_tokens, st.integers(1, 4), st.sampled_from([None, 0]))
def test_entropies_are_those_of_plain_counting(documents, context_length, pad):
    windows = windows_over(documents, context_length, pad)
    for found in conditional_entropies(windows):
        entropy, contexts, pairs, once = counted_plainly(windows, found.order)
        assert found.windows == len(windows)
        assert found.entropy_nats == pytest.approx(entropy, abs=1e-12)
        assert (found.contexts, found.pairs, found.contexts_seen_once) == (contexts, pairs, once)
        corrected = entropy + (pairs - contexts) / (2 * len(windows))
        assert found.miller_madow_nats == pytest.approx(corrected, abs=1e-12)


@unhurried
@given(documents_of_few_tokens, st.integers(1, 4), st.integers(10, 60))
def test_counting_by_partitions_gives_the_same_to_the_last_bit(documents, context_length, held):
    windows = windows_over(documents, context_length)
    assert conditional_entropies(windows, windows_in_memory=held) == conditional_entropies(windows)


@unhurried
@given(documents_of_few_tokens, st.integers(1, 4), st.integers(10, 60))
def test_chunks_hold_every_window_once_and_in_order(documents, context_length, size):
    windows = windows_over(documents, context_length)
    parts = list(chunks(windows, size))
    np.testing.assert_array_equal(np.concatenate([p.targets() for p in parts]), windows.targets())
    np.testing.assert_array_equal(np.concatenate([p.contexts() for p in parts]), windows.contexts())


@unhurried
@given(documents_of_few_tokens)
def test_one_more_token_of_context_never_raises_the_entropy(documents):
    entropies = [e.entropy_nats for e in conditional_entropies(windows_over(documents, 4))]
    assert all(more <= less + 1e-12 for less, more in pairwise(entropies))


@unhurried
@given(documents_of_few_tokens)
def test_chain_rule_joint_minus_context(documents):
    windows = windows_over(documents, 2)
    contexts, targets = windows.contexts().tolist(), windows.targets().tolist()

    def entropy(things):
        return -sum(n / len(things) * log(n / len(things)) for n in Counter(things).values())

    context = [tuple(row) for row in contexts]
    joint = [(*row, target) for row, target in zip(contexts, targets, strict=True)]
    found = conditional_entropies(windows)[2].entropy_nats
    assert found == pytest.approx(entropy(joint) - entropy(context), abs=1e-12)


def test_entropies_of_a_line_worked_by_hand():
    """a b a b a c, context 1: after a (three windows) b, b, c; after b (two windows) always a."""
    unigram, bigram = conditional_entropies(windows_over([[0, 1, 0, 1, 0, 2]], 1))
    assert unigram.entropy_nats == pytest.approx(2 * (2 / 5) * log(5 / 2) + (1 / 5) * log(5))
    assert bigram == Entropy(
        order=1,
        windows=5,
        entropy_nats=pytest.approx((2 / 5) * log(3 / 2) + (1 / 5) * log(3)),
        miller_madow_nats=pytest.approx((2 / 5) * log(3 / 2) + (1 / 5) * log(3) + 1 / 10),
        grassberger_nats=pytest.approx((3 * g(3) + 2 * g(2) - 2 * g(2) - g(1) - 2 * g(2)) / 5),
        contexts=2,
        pairs=3,
        contexts_seen_once=0,
    )
    assert bigram.share_seen_once == 0


def g(n):
    """Grassberger's G by its recursion: G(1) = −γ − ln 2, G(2) = G(1) + 2, G(n+2) = G(n) + 2/(n+1)
    for even n, and G(n) = G(n−1) for odd n."""
    value = -np.euler_gamma - log(2)
    for even in range(2, n + 1, 2):
        value += 2 / (even - 1)
    return value


@pytest.mark.parametrize("repeats", [1, 2, 2047, 2048, 2049, 2050, 5001])
def test_grassberger_weights_follow_the_recursion_in_the_table_and_beyond(repeats):
    found = conditional_entropies(windows_over([[0] * repeats + [1] * 3], 1))[0]
    total = repeats + 2
    expected = g(total) - ((repeats - 1) * g(repeats - 1) * (repeats > 1) + 3 * g(3)) / total
    assert found.grassberger_nats == pytest.approx(expected, abs=1e-12)


def test_keys_wider_than_64_bits_are_counted_exactly():
    rng = np.random.default_rng(5)
    tokens = rng.choice(np.array([0, 1, 2**31, 2**32 - 1], dtype=np.uint32), 3000)
    windows = Windows(tokens=tokens, offsets=np.array([0, 1000, 3000]), context_length=5)
    for found in conditional_entropies(windows):
        assert found.entropy_nats == pytest.approx(counted_plainly(windows, found.order)[0])
    assert conditional_entropies(windows, windows_in_memory=100) == conditional_entropies(windows)


def test_a_memory_mapped_stream_is_counted_in_partitions(tmp_path):
    rng = np.random.default_rng(11)
    np.save(tmp_path / "tokens.npy", rng.integers(0, 50, 20_000).astype(np.uint8))
    tokens = np.load(tmp_path / "tokens.npy", mmap_mode="r")
    windows = Windows(tokens=tokens, offsets=np.array([0, 20_000]), context_length=2)
    assert conditional_entropies(windows, windows_in_memory=999) == conditional_entropies(windows)


def test_corrections_come_closer_to_the_source_than_the_plain_estimate():
    rng = np.random.default_rng(3)
    probabilities = rng.dirichlet(np.ones(200))
    tokens = rng.choice(200, size=2000, p=probabilities).astype(np.uint8)
    windows = Windows(tokens=tokens, offsets=np.array([0, 2000]), context_length=1)
    truth = -float(probabilities @ np.log(probabilities))
    plain, once_more = conditional_entropies(windows)
    assert abs(plain.grassberger_nats - truth) < abs(plain.entropy_nats - truth)
    assert abs(plain.miller_madow_nats - truth) < abs(plain.entropy_nats - truth)
    assert (
        abs(once_more.grassberger_nats - truth)
        < abs(once_more.miller_madow_nats - truth)
        < abs(once_more.entropy_nats - truth)
    )


@pytest.mark.parametrize("held", [3, 1000])
def test_a_stream_without_windows_is_refused(held):
    tokens = np.zeros(10, dtype=np.uint8)
    windows = Windows(tokens=tokens, offsets=np.array([0, 5, 10]), context_length=5)
    with pytest.raises(WindowError, match="10 tokens yields no window with a context of 5"):
        conditional_entropies(windows, windows_in_memory=held)


def test_holding_no_window_is_refused():
    with pytest.raises(ConfigurationError, match="windows_in_memory is 0"):
        conditional_entropies(windows_over([[0, 1, 0]], 1), windows_in_memory=0)


def test_bigram_entropy_of_all_names_is_that_of_the_published_count_matrix():
    """The lecture on makemore: 627 distinct bigrams, mean loss 2.4540 without smoothing."""
    names = (real_corpora() / "names" / "names.txt").read_text().split()
    windows = windows_over([[ord(c) - 96 for c in name] + [0] for name in names], 3, pad=0)
    bigram = conditional_entropies(windows)[1]
    assert len(windows) == 228_146
    assert bigram.pairs == 627
    assert bigram.entropy_nats == pytest.approx(2.4540, abs=5e-5)


def test_byte_pair_bigram_entropy_of_ewt_is_the_floor_of_the_published_neural_bigram():
    """Published: a neural bigram that stopped at 4.0902, its floor unknown to its author."""
    ewt = (real_corpora() / "ewt" / "en_ewt-ud-train.conllu").read_text(encoding="utf-8")
    lines = [line for line in ewt.split("\n") if line.startswith("# text = ")]
    sentences = [line.removeprefix("# text = ") for line in lines[:10_000]]
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(sentences, BpeTrainer(vocab_size=1108, show_progress=False))
    windows = windows_over([e.ids for e in tokenizer.encode_batch(sentences)], 1)
    assert len(windows) == pytest.approx(291_000, abs=100)
    assert conditional_entropies(windows)[1].entropy_nats == pytest.approx(3.901, abs=5e-4)


def real_corpora():
    if "NEURAL_NGRAM_DATA" not in os.environ:
        pytest.skip("NEURAL_NGRAM_DATA is unset: it names the folder of the real corpora")
    return Path(os.environ["NEURAL_NGRAM_DATA"])
