"""Published runs, to every digit that was published."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from neural_ngram.generation import continue_context
from neural_ngram.gradients import Autograd, ClosedForm
from neural_ngram.model import Architecture, Model, initialise, logits, parameter_count, views
from neural_ngram.model.network import embed
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import (
    ModelSettings,
    OptimizerSettings,
    TokenizerSettings,
    TrainingSettings,
)
from neural_ngram.tokenizer import learn
from neural_ngram.training import Batches, train
from neural_ngram.windows import Windows, build_stream

pytestmark = pytest.mark.skipif(
    "NEURAL_NGRAM_DATA" not in os.environ,
    reason="needs the published corpora; set NEURAL_NGRAM_DATA to their folder",
)


def data(name: str) -> Path:
    return Path(os.environ["NEURAL_NGRAM_DATA"]) / name


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def bilingual() -> dict[str, Windows]:
    """Chapter 23: byte pairs learned on the whole documents of train, stride 1, no padding."""
    corpus = json.loads(data("bilingual/corpus.json").read_text(encoding="utf-8"))
    splits = json.loads(data("bilingual/splits.json").read_text(encoding="utf-8"))
    texts = {document["id"]: document["text"] for document in corpus}
    chosen = TokenizerSettings(vocabulary_size=266, pattern="none")
    tokenizer = learn([texts[name] for name in splits["train"]], chosen)
    parts = {}
    for part in ("train", "validation"):
        encoded = tokenizer.encode([texts[name] for name in splits[part]])
        documents = [np.concatenate([[0], ids, [1]]) for ids in encoded]
        tokens, offsets = build_stream(documents, context_length=2, vocabulary_size=266, pad=None)
        parts[part] = Windows(tokens=tokens, offsets=offsets, context_length=2, bos=0)
    return parts


@pytest.fixture
def chapter_23() -> Model:
    shape = Architecture(
        vocabulary_size=266,
        context_length=2,
        settings=ModelSettings(embedding_width=4, hidden_width=8),
    )
    assert parameter_count(shape) == 3_384
    return initialise(shape, SplitMix64(23), torch.float64)


RUN = TrainingSettings(batch_size=64, max_steps=15, evaluate_every=8, seed=23, dtype="float64")
RULE = OptimizerSettings(learning_rate=0.01, weight_decay=0.01)


def six(values: torch.Tensor) -> list[float]:
    return [round(value, 6) + 0.0 for value in values.flatten().tolist()]


def test_chapter_23_windows(bilingual):
    assert {part: len(windows) for part, windows in bilingual.items()} == {
        "train": 1_836,
        "validation": 467,
    }


def test_chapter_23_probe(chapter_23):
    context = torch.tensor([[67, 118]])
    x = embed(chapter_23, context)
    weights = chapter_23.parameters
    gated = torch.nn.functional.silu(x @ weights["gate"]) * (x @ weights["up"])
    scores = logits(chapter_23, context)[0]
    assert six(x) == [
        0.064154, 0.021328, 0.083333, -0.012260, 0.057176, 0.111494, -0.126703, -0.068284,
    ]  # fmt: skip
    assert six(gated @ weights["down"]) == [
        -0.002448, -0.000051, 0.003220, 0.003477, 0.002033, 0.004016, 0.003727, 0.003874,
    ]  # fmt: skip
    assert six(scores[:6]) == [0.000075, -0.000037, 0.000496, -0.001047, -0.000055, -0.001032]
    assert int(scores.argmax()) == 44
    assert six(scores.max()) == [0.002350]


@pytest.mark.parametrize("way", [ClosedForm, Autograd])
def test_chapter_23_first_gradients(chapter_23, bilingual, way):
    flat = torch.zeros_like(chapter_23.flat)
    gradient = views(chapter_23.architecture, flat)
    way(chapter_23, gradient, frozen=False)(
        next(iter(Batches(chapter_23, bilingual["train"], RUN)))
    )
    norms = [six(gradient[name].abs().sum())[0] for name in chapter_23.parameters]
    assert norms == [0.020983, 0.002079, 0.002420, 0.002044, 0.019548]


@pytest.mark.parametrize("gradients", ["closed_form", "autograd"])
def test_chapter_23_losses_and_continuation(chapter_23, bilingual, gradients):
    chosen = TrainingSettings(**{**vars(RUN), "gradients": gradients})
    record = train(chapter_23, bilingual, RULE, chosen)
    assert [
        (o.step, round(o.train_loss_nats, 6), round(o.validation_loss_nats, 6))
        for o in record.objectives
    ] == [(0, 5.583505, 5.583482), (8, 5.580106, 5.580365), (15, 5.555850, 5.557362)]
    continuation = continue_context(chapter_23, [67, 118], markers=(0, 1), max_new_tokens=12)
    assert continuation.ids == [259] + [211] * 11
    assert continuation.stop == "limit"


def test_toy_gpt_follows_the_published_log():
    """Linear, 16 dimensions, N(0, 0.01), SGD on one pair at a time in text order, 50 epochs.

    The published run was unseeded, so its losses are met within a hundredth.
    """
    with data("toy_gpt/01_vocabulary.csv").open(encoding="utf-8") as handle:
        ids = {row["token"]: int(row["token_id"]) for row in csv.DictReader(handle)}
    words = data("toy_gpt/004_analytics.txt").read_text(encoding="utf-8").split()
    tokens, offsets = build_stream(
        [np.array([ids[word] for word in words])],
        context_length=2,
        vocabulary_size=112,
        pad=None,
    )
    pairs = Windows(tokens=tokens, offsets=offsets, context_length=2)
    chosen = ModelSettings(
        embedding_width=16, hidden="none", output_bias=True, initialisation="normal"
    )
    shape = Architecture(vocabulary_size=112, context_length=2, settings=chosen)
    model = initialise(shape, SplitMix64(1), torch.float32)
    record = train(
        model,
        {"train": pairs, "validation": pairs},
        OptimizerSettings(name="sgd", learning_rate=0.01),
        TrainingSettings(batch_size=1, sampling="sequential", max_steps=50 * 226),
    )
    epochs = np.reshape(record.batch_losses, (50, 226)).mean(axis=1)
    with data("toy_gpt/train_log.csv").open(encoding="utf-8") as handle:
        published = [float(row["avg_loss"]) for row in csv.DictReader(handle)]
    np.testing.assert_allclose(epochs[[0, 9, 24]], np.array(published)[[0, 9, 24]], atol=0.01)
    assert epochs[49] == pytest.approx(3.69, abs=0.05)
