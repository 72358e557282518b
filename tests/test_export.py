"""Exports, read back by the programs that they are for."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import tokenizers
import torch
from gensim.models import KeyedVectors
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from neural_ngram.export.card import model_card
from neural_ngram.export.onnx import onnx_graph
from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import Model, initialise, logits
from neural_ngram.model.vectors import read_word2vec, word2vec
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import CorpusSettings, ModelSettings, TokenizerSettings
from neural_ngram.tokens.tokenizer import Tokenizer, learn, save

V, C = 11, 3
MODELS = [
    *({"hidden": kind} for kind in ("none", "swiglu", "tanh", "relu", "sigmoid", "gelu")),
    {"hidden": "swiglu", "hidden_layers": 3, "direct": True},
    {"hidden": "tanh", "hidden_layers": 2, "hidden_bias": True, "output_bias": True},
    {"hidden": "gelu", "hidden_width": 4, "tied_output": True, "direct": True},
    {"hidden": "none", "output_bias": True},
]


def model(options: dict, dtype: torch.dtype = torch.float32) -> Model:
    widths = {"embedding_width": 4, "hidden_width": 6, "initialisation": "scaled"}
    settings = ModelSettings(**widths | {"initialisation_scale": 0.5} | options)
    shape = Architecture(vocabulary_size=V, context_length=C, settings=settings)
    made = initialise(shape, SplitMix64(4), dtype)
    for name, weights in made.parameters.items():
        if "bias" in name:
            weights.copy_(torch.linspace(-1, 1, len(weights)))
    return made


def contexts(rows: int) -> np.ndarray:
    return np.random.default_rng(rows).integers(0, V, (rows, C))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("options", MODELS)
def test_onnxruntime_computes_our_logits_for_any_number_of_contexts(options, dtype):
    ours = model(options, dtype)
    session = onnxruntime.InferenceSession(onnx_graph(ours).SerializeToString())
    for rows in (1, 7):
        (found,) = session.run(["logits"], {"context": contexts(rows)})
        expected = logits(ours, torch.from_numpy(contexts(rows))).numpy()
        assert found.shape == (rows, V)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", MODELS)
def test_the_code_in_the_card_computes_our_logits(options, tmp_path: Path):
    ours = model(options)
    arrays = {name: weights.numpy().copy() for name, weights in ours.parameters.items()}
    save_file(arrays, tmp_path / "model.safetensors")
    save(learn(["abcd"], TokenizerSettings(kind="character")), tmp_path)
    card = model_card("a b", ours.architecture, CorpusSettings(name="names"), {}, {"model": "12"})
    (code,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    asked = f"np.save('out.npy', logits({contexts(5).tolist()}))"
    done = subprocess.run(
        [sys.executable, "-c", code + asked],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expected = logits(ours, torch.from_numpy(contexts(5))).numpy()
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, rtol=1e-5, atol=1e-5)


def test_the_card_tells_losses_corpus_hashes_and_terms():
    figures = {
        "train": {"tokens": 1234, "loss_nats": 1.5, "perplexity": 4.4817, "bits_per_byte": 2.0},
        "validation": {"tokens": 9, "loss_nats": 800.0},
    }
    corpus = CorpusSettings(name="names", path=None, url="https://example.org/names.txt")
    card = model_card("names tanh", model(MODELS[0]).architecture, corpus, figures, {"model": "ab"})
    assert "| train | 1,234 | 1.5000 | 4.48 | 2.0000 |\n" in card
    assert "| validation | 9 | 800.0000 | – | – |\n" in card
    assert "<https://example.org/names.txt>" in card
    assert "| model | `ab` |" in card
    assert "| `embedding` | 11 × 4 |" in card
    assert "whose own terms apply" in card


def learned(kind: str) -> Tokenizer:
    texts = ["the cat sat on the mat", "кот сидел\non\u2028the\u00a0mat <unk> <U+0020>"]
    return learn(texts, TokenizerSettings(kind=kind, vocabulary_size=280, unknown=True))


HOSTILE = ["", " ", "<begin document>the cat", "а́ \u0000\r\n\t", "\U0001f600 the<|endoftext|>"]


@pytest.mark.parametrize("kind", ["bpe", "character", "word"])
def test_tokenizer_json_gives_the_same_ids_to_the_library_alone(kind, tmp_path: Path):
    ours = learned(kind)
    save(ours, tmp_path)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))

    @given(st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(HOSTILE))
    def same(text: str) -> None:
        assert theirs.encode(text).ids == next(ours.encode([text])).tolist()

    same()


@pytest.mark.parametrize("kind", ["bpe", "character", "word"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gensim_and_we_read_every_digit_of_the_vectors(kind, dtype, tmp_path: Path):
    names = learned(kind).names
    vectors = np.random.default_rng(1).normal(size=(len(names), 3)).astype(dtype)
    file = tmp_path / "embedding.txt"
    file.write_text("".join(f"{line}\n" for line in word2vec(names, vectors)), encoding="utf-8")
    theirs = KeyedVectors.load_word2vec_format(str(file), datatype=dtype)
    assert theirs.index_to_key == names
    np.testing.assert_array_equal(theirs.vectors, vectors)
    ids, ours = read_word2vec(file, {name: i for i, name in enumerate(names)})
    np.testing.assert_array_equal(ours[np.argsort(ids)].astype(dtype), vectors)
