"""Continuing a context, and showing it as it comes."""

import pytest
from builders import fresh_model, successor_model
from hypothesis import given
from hypothesis import strategies as st

from neural_ngram.errors import ModelError
from neural_ngram.generation.continuation import (
    TextStream,
    collect,
    continue_context,
    continue_many,
    cycle_length,
    next_logits,
)
from neural_ngram.generation.sampling import Sampler, sampler_of, samplers_of
from neural_ngram.model.network import Model
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import GenerationSettings, TokenizerSettings
from neural_ngram.tokens.prompt import opening_context
from neural_ngram.tokens.tokenizer import learn

BPE = learn(["añb € 🙂", "añ añ"], TokenizerSettings(vocabulary_size=262, markers="bos_eos"))
WORDS = learn(["one two three"], TokenizerSettings(kind="word", markers="none"))


@pytest.fixture
def successor() -> Model:
    return successor_model(4, 20)


def test_greedy_takes_the_best_and_stops_at_the_end_token(successor):
    open_end = continue_context(successor, [0], markers=(None, None), max_new_tokens=6)
    assert (open_end.ids, open_end.stop) == ([1, 2, 3, 0, 1, 2], "limit")
    ended = continue_context(successor, [0], markers=(0, 3), max_new_tokens=6)
    assert (ended.ids, ended.stop) == ([1, 2], "eos")


def test_the_beginning_is_never_produced_unless_it_is_the_end_as_well(successor):
    masked = continue_context(successor, [3], markers=(0, None), max_new_tokens=1)
    assert masked.ids == [1]
    shared = continue_context(successor, [3], markers=(0, 0), max_new_tokens=1)
    assert (shared.ids, shared.stop) == ([], "eos")


def test_a_greedy_cycle_is_found_and_has_its_length(successor):
    ids = continue_context(successor, [0], markers=(None, None), max_new_tokens=9).ids
    assert cycle_length([0], ids) == 4
    assert cycle_length([0], ids[:3]) is None
    assert cycle_length([5, 6], [7, 8]) is None
    assert cycle_length([5, 5], [5]) == 1


@pytest.mark.parametrize("markers", [(None, None), (0, 3), (0, 0)])
@pytest.mark.parametrize("truncation", [{}, {"top_k": 3}, {"top_p": 0.7}])
def test_many_samples_are_those_drawn_one_by_one(markers, truncation):
    model = fresh_model(6, seed=4, embedding_width=3, hidden_width=5)
    model.flat.mul_(3)
    contexts, limit = [[n % 6, n // 6 % 6] for n in range(150)], 9
    many = continue_many(
        model,
        contexts,
        markers=markers,
        max_new_tokens=limit,
        sampler=Sampler(0.9, SplitMix64(8), **truncation),
    )
    samplers = Sampler(0.9, SplitMix64(8), **truncation).split(len(contexts))
    assert many == [
        continue_context(model, context, markers=markers, max_new_tokens=limit, sampler=sampler)
        for context, sampler in zip(contexts, samplers, strict=True)
    ]


def test_a_sample_does_not_depend_on_how_many_are_drawn_along(successor):
    options = {"markers": (None, 3), "max_new_tokens": 5}
    many, few = (
        continue_many(successor, [[0]] * count, sampler=Sampler(5.0, SplitMix64(1)), **options)
        for count in (40, 3)
    )
    assert many[:3] == few


def test_a_short_prompt_needs_a_marker():
    assert opening_context([5], length=3, bos=0) == [0, 0, 5]
    assert opening_context([5, 6, 7, 8], length=3, bos=None) == [6, 7, 8]
    with pytest.raises(ModelError, match=r"longer generation\.prompt"):
        opening_context([5], length=2, bos=None)


@given(st.lists(st.integers(0, BPE.vocabulary_size - 1), max_size=30))
def test_streamed_text_is_the_decoded_text_and_never_half_a_character(ids):
    stream = TextStream(BPE)
    pieces = [stream.feed([token]) for token in ids]
    assert "".join(pieces) + stream.close() == BPE.decode(ids)


def test_a_character_is_shown_when_it_is_whole():
    ids = [2 + byte for byte in "🙂".encode()]
    stream = TextStream(BPE)
    assert [stream.feed([token]) for token in ids] == ["", "", "", "🙂"]
    assert stream.close() == ""


def test_streamed_words_are_set_apart():
    stream = TextStream(WORDS)
    ids = next(WORDS.encode(["one three two"])).tolist()
    assert [stream.feed([token]) for token in ids] == ["one", " three", " two"]


def test_a_watcher_sees_each_token_and_no_more():
    seen = list[int]()
    continuation = collect(iter(range(100)), 3, seen.append)
    assert seen == continuation.ids == [0, 1, 2]


@pytest.mark.parametrize(
    ("context", "masked", "told"),
    [
        ([4], [], "context token 4 lies outside the model's vocabulary of 4"),
        ([-1], [], "context token -1 lies outside"),
        ([0], [9], "masked token 9 lies outside"),
        ([0], [0, 1, 2, 3], "all 4 tokens are masked"),
    ],
)
def test_what_cannot_be_continued_is_refused(successor, context, masked, told):
    with pytest.raises(ModelError, match=told):
        next_logits(successor, context, masked)


def test_a_logit_that_is_not_finite_is_named(successor):
    successor.parameters["output"][0, 2] = float("nan")
    with pytest.raises(ModelError, match="the logit of token 2 is nan"):
        next_logits(successor, [0], [])


def test_a_tiny_temperature_is_greedy_for_many_samples_too(successor):
    (continuation, *others) = continue_many(
        successor,
        [[0]] * 40,
        markers=(None, None),
        max_new_tokens=3,
        sampler=Sampler(1e-39, SplitMix64(1)),
    )
    greedy = continue_context(successor, [0], markers=(None, None), max_new_tokens=3)
    assert continuation.ids == greedy.ids
    assert all(other == continuation for other in others)


def test_a_seed_gives_the_same_samples_one_by_one_and_together(successor):
    asked = GenerationSettings(samples=4, temperature=5.0, seed=5)
    options = {"markers": (None, None), "max_new_tokens": 6}
    alone = [
        continue_context(successor, [0], sampler=sampler, **options)
        for sampler in samplers_of(asked)
    ]
    together = continue_many(successor, [[0]] * 4, sampler=sampler_of(asked), **options)
    assert alone == together
    assert len({tuple(each.ids) for each in alone}) > 1
    assert samplers_of(GenerationSettings(samples=4, temperature=0)) == [None]
