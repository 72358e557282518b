"""A trained model with its tokenizer: one door for notebooks, stages, commands and servers."""

import hashlib
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from neural_ngram.cli.playground.view import continued
from neural_ngram.errors import ArtifactError, ModelError, TokenizerError
from neural_ngram.evaluation import scoring
from neural_ngram.export.serving import Served
from neural_ngram.generation.trained import MOST_IN_TURN, Trained, load
from neural_ngram.model import storage as model_storage
from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import Model, initialise, logits
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import (
    GenerationSettings,
    ModelSettings,
    TokenizerSettings,
    WindowSettings,
)
from neural_ngram.tokens import tokenizer as tokenizers
from neural_ngram.tokens import windows
from neural_ngram.tokens.tokenizer import learn

TEXTS = ["so it is", "or is it so?", "ça, c'est ça"]
ASKED = GenerationSettings(temperature=0.9, samples=3, max_new_tokens=12, seed=5, top_k=40)


def trained(context_length: int = 2, **options: object) -> Trained:
    tokenizer = learn(TEXTS, TokenizerSettings(**{"vocabulary_size": 270, **options}))
    shape = Architecture(
        vocabulary_size=tokenizer.vocabulary_size,
        context_length=context_length,
        settings=ModelSettings(embedding_width=4, hidden_width=6),
    )
    model = initialise(shape, SplitMix64(3), torch.float64)
    model.flat.mul_(3)
    return Trained(model, tokenizer)


def by_hand(model: Model, tokens: list[int], length: int, bos: int | None) -> list[float]:
    """ln p of each token, from the logits of one context at a time."""
    padded = [*([] if bos is None else [bos] * length), *tokens]
    return [
        logits(model, torch.tensor([padded[end - length : end]]))
        .log_softmax(dim=1)[0, padded[end]]
        .item()
        for end in range(length, len(padded))
    ]


def test_a_text_is_scored_token_by_token_with_its_end():
    known = trained()
    tokens = [*next(known.tokenizer.encode(["is so"])).tolist(), known.tokenizer.eos]
    score = known.score("is so")
    assert score.tokens.tolist() == tokens
    np.testing.assert_allclose(
        score.log_probabilities, by_hand(known.model, tokens, 2, known.tokenizer.bos), rtol=1e-12
    )
    assert score.nats == pytest.approx(-sum(score.log_probabilities))
    assert score.loss_nats == pytest.approx(score.nats / len(tokens))
    assert score.perplexity == pytest.approx(math.exp(score.nats / len(tokens)))
    assert score.bits_per_byte == pytest.approx(score.nats / math.log(2) / 5)
    assert not score.unknown.any()


def test_the_scores_of_documents_add_up_to_their_loss_as_the_pipeline_measures_it():
    known = trained()
    settings = WindowSettings(context_length=2, padding="left")
    together, counts = windows.encode(TEXTS, known.tokenizer, settings)
    measured = scoring.score(known.model, together, batch_size=64)
    alone = [known.score(text) for text in TEXTS]
    assert sum(each.nats for each in alone) == pytest.approx(measured.summed_nats, rel=1e-12)
    assert sum(each.scored_bytes for each in alone) == counts["scored_bytes"]
    assert sum(len(each.tokens) for each in alone) == measured.tokens


def test_without_special_tokens_the_first_tokens_are_context_alone():
    known = trained(markers="none")
    tokens = next(known.tokenizer.encode(["is so"])).tolist()
    score = known.score("is so")
    assert score.tokens.tolist() == tokens[2:]
    np.testing.assert_allclose(
        score.log_probabilities, by_hand(known.model, tokens, 2, None), rtol=1e-12
    )
    assert score.scored_bytes == len(known.tokenizer.decode(tokens[2:]).encode())
    with pytest.raises(ModelError, match="the text has 2 tokens but the model reads 2"):
        known.score("xy")


def test_unknown_words_are_pointed_out():
    known = trained(kind="word", unknown=True)
    assert known.score("so new is").unknown.tolist() == [False, True, False, False]
    with pytest.raises(TokenizerError, match="'new'"):
        trained(kind="word").score("new")


def test_an_empty_text_is_its_end():
    score = trained().score("")
    assert len(score.tokens) == 1
    assert math.isnan(score.bits_per_byte)


def test_the_next_tokens_have_the_probabilities_of_the_model():
    known = trained()
    logits_V = logits(known.model, torch.tensor([known.context("so")]))[0]
    p_V = logits_V.softmax(dim=0).numpy()
    found = known.next_tokens("so", len(p_V))
    assert [each.token for each in found] == np.argsort(-p_V, kind="stable").tolist()
    np.testing.assert_allclose([each.probability for each in found], np.sort(p_V)[::-1], rtol=1e-9)
    assert {each.token: each.label for each in found}[known.tokenizer.look_up(" ")] == "␣"
    assert {each.token: each.text for each in found}[known.tokenizer.look_up(" ")] == " "


def test_the_next_tokens_as_drawn_leave_out_what_cannot_come():
    known = trained()
    drawn = known.next_tokens("so", 999, GenerationSettings(temperature=2.0))
    assert len(drawn) == known.tokenizer.vocabulary_size - 1
    assert known.tokenizer.bos not in {each.token for each in drawn}
    assert len(known.next_tokens("so", 999, replace(ASKED, top_k=3))) == 3
    (greedy,) = known.next_tokens("so", 999, GenerationSettings(temperature=0))
    assert greedy.probability == 1


def test_a_seed_gives_every_caller_the_same_samples():
    known = trained()
    samples = known.samples("so", ASKED)
    texts = [known.tokenizer.decode(each.ids) for each in samples]
    streams = known.streams("so", ASKED)
    assert ["".join(stream) for stream in streams] == [f"so{text}" for text in texts]
    assert [stream.continuation for stream in streams] == samples
    assert "".join(known.stream("so", ASKED)) == f"so{texts[0]}"
    row = Served(known)._answer(replace(ASKED, prompt="so"), 1)
    assert row["continuations"] == texts
    first = known.tokenizer.decode_bytes(samples[0].ids)
    assert continued(known, b"so", ASKED) == b"so" + first
    many = known.samples("so", replace(ASKED, samples=MOST_IN_TURN + 1))
    assert many[:3] == samples


def test_a_prompt_of_bytes_is_that_of_its_text_and_may_end_within_a_character():
    known = trained()
    assert known.context("ça".encode()) == known.context("ça")
    assert known.tokenizer.decode_bytes(known.encode("ç".encode()[:1])) == "ç".encode()[:1]
    assert known.context("") == [known.tokenizer.bos] * 2
    with pytest.raises(ModelError, match="the prompt has 0 tokens but the model reads 2"):
        trained(markers="none").samples("", ASKED)


def test_a_model_is_loaded_with_its_own_tokenizer_alone(tmp_path: Path):
    known = trained()
    file, folder = tmp_path / "model.safetensors", tmp_path / "tokenizer"
    sha256 = tokenizers.save(known.tokenizer, folder)
    origin = {"tokenizer_sha256": sha256, "documents_sha256": "0" * 64}
    model_storage.save(known.model, file, origin)
    again = load(file, folder)
    assert again.origin == origin
    assert again.samples("so", ASKED) == known.samples("so", ASKED)
    path = folder / "tokenizer.json"
    path.write_bytes(path.read_bytes().replace(b'"version": "1.0"', b'"version":  "1.0"'))
    other = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(ArtifactError) as refused:
        load(file, folder)
    assert str(refused.value) == (
        f"the model was trained with another tokenizer: {sha256[:12]}…, but {path} is of "
        f"{other[:12]}…; run `dvc repro`, or use both from the same run"
    )
    model_storage.save(known.model, file, {})
    with pytest.raises(ArtifactError, match="does not say which tokenizer"):
        load(file, folder)
