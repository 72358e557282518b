"""What the playground shows of a model."""

from dataclasses import replace

import pytest
import torch

from neural_ngram.cli.playground.view import choices, continued, neighbours, shown
from neural_ngram.errors import ConfigurationError, TokenizerError
from neural_ngram.generation.trained import Trained
from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import initialise
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import GenerationSettings, ModelSettings, TokenizerSettings
from neural_ngram.tokens.tokenizer import learn

GREEDY = GenerationSettings(temperature=0, max_new_tokens=2)


def playable(text: str, settings: TokenizerSettings) -> Trained:
    """After the token of ID t comes t + 1, and after the last the first."""
    tokenizer = learn([text], settings)
    V = tokenizer.vocabulary_size
    shape = Architecture(
        vocabulary_size=V,
        context_length=1,
        settings=ModelSettings(embedding_width=V, hidden="none"),
    )
    model = initialise(shape, SplitMix64(1), torch.float64)
    model.parameters["embedding"].copy_(torch.eye(V))
    model.parameters["output"].copy_(2 * torch.eye(V).roll(1, dims=1))
    return Trained(model, tokenizer)


WORDS = playable("a b c", TokenizerSettings(kind="word", markers="none"))
BYTES = playable("ab", TokenizerSettings(vocabulary_size=258))


def test_choices_have_the_probabilities_that_are_drawn_from():
    asked = GenerationSettings(temperature=2)  # logits 2, 0, 0 over 2: e / (e + 2)
    first, *others = choices(WORDS, b"a", asked, 9)
    assert (first.label, first.prompt) == ("b", b"a b")
    assert first.probability == pytest.approx(0.5761168847658291)
    assert [other.label for other in others] == ["a", "c"]
    top = GenerationSettings(temperature=2, top_k=2)  # e / (e + 1)
    kept = choices(WORDS, b"a", top, 9)
    assert [choice.probability for choice in kept] == pytest.approx(
        [0.7310585786300049, 0.2689414213699951]
    )
    assert [choice.probability for choice in choices(WORDS, b"a", GREEDY, 9)] == [1]


@pytest.mark.promise("reliability")
@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"temperature": float("nan")}, "temperature is nan, but must be a finite number"),
        ({"temperature": float("inf")}, "temperature is inf, but must be a finite number"),
        ({"temperature": -0.5}, "temperature is -0.5, but must be at least 0"),
        ({"temperature": None}, "temperature is None, but must be of type float"),
        ({"temperature": "hot"}, "temperature is 'hot', but must be of type float"),
        ({"top_p": 0.0}, "top_p is 0.0, but must be above 0"),
        ({"max_new_tokens": 10**9}, "at most 10,000"),
    ],
)
def test_values_that_no_slider_gives_are_refused_with_a_reason(changed: dict, told: str):
    asked = replace(GREEDY, **changed)
    for work in (lambda: choices(WORDS, b"a", asked, 9), lambda: continued(WORDS, b"a", asked)):
        with pytest.raises(ConfigurationError, match=told):
            work()


def test_a_prompt_that_is_too_long_is_refused_before_it_is_read():
    unread = Trained(WORDS.model, None, {})
    for prompt in (b"a" * 10_001, "ä".encode() * 10_001, b"a" * 10**8):
        with pytest.raises(ConfigurationError, match="more than 10,000 characters"):
            choices(unread, prompt, GREEDY, 9)
    assert choices(BYTES, b"ab" * 5_000, GREEDY, 1)


def test_a_prompt_goes_on_token_by_token():
    assert continued(WORDS, b"a", GREEDY) == b"a b c"


def test_a_picked_byte_within_a_character_is_kept_until_the_character_is_whole():
    prompt = "é".encode()[:1]
    labels = {choice.label: choice.prompt for choice in choices(BYTES, prompt, GREEDY, 1)}
    assert labels == {"\\xc4": prompt + b"\xc4"}
    assert shown(prompt) == "\ufffd"
    with pytest.raises(TokenizerError, match="ends within a character"):
        choices(WORDS, prompt, GREEDY, 1)


def test_the_end_of_a_document_adds_nothing_to_the_prompt():
    asked = GenerationSettings(temperature=1, top_k=1)
    end = BYTES.tokenizer.eos
    BYTES.model.parameters["output"][2 + ord("a"), end] = 9
    (choice,) = choices(BYTES, b"a", asked, 9)
    assert (choice.label, choice.prompt) == ("<end document>", b"a")


def test_neighbours_are_found_by_how_a_token_reads():
    assert neighbours(WORDS, "a", 5) == [("b", 0.0), ("c", 0.0)]
    assert len(neighbours(BYTES, "␣", 3)) == 3
    with pytest.raises(TokenizerError, match="the vocabulary has no token 'x'"):
        neighbours(WORDS, "x", 5)


def test_sampling_on_is_one_sample_whatever_number_the_settings_ask_for():
    asked = {"temperature": 1.0, "max_new_tokens": 2, "seed": 3}
    one, *others = (
        continued(WORDS, b"a", GenerationSettings(samples=n, **asked)) for n in (1, 0, 5)
    )
    assert others == [one, one]
