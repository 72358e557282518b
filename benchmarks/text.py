"""Text to tokens to windows, counting, and text again: ours beside the usual way.

NLTK and KenLM are peers where they are installed: `pip install nltk kenlm`.
"""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import tokenizers
import torch
from measure import Row, clock, compare, compare_results
from ngram import (
    KneserNeyInterpolated,
    count_with_dictionaries,
    entropies_by_counter,
    everygrams,
    padded,
    score_with_dictionaries,
    windows_over,
    zipf_tokens,
)
from tokenizers import models, pre_tokenizers, trainers
from torch import nn

from neural_ngram.export.arpa import export_arpa
from neural_ngram.generation.continuation import continue_many
from neural_ngram.generation.sampling import Sampler
from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import initialise
from neural_ngram.ngram.entropy import conditional_entropies
from neural_ngram.ngram.kneser_ney import KneserNey
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import ModelSettings, TokenizerSettings
from neural_ngram.tokens.tokenizer import learn
from neural_ngram.tokens.windows import Windows, build_stream

try:
    import kenlm
except ImportError:
    kenlm = None

VOCABULARY = 2048


def made_text(documents: int, words: int = 20) -> list[str]:
    """Documents of made-up words whose frequencies fall as those of words do."""
    draws = np.random.default_rng(2)
    letters, lengths = draws.integers(97, 123, (20_000, 8)), draws.integers(2, 9, 20_000)
    types = ["".join(map(chr, row[:n])) for row, n in zip(letters.tolist(), lengths, strict=True)]
    tokens = zipf_tokens(documents * words, len(types)).reshape(documents, words)
    return [" ".join(types[token] for token in row) for row in tokens.tolist()]


def compare_learning(texts: list[str]) -> Row:
    def library() -> tokenizers.Tokenizer:
        learner = tokenizers.Tokenizer(models.BPE())
        learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, show_progress=False)
        learner.train_from_iterator(texts, trainer)
        return learner

    settings = TokenizerSettings(vocabulary_size=VOCABULARY)
    return compare(
        ("learn-bpe", "tokenizers, its own trainer"),
        lambda: clock(partial(learn, texts, settings)),
        lambda: clock(library),
        3,
        lambda: f"{learn(texts, settings).vocabulary_size} / {library().get_vocab_size()} tokens",
    )


def compare_encoding(texts: list[str]) -> Row:
    tokenizer = learn(texts[:5000], TokenizerSettings(vocabulary_size=VOCABULARY))
    alone = partial(tokenizer.backend.encode_batch, texts, add_special_tokens=False)
    return compare(
        ("encode, to arrays", "tokenizers.encode_batch alone"),
        lambda: clock(lambda: list(tokenizer.encode(texts))),
        lambda: clock(alone),
        5,
        lambda: f"{sum(map(len, tokenizer.encode(texts)))} / {sum(map(len, alone()))} tokens",
    )


def compare_windows() -> Row:
    """Contexts and targets of 300,000 tokens, against the loop of the lecture."""
    stream, C = zipf_tokens(300_000, 10_000).astype(np.int64), 4
    documents = np.split(stream, 3000)

    def ours() -> tuple[torch.Tensor, torch.Tensor]:
        tokens, offsets = build_stream(documents, context_length=C, vocabulary_size=10_000, pad=0)
        windows = Windows(tokens=tokens, offsets=offsets, context_length=C)
        contexts_NC = windows.contexts().astype(np.int64)
        return torch.from_numpy(contexts_NC), torch.from_numpy(windows.targets().astype(np.int64))

    def loop() -> tuple[torch.Tensor, torch.Tensor]:
        X, Y = [], []
        for document in documents:
            context = [0] * C
            for token in document.tolist():
                X.append(context)
                Y.append(token)
                context = [*context[1:], token]
        return torch.tensor(X), torch.tensor(Y)

    same = all(torch.equal(a, b) for a, b in zip(ours(), loop(), strict=True))
    return compare(
        ("windows of 300,000 tokens", "lists, one window at a time"),
        lambda: clock(ours),
        lambda: clock(loop),
        5,
        lambda: "the same windows" if same else "other windows",
    )


def compare_entropies() -> Row:
    windows = windows_over(zipf_tokens(300_000, 10_000))
    found = conditional_entropies(windows)[3].entropy_nats, entropies_by_counter(windows)[3]
    return compare(
        ("entropies of order 0 to 5, 300,000 tokens", "collections.Counter"),
        lambda: clock(partial(conditional_entropies, windows)),
        lambda: clock(partial(entropies_by_counter, windows)),
        3,
        lambda: "H(next / last 3) {:.4f} / {:.4f}".format(*found),
    )


def compare_kneser_ney() -> Row:
    tokens = zipf_tokens(220_000, 10_000).astype(np.int64) + 1
    train, validation = padded(10_001, tokens[:-20_000]), padded(10_001, tokens[-20_000:])

    def ours() -> float:
        model = KneserNey.fit(train, vocabulary_size=10_001, order=5)
        return -float(model.log_probabilities(validation).mean())

    def dictionaries() -> float:
        return score_with_dictionaries(count_with_dictionaries(train), validation, 10_001)

    names = ("Kneser-Ney of order 5, 220,000 tokens", "dictionaries, one discount an order")
    return compare_results(names, ours, dictionaries, 3, "nats {:.3f} / {:.3f}")


def compare_nltk() -> Row:
    """A model of order 3 fitted, and 20 tokens scored, each of which takes NLTK long."""
    tokens = zipf_tokens(20_020, 500).astype(np.int64) + 1
    train, validation = (padded(501, part, order=3) for part in np.split(tokens, [20_000]))

    def ours() -> float:
        model = KneserNey.fit(train, vocabulary_size=501, order=3)
        return -float(model.log_probabilities(validation).mean())

    def nltk() -> float:
        text, asked = (
            ["0"] * 2 + list(map(str, part.tolist())) for part in (tokens[:-20], tokens[-20:])
        )
        model = KneserNeyInterpolated(3, discount=0.75)
        model.fit([everygrams(text, max_len=3)], vocabulary_text=sorted(set(text)))
        scores = [model.score(asked[n], asked[n - 2 : n]) for n in range(2, len(asked))]
        return -float(np.log(scores).mean())

    names = ("Kneser-Ney of order 3, 20,000 tokens", "NLTK, one discount")
    return compare_results(names, ours, nltk, 3, "nats {:.3f} / {:.3f}")


def compare_kenlm() -> Row:
    """Scoring alone: KenLM's own model is read from our ARPA file."""
    EOS, V = 1, 10_002
    words = ["<s>", "</s>", *(f"w{n}" for n in range(2, V))]
    stream = zipf_tokens(240_000, V - 2).astype(np.int64) + 2
    documents = [np.append(part, EOS) for part in np.split(stream, 12_000)]
    train, validation = padded(V, *documents[:11_000]), padded(V, *documents[11_000:])
    model = KneserNey.fit(train, vocabulary_size=V, order=5)
    with TemporaryDirectory() as folder:
        export_arpa(model, Path(folder) / "model.arpa", tokens=words)
        theirs = kenlm.Model(str(Path(folder) / "model.arpa"))
    texts = [" ".join(words[token] for token in part[:-1]) for part in documents[11_000:]]

    def ours() -> float:
        return -float(model.log_probabilities(validation).sum())

    def queries() -> float:
        return -np.log(10) * sum(theirs.score(text) for text in texts)

    names = ("Kneser-Ney of order 5, scoring 21,000 tokens", "KenLM, the same ARPA file")
    return compare_results(names, ours, queries, 9, "nats {:.0f} / {:.0f}")


def compare_generation() -> Row:
    """256 samples of 40 tokens; the peer draws 8 of them, one token at a time."""
    torch.set_num_threads(1)
    shape = Architecture(vocabulary_size=512, context_length=4, settings=ModelSettings())
    model = initialise(shape, SplitMix64(1), torch.float32)
    weights = model.parameters

    class Network(nn.Module):
        def forward(self, context_BC: torch.Tensor) -> torch.Tensor:
            x = nn.functional.embedding(context_BC, weights["embedding"]).flatten(1)
            gate, up = x @ weights["gate"], x @ weights["up"]
            return (nn.functional.silu(gate) * up) @ weights["down"] @ weights["output"]

    network = Network()

    def ours() -> float:
        return len(
            continue_many(
                model,
                [[0] * 4] * 256,
                markers=(None, None),
                max_new_tokens=40,
                sampler=Sampler(1.0, SplitMix64(1)),
            )
        )

    @torch.no_grad()
    def loop() -> None:
        for _ in range(8):
            context = [0] * 4
            for _ in range(40):
                p = torch.softmax(network(torch.tensor([context])), dim=1)
                context = [*context[1:], int(torch.multinomial(p, num_samples=1).item())]

    return compare(
        ("generation, a sample of 40 tokens, V=512", "one token at a time"),
        lambda: clock(ours) / 256,
        lambda: clock(loop) / 8,
        9,
        lambda: "draws from the same probabilities",
    )


def rows() -> Iterator[Row]:
    """All of them."""
    texts = made_text(20_000)
    yield compare_learning(texts)
    yield compare_encoding(texts)
    yield compare_windows()
    yield compare_entropies()
    yield compare_kneser_ney()
    if KneserNeyInterpolated:
        yield compare_nltk()
    if kenlm:
        yield compare_kenlm()
    yield compare_generation()


if __name__ == "__main__":
    start = time.perf_counter()
    for row in rows():
        print(row, flush=True)
    print(f"{time.perf_counter() - start:.0f} s")
