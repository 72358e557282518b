from collections import Counter
from itertools import product
from math import log

import numpy as np
import pytest
from builders import windows_over
from hypothesis import given, settings
from hypothesis import strategies as st

from neural_ngram.corpus.synthetic import MarkovSource
from neural_ngram.errors import ConfigurationError
from neural_ngram.ngram.entropy import conditional_entropies
from neural_ngram.ngram.kneser_ney import KneserNey

unhurried = settings(deadline=None, max_examples=40)


@st.composite
def sources(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    alphabet = "abcd"[: draw(st.integers(1, 4))]
    order = draw(st.integers(0, 3))
    concentration = draw(st.sampled_from([0.05, 0.3, 1.0, 10.0]))
    return MarkovSource.draw(rng, alphabet=alphabet, order=order, concentration=concentration)


def law_of_strings(source, length):
    """The probability of every string of `length` ≥ m characters, by multiplying along it."""
    A, m = len(source.alphabet), source.order
    law = {}
    for string in product(range(A), repeat=length):
        p = float(source.stationary[string[:m]])
        for place in range(m, length):
            p *= source.transitions[string[place - m : place + 1]]
        law[string] = p
    return law


def entropy_of(law, part):
    """The entropy of a slice of the strings."""
    marginal = Counter()
    for string, p in law.items():
        marginal[string[part]] += p
    return -sum(p * log(p) for p in marginal.values() if p > 0)


@unhurried
@given(sources())
def test_entropies_are_those_of_all_strings_enumerated(source):
    length = source.order + 2
    law = law_of_strings(source, length)
    found = source.conditional_entropies()
    assert len(found) == source.order + 1
    assert source.entropy_rate == found[-1]
    for k in range(source.order + 2):
        first = length - 1 - k
        by_chain_rule = entropy_of(law, slice(first, None)) - entropy_of(law, slice(first, -1))
        assert by_chain_rule == pytest.approx(found[min(k, source.order)], abs=1e-9)


@unhurried
@given(sources())
def test_the_law_of_every_position_is_the_same(source):
    law = law_of_strings(source, source.order + 1)
    moved = Counter()
    for string, p in law.items():
        moved[string[1:]] += p
    for state, p in moved.items():
        assert p == pytest.approx(float(source.stationary[state]), abs=1e-12)


@unhurried
@given(sources())
def test_more_context_never_raises_the_entropy_and_no_entropy_leaves_its_range(source):
    entropies = source.conditional_entropies()
    assert entropies == pytest.approx(sorted(entropies, reverse=True), abs=1e-12)
    assert entropies[-1] >= -1e-12
    assert entropies[0] <= log(len(source.alphabet)) + 1e-12


def test_a_source_of_two_characters_worked_by_hand():
    """a → b always half the time, b → a always: π = (2/3, 1/3), rate = (2/3) ln 2."""
    source = MarkovSource(alphabet="ab", transitions=np.array([[0.5, 0.5], [1.0, 0.0]]))
    assert source.stationary == pytest.approx([2 / 3, 1 / 3])
    expected = [log(3) - (2 / 3) * log(2), (2 / 3) * log(2)]
    assert source.conditional_entropies() == pytest.approx(expected)
    documents = source.documents(np.random.default_rng(0), count=50, length=40)
    assert not any("bb" in document for document in documents)


@unhurried
@given(sources(), st.integers(0, 5), st.integers(0, 9))
def test_documents_have_the_number_length_and_characters_asked_for(source, count, length):
    documents = source.documents(np.random.default_rng(1), count=count, length=length)
    assert [len(document) for document in documents] == [length] * count
    assert {*"".join(documents)} <= {*source.alphabet}


def test_the_same_generator_draws_the_same_source_and_documents():
    def drawn(seed):
        rng = np.random.default_rng(seed)
        source = MarkovSource.draw(rng, alphabet="abc", order=2)
        return source.documents(rng, count=3, length=20)

    assert drawn(4) == drawn(4)
    assert drawn(4) != drawn(5)


def test_the_first_and_the_last_characters_of_documents_have_the_stationary_law():
    rng = np.random.default_rng(8)
    source = MarkovSource.draw(rng, alphabet="abc", order=2, concentration=0.3)
    documents = source.documents(rng, count=20_000, length=6)
    for place in (0, 2, 4):
        seen = Counter(document[place : place + 2] for document in documents)
        found = [seen["".join(pair)] / 20_000 for pair in product("abc", repeat=2)]
        np.testing.assert_allclose(found, source.stationary.reshape(-1), atol=0.015)


@pytest.fixture(scope="module")
def measured():
    """A source of order 2 over 5 characters, with 200,000 characters to learn from and as many
    to be scored, as windows with 4 tokens of context."""
    rng = np.random.default_rng(21)
    source = MarkovSource.draw(rng, alphabet="abcde", order=2, concentration=0.5)

    def windows():
        documents = source.documents(rng, count=200, length=1000)
        ids = [np.array([source.alphabet.index(c) for c in document]) for document in documents]
        return windows_over(ids, 4, 5)

    return source, windows(), windows()


def test_the_empirical_entropy_converges_to_the_exact_one(measured):
    source, train, _ = measured
    exact = source.conditional_entropies()
    found = conditional_entropies(train)
    for k in range(5):
        assert found[k].entropy_nats == pytest.approx(exact[min(k, 2)], abs=0.01)
        assert found[k].grassberger_nats == pytest.approx(exact[min(k, 2)], abs=0.01)


def test_a_bias_correction_brings_back_what_a_small_sample_hides():
    rng = np.random.default_rng(22)
    source = MarkovSource.draw(rng, alphabet="abcdefgh", order=2)
    documents = source.documents(rng, count=5, length=500)
    ids = [np.array([source.alphabet.index(c) for c in document]) for document in documents]
    found = conditional_entropies(windows_over(ids, 2, 8))[2]
    errors = [
        source.entropy_rate - estimate
        for estimate in (found.entropy_nats, found.miller_madow_nats, found.grassberger_nats)
    ]
    assert errors[0] > 0.05
    assert abs(errors[1]) < errors[0] / 2
    assert abs(errors[2]) < errors[0] / 2


def test_kneser_ney_on_unseen_text_converges_to_the_entropy_of_its_order(measured):
    source, train, validation = measured
    exact = source.conditional_entropies()
    for order in (1, 2, 3):
        model = KneserNey.fit(train, vocabulary_size=5, order=order)
        loss = -model.log_probabilities(validation).mean()
        assert loss == pytest.approx(exact[order - 1], abs=0.01)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"alphabet": ""}, "at least one"),
        ({"alphabet": "aba"}, "'aba' .* distinct"),
        ({"order": -1}, "order -1"),
        ({"order": 7, "alphabet": "abcd"}, "too many"),
        ({"concentration": 0.0}, "concentration of 0.0"),
        ({"concentration": float("nan")}, "concentration of nan"),
    ],
)
def test_settings_out_of_range_are_refused(change, complaint):
    settings_of_source = {"alphabet": "ab", "order": 1, **change}
    with pytest.raises(ConfigurationError, match=complaint):
        MarkovSource.draw(np.random.default_rng(0), **settings_of_source)


def test_a_negative_number_of_documents_is_refused():
    source = MarkovSource.draw(np.random.default_rng(0), alphabet="ab", order=1)
    with pytest.raises(ConfigurationError, match="-1 documents of 5"):
        source.documents(np.random.default_rng(0), count=-1, length=5)
