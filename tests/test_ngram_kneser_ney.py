import json
import os
import random
from collections import Counter
from fractions import Fraction
from functools import cache
from math import log
from pathlib import Path

import numpy as np
import pytest
from builders import windows_over
from hypothesis import given, settings
from hypothesis import strategies as st

from neural_ngram.errors import ModelError
from neural_ngram.ngram.discounts import Discounts
from neural_ngram.ngram.kneser_ney import KneserNey
from neural_ngram.tokens.windows import Windows

BOS, EOS, UNKNOWN = 0, 1, 2
unhurried = settings(deadline=None, max_examples=60)


def real_corpora():
    if "NEURAL_NGRAM_DATA" not in os.environ:
        pytest.skip("NEURAL_NGRAM_DATA is unset: it names the folder of the real corpora")
    return Path(os.environ["NEURAL_NGRAM_DATA"])


# By hand, and by dictionaries


def test_bigram_model_of_two_documents_worked_by_hand():
    """Two documents, "a b" and "a a", each after <s> and before </s>; a bigram model.

    Bigrams seen: <s> a twice; a b, b </s>, a a, a </s> once. None thrice: discounts fall back.
    In front of a stood <s> and a, in front of b only a, in front of </s> stood b and a, so the
    adjusted counts of single tokens are a 2, b 1, </s> 2. Of these 5, discounts take 1 + 1/2 + 1:
    γ = 1/2, and a third of it goes to each of the three tokens that can come next:

        p(a) = (2 − 1)/5 + 1/6 = 11/30     p(b) = (1 − 1/2)/5 + 1/6 = 8/30     p(</s>) = 11/30

    After a: b, a, </s>, once each, each keeps (1 − 1/2)/3 = 1/6 and γ(a) = 1/2:

        p(b | a) = 1/6 + 4/30 = 9/30       p(a | a) = p(</s> | a) = 1/6 + 5.5/30 = 10.5/30

    After <s>: only a, twice, keeps (2 − 1)/2 = 1/2 and γ(<s>) = 1/2:

        p(a | <s>) = 1/2 + 5.5/30          p(b | <s>) = 4/30            p(</s> | <s>) = 5.5/30
    """
    a, b = 2, 3
    windows = windows_over([[a, b, EOS], [a, a, EOS]], 3, 4, pad=BOS)
    model = KneserNey.fit(windows, vocabulary_size=4, order=2)
    assert all(discounts.fallback for discounts in model.discounts)
    assert model.distribution([]) == pytest.approx(np.array([0, 11, 11, 8]) / 30)
    assert model.distribution([a]) == pytest.approx(np.array([0, 10.5, 10.5, 9]) / 30)
    assert model.distribution([BOS]) == pytest.approx(np.array([0, 5.5, 20.5, 4]) / 30)
    scored = [20.5, 9, 11 / 2 + 15, 20.5, 10.5, 10.5]  # after b: </s> keeps 1/2, γ(b) = 1/2
    np.testing.assert_allclose(np.exp(model.log_probabilities(windows)) * 30, scored)


def test_discounts_worked_by_hand():
    """n1 = 4, n2 = 2, n3 = n4 = 1: Y = 4/8; 1 − 2·½·2/4, 2 − 3·½·1/2, 3 − 4·½·1/1."""
    found = Discounts.of(np.array([1, 1, 1, 1, 2, 2, 3, 4, 9, 70]))
    assert found == Discounts(one=0.5, two=1.25, more=1.0)


@pytest.mark.parametrize(
    "counts",
    [[], [2, 3, 4], [1, 3, 4], [1, 2, 4], [1, 2, 2, 3, 3, 3, 3, 3, 3, 3], [1, 1, 2, 3, 4, 4, 4]],
    ids=["none", "no ones", "no twos", "no threes", "two below 0", "three below 0"],
)
def test_discounts_fall_back_where_the_closed_form_fails(counts):
    found = Discounts.of(np.array(counts, dtype=np.int64))
    assert found == Discounts(one=0.5, two=1.0, more=1.5, fallback=True)


def kneser_ney_plainly(windows, order, vocabulary_size):
    """p(token, context tuple) by the formula, with dictionaries and exact fractions."""
    adjusted = [Counter() for _ in range(order + 1)]
    for context, target in zip(
        windows.contexts().tolist(), windows.targets().tolist(), strict=True
    ):
        gram = [target]
        for token in context[::-1][: order - 1]:
            gram.insert(0, token)
            if token == windows.bos:
                break
        adjusted[len(gram)][tuple(gram)] += 1
    for longer, shorter in zip(adjusted[:1:-1], adjusted[-2:0:-1], strict=True):
        shorter.update(gram[1:] for gram in longer)
    predictable = {*range(vocabulary_size)} - ({windows.bos} - {*windows.targets().tolist()})

    def discount(m, count):
        found = Discounts.of(np.array([*adjusted[m].values()], dtype=np.int64))
        return Fraction((found.one, found.two, found.more)[min(count, 3) - 1])

    @cache
    def after(context):
        m = len(context) + 1
        return {g[-1]: (n, discount(m, n)) for g, n in adjusted[m].items() if g[:-1] == context}

    def p(token, context):
        lower = (
            p(token, context[1:]) if context else Fraction(token in predictable) / len(predictable)
        )
        seen = after(context)
        if not seen:
            return lower
        kept = seen[token][0] - seen[token][1] if token in seen else 0
        return (kept + sum(d for _, d in seen.values()) * lower) / sum(n for n, _ in seen.values())

    return p


@st.composite
def worlds(draw):
    """Documents with a final EOS, a context length, an order, and who BOS is: padding or nobody."""
    documents = draw(st.lists(st.lists(st.integers(2, 5), max_size=9), min_size=1, max_size=8))
    context_length = draw(st.integers(1, 4))
    order = draw(st.integers(1, context_length + 1))
    pad = draw(st.sampled_from([BOS, EOS, None]))
    if pad is None:
        documents = [[*document, 2, 3, 4, 5] for document in documents]
    windows = windows_over([[*ids, EOS] for ids in documents], context_length, 7, pad)
    return windows, order


@unhurried
@given(worlds())
def test_probabilities_are_those_of_the_formula_evaluated_with_dictionaries(world):
    windows, order = world
    found = KneserNey.fit(windows, vocabulary_size=7, order=order).log_probabilities(windows)
    p = kneser_ney_plainly(windows, order, 7)
    for context, target, nats in zip(windows.contexts(), windows.targets(), found, strict=True):
        recent = tuple(context.tolist())[len(context) - order + 1 :]
        if windows.bos in recent:
            recent = recent[len(recent) - 1 - recent[::-1].index(windows.bos) :]
        assert nats == pytest.approx(log(p(int(target), recent)), abs=1e-12)


@unhurried
@given(worlds(), st.lists(st.integers(0, 6), max_size=6))
def test_every_distribution_sums_to_one_over_what_can_be_predicted(world, context):
    windows, order = world
    model = KneserNey.fit(windows, vocabulary_size=7, order=order)
    distribution = model.distribution(context)
    assert distribution.sum() == pytest.approx(1, abs=1e-12)
    never = [] if windows.bos in (None, EOS) else [windows.bos]
    assert np.flatnonzero(distribution == 0).tolist() == never


@unhurried
@given(worlds())
def test_a_distribution_holds_the_probability_of_each_window(world):
    windows, order = world
    model = KneserNey.fit(windows, vocabulary_size=7, order=order)
    alone = [
        model.distribution(c)[t] for c, t in zip(windows.contexts(), windows.targets(), strict=True)
    ]
    np.testing.assert_allclose(np.exp(model.log_probabilities(windows)), alone, rtol=1e-12)


def test_an_id_without_a_window_gets_its_share_of_the_uniform_distribution_only():
    windows = windows_over([[3, 3, EOS], [3, 4, EOS]], 1, 5, pad=BOS)
    model = KneserNey.fit(windows, vocabulary_size=5, order=2)
    mass = model.levels[0].backoffs[0]
    assert model.distribution([])[UNKNOWN] == pytest.approx(mass / 4)
    assert model.distribution([UNKNOWN]) == pytest.approx(model.distribution([]))


def test_a_token_after_padding_does_not_see_how_much_padding_there_is():
    narrow = windows_over([[2, 3, EOS], [3, EOS]], 2, 4, pad=BOS)
    wide = windows_over([[2, 3, EOS], [3, EOS]], 9, 4, pad=BOS)
    fitted = [KneserNey.fit(w, vocabulary_size=4, order=3) for w in (narrow, wide)]
    np.testing.assert_array_equal(*(m.log_probabilities(narrow) for m in fitted))
    np.testing.assert_array_equal(*(m.log_probabilities(wide) for m in fitted))
    np.testing.assert_array_equal(*(m.distribution([BOS, 2]) for m in fitted))
    np.testing.assert_array_equal(*(m.distribution([BOS, BOS, BOS, 2]) for m in fitted))


def test_bos_as_a_target_costs_everything_where_it_never_was_one():
    fitted = KneserNey.fit(windows_over([[2, 3]], 1, 4, pad=BOS), vocabulary_size=4, order=2)
    strange = Windows(
        tokens=np.array([0, 2, 0], dtype=np.uint8),
        offsets=np.array([0, 3]),
        context_length=1,
        bos=BOS,
    )
    assert fitted.log_probabilities(strange)[1] == -np.inf


def test_given_discounts_are_used_as_they_are():
    windows = windows_over([[2, 3, EOS], [2, 2, EOS]], 1, 4, pad=BOS)
    given_discounts = [Discounts(one=1, two=2, more=3), Discounts(one=0.1, two=0.2, more=0.3)]
    model = KneserNey.fit(windows, vocabulary_size=4, order=2, discounts=given_discounts)
    assert model.discounts == tuple(given_discounts)
    assert model.distribution([BOS])[2] == pytest.approx(0.9 + 0.1 / 3)


# What users can get wrong


def test_an_order_beyond_the_context_is_refused():
    windows = windows_over([[2, 3, EOS]], 2, 4, pad=BOS)
    for order in (0, 4):
        with pytest.raises(ModelError, match=f"order {order} cannot .* from 1 to 3"):
            KneserNey.fit(windows, vocabulary_size=4, order=order)


def test_a_token_outside_the_vocabulary_is_refused():
    windows = windows_over([[2, 3, EOS]], 1, 4, pad=BOS)
    with pytest.raises(ModelError, match="token ID 3 is outside the vocabulary of 3"):
        KneserNey.fit(windows, vocabulary_size=3, order=2)
    model = KneserNey.fit(windows, vocabulary_size=4, order=2)
    with pytest.raises(ModelError, match="token ID 9"):
        model.log_probabilities(windows_over([[9]], 1, 10, pad=BOS))
    with pytest.raises(ModelError, match="token ID -1"):
        model.distribution([-1])


def test_windows_that_do_not_belong_to_the_model_are_refused():
    model = KneserNey.fit(windows_over([[2, 3]], 2, 4, pad=BOS), vocabulary_size=4, order=3)
    for other in (windows_over([[2, 3]], 1, 4, pad=BOS), windows_over([[2, 3, 3]], 2, 4, pad=None)):
        with pytest.raises(ModelError, match="do not belong to a Kneser-Ney model of order 3"):
            model.log_probabilities(other)


def test_no_window_and_wrong_discounts_are_refused():
    nothing = Windows(
        tokens=np.zeros(3, dtype=np.uint8), offsets=np.array([0, 3]), context_length=3, bos=None
    )
    with pytest.raises(ModelError, match="yields no window"):
        KneserNey.fit(nothing, vocabulary_size=4, order=2)
    with pytest.raises(ModelError, match=r"1 sets of discounts .* of order 2"):
        KneserNey.fit(
            windows_over([[2]], 1, 4, pad=BOS),
            vocabulary_size=4,
            order=2,
            discounts=[Discounts(one=1, two=1, more=1)],
        )
    with pytest.raises(ModelError, match=r"discounts of 1, 2\.5 and 1"):
        Discounts(one=1, two=2.5, more=1)


# Beside KenLM


def spelled(documents, ids, context_length):
    coded = [[*(ids.get(token, UNKNOWN) for token in document), EOS] for document in documents]
    return windows_over(coded, context_length, 3 + len(ids), pad=BOS)


def numbered(documents):
    return {
        token: 3 + place for place, token in enumerate(sorted({t for d in documents for t in d}))
    }


def log10_of_each_document(model, windows):
    document = np.searchsorted(windows.offsets, windows.positions, side="right") - 1
    return np.bincount(document, weights=model.log_probabilities(windows) / log(10))


def ewt_sentences(part):
    text = (real_corpora() / "ewt" / f"en_ewt-ud-{part}.conllu").read_text(encoding="utf-8")
    lines = [line for line in text.split("\n") if line.startswith("# text = ")]
    return [line.removeprefix("# text = ").split() for line in lines]


@pytest.mark.parametrize("order", [3, 5])
def test_every_ewt_sentence_scores_as_in_kenlm(order):
    published = np.loadtxt(real_corpora() / "kenlm" / f"ewt_words_order{order}.dev.tsv")
    train = ewt_sentences("train")
    ids = numbered(train)
    windows = spelled(train, ids, order - 1)
    model = KneserNey.fit(windows, vocabulary_size=3 + len(ids), order=order)
    dev = spelled(ewt_sentences("dev"), ids, order - 1)
    found, unknown = model.log_probabilities(dev), dev.targets() == UNKNOWN
    np.testing.assert_allclose(log10_of_each_document(model, dev), published[:, 0], atol=1e-4)
    assert (unknown.sum(), len(dev)) == (3160, 23617)
    expected = {3: (875.85, 371.34), 5: (869.17, 368.93)}[order]
    assert np.exp(-found.mean()) == pytest.approx(expected[0], abs=0.01)
    assert np.exp(-found[~unknown].mean()) == pytest.approx(expected[1], abs=0.01)
    assert [len(level.grams) for level in model.levels[:3]] == [29_508 - 2, 110_290, 153_623]
    if order == 3:
        assert model.discounts == (
            approximately(0.711703, 1.06926, 1.40448),
            approximately(0.844583, 1.21615, 1.31021),
            approximately(0.891727, 1.38111, 1.7523),
        )


def approximately(one, two, more):
    """Discounts as KenLM prints them, to six digits; as a value to compare with."""

    class Printed:
        def __eq__(self, other):
            found = (other.one, other.two, other.more)
            return found == pytest.approx((one, two, more), rel=5e-6) and not other.fallback

        __hash__ = None

    return Printed()


def names_split():
    names = (real_corpora() / "names" / "names.txt").read_text().split()
    random.Random(42).shuffle(names)
    return names[:25_626], names[25_626:28_829], names[28_829:]


def discounts_of_kenlm(names, order):
    """What lmplz prints: eq. 26, but with a slip in its counts of counts.

    When it has read its last gram, it adds the grams that this one ends in, one an order, by how
    often they were seen (`lower_count` at the end of adjust_counts.cc) and not by their adjusted
    counts. "Last" is by the last character, then the one before, each by its first appearance.
    """
    rank = {"</s>": -1, "<s>": -2}
    for name in names:
        for character in name:
            rank.setdefault(character, len(rank))
    seen = [Counter() for _ in range(order + 1)]
    for name in names:
        padded = ["<s>"] * (order - 1) + [*name, "</s>"]
        for end in range(order, len(padded) + 1):
            for m in range(1, order + 1):
                seen[m][tuple(padded[end - m : end])] += 1
    last = max(seen[order], key=lambda gram: [rank[token] for token in reversed(gram)])
    found = []
    for m in range(1, order + 1):
        counts = Counter({g: n for g, n in seen[m].items() if m == order or g[0] == "<s>"})
        if m < order:
            counts.update(g[1:] for g in seen[m + 1] if g[1] != "<s>")
            counts[last[-m:]] = seen[m][last[-m:]]
        proper = [n for g, n in counts.items() if g[:2] != ("<s>", "<s>")]
        found.append(Discounts.of(np.array(proper)))
    return found


@pytest.mark.parametrize("order", [4, 6])
def test_every_name_scores_as_in_kenlm_with_the_discounts_of_kenlm(order):
    published = np.loadtxt(real_corpora() / "kenlm" / f"names_order{order}.validation.tsv")[:, 0]
    parts = names_split()
    ids = numbered(parts[0])
    train, validation, test = (spelled(part, ids, order - 1) for part in parts)
    discounts = discounts_of_kenlm(parts[0], order)
    assert discounts[0] == Discounts(one=0.5, two=1.0, more=1.5, fallback=True)
    assert discounts[1] == approximately(0.473684, 0.736842, 1.10526)
    model = KneserNey.fit(train, vocabulary_size=3 + len(ids), order=order, discounts=discounts)
    np.testing.assert_allclose(log10_of_each_document(model, validation), published, atol=1e-4)
    expected = {4: (1.9304, 2.0564, 2.0579), 6: (1.6178, 1.9746, 1.9779)}[order]
    losses = [-model.log_probabilities(part).mean() for part in (train, validation, test)]
    assert losses == pytest.approx(expected, abs=5e-5 + 1e-9)


def test_names_score_nearly_as_in_kenlm_with_discounts_free_of_its_slip():
    published = np.loadtxt(real_corpora() / "kenlm" / "names_order4.validation.tsv")[:, 0]
    parts = names_split()
    ids = numbered(parts[0])
    model = KneserNey.fit(spelled(parts[0], ids, 3), vocabulary_size=3 + len(ids), order=4)
    found = log10_of_each_document(model, spelled(parts[1], ids, 3))
    np.testing.assert_allclose(found, published, atol=5e-3)
    assert found.mean() == pytest.approx(published.mean(), abs=1e-4)


def brown_parts():
    """Marked streams of 800,000, 200,000 and the remaining tokens; rare ones are one symbol."""
    lines = (real_corpora() / "brown" / "brown.jsonl").read_text(encoding="utf-8").splitlines()
    stream = []
    for text in (json.loads(line)["text"] for line in lines):
        stream.append("<d>")
        for paragraph in text.split("\n\n"):
            stream += ["<p>", *paragraph.split()]
    frequency = Counter(stream)
    stream = [token if frequency[token] > 3 else "<rare>" for token in stream]
    return stream[:800_000], stream[800_000:1_000_000], stream[1_000_000:]


def test_brown_perplexities_are_those_of_kenlm():
    """Each part is one line, so each has one end mark; tokens that only stand outside the training
    part are unknown. KenLM adds up a line's log10 probabilities in single precision, which moves
    the perplexity of a line of 200,000 tokens by up to 0.1; in double precision it is 331.29 and
    309.05 for order 3, 328.44 and 306.33 for order 5."""
    parts = brown_parts()
    assert sum(map(len, parts)) == 1_177_359
    assert len({token for part in parts for token in part}) == 17_907
    ids = numbered(parts[:1])
    expected = {3: ((331.29, 309.05), (331.4, 309.1)), 5: ((328.44, 306.33), (328.5, 306.3))}
    for order, (exact, published) in expected.items():
        train, *others = (spelled([part], ids, order - 1) for part in parts)
        model = KneserNey.fit(train, vocabulary_size=3 + len(ids), order=order)
        nats = [model.log_probabilities(part) for part in others]
        assert [np.exp(-n.mean()) for n in nats] == pytest.approx(exact, abs=0.006)
        totals = [np.cumsum((n / log(10)).astype(np.float32))[-1] for n in nats]
        singly = [10 ** -(total / len(n)) for total, n in zip(totals, nats, strict=True)]
        assert singly == pytest.approx(published, abs=0.06)
