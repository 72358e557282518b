"""The one way to use a trained model with its tokenizer: samples, streams and scores of a text.

    trained = load(Path("artifacts/model/model.safetensors"), Path("artifacts/tokenizer"))
    for piece in trained.stream("At night"):
        print(piece, end="")
    trained.score("At night the river rose.").bits_per_byte

A prompt is text, or bytes where it may end within a character. Dimension letters: C context length,
N scored tokens.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neural_ngram.artifacts import require_tokenizer
from neural_ngram.errors import ModelError
from neural_ngram.evaluation import metrics, scoring
from neural_ngram.generation.continuation import (
    Continuation,
    TextStream,
    collect,
    continue_many,
    ended,
    never_produced,
    next_logits,
    next_tokens,
)
from neural_ngram.generation.sampling import Sampler, sampler_of, samplers_of
from neural_ngram.model import storage as model_storage
from neural_ngram.model.network import Model
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import GenerationSettings, WindowSettings
from neural_ngram.tokens import tokenizer as tokenizers
from neural_ngram.tokens import windows
from neural_ngram.tokens.prompt import opening_context

__all__ = [
    "MOST_IN_TURN",
    "ROWS_AT_ONCE",
    "NextToken",
    "Stream",
    "TextScore",
    "Trained",
    "load",
    "scored_by",
]

DEFAULT = GenerationSettings()
MOST_IN_TURN = 16  # more samples are drawn together
ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class NextToken:
    """A token that may come next: its ID, its text, how it is labelled, how probable it is."""

    token: int
    text: str
    label: str
    probability: float


@dataclass(frozen=True, eq=False)
class TextScore:
    """The log probabilities of a text's tokens.

    tokens: (N,) the IDs that were scored. log_probabilities: (N,) of each, in nats.
    unknown: (N,) whether it represents something that the vocabulary lacks.
    scored_bytes: the UTF-8 bytes that all of them represent.
    """

    tokens: NDArray[np.int64]
    log_probabilities: NDArray[np.float64]
    unknown: NDArray[np.bool_]
    scored_bytes: int

    @property
    def nats(self) -> float:
        """Summed negative log-likelihood in nats."""
        return -float(self.log_probabilities.sum())

    @property
    def loss_nats(self) -> float:
        """Mean cross-entropy in nats per token."""
        return self.nats / len(self.tokens)

    @property
    def perplexity(self) -> float:
        """exp of the mean cross-entropy."""
        return metrics.perplexity(self.loss_nats)

    @property
    def bits_per_byte(self) -> float:
        """Summed cross-entropy in bits per UTF-8 byte, NaN when no byte was scored."""
        return metrics.bits_per_byte(self.nats, self.scored_bytes)


@dataclass
class Stream:
    """Text as it is generated: the prompt, each new token, and finally an incomplete character.

    prompt: its IDs. tokens: the new ones as they are drawn. limit: how many are taken.
    ids: those taken so far.
    """

    tokenizer: tokenizers.Tokenizer
    prompt: list[int]
    tokens: Iterator[int]
    limit: int
    ids: list[int] = field(default_factory=list)

    def __iter__(self) -> Iterator[str]:
        text = TextStream(self.tokenizer)
        yield text.feed(self.prompt)
        for token in islice(self.tokens, self.limit):
            self.ids.append(token)
            yield text.feed([token])
        yield text.close()

    @property
    def continuation(self) -> Continuation:
        """The new tokens and why they ended, once all have been generated."""
        return ended(self.ids, self.limit)


@dataclass(frozen=True)
class Trained:
    """A model, the tokenizer that it was trained with, and the hashes of what it was made from."""

    model: Model
    tokenizer: tokenizers.Tokenizer
    origin: Mapping[str, Any] = field(default_factory=dict)

    def encode(self, prompt: str | bytes) -> list[int]:
        """The IDs of a prompt; raises TokenizerError for what the vocabulary lacks."""
        if isinstance(prompt, bytes):
            ids = self.tokenizer.encode_bytes(prompt)
        else:
            ids = next(self.tokenizer.encode([prompt]))
        return list(ids.tolist())

    def context(self, prompt: str | bytes) -> list[int]:
        """(C,) what the model reads after a prompt: its last IDs, padded with BOS if it is short.

        Raises ModelError when it is too short and there is no BOS, and what `encode` raises.
        """
        length = self.model.architecture.context_length
        return opening_context(self.encode(prompt), length=length, bos=self.tokenizer.bos)

    def stream(self, prompt: str | bytes, asked: GenerationSettings = DEFAULT) -> Stream:
        """The first of the samples as it is generated; raises what `context` raises."""
        return self.streams(prompt, replace(asked, samples=1))[0]

    def streams(self, prompt: str | bytes, asked: GenerationSettings = DEFAULT) -> list[Stream]:
        """Each of `asked.samples`, or the greedy continuation alone at temperature 0.

        Raises what `context` raises.
        """
        ids, limit = self.encode(prompt), asked.max_new_tokens
        drawn = self._draw(prompt, asked)
        return [Stream(self.tokenizer, ids, tokens, limit) for tokens in drawn]

    def samples(
        self, prompt: str | bytes, asked: GenerationSettings = DEFAULT
    ) -> list[Continuation]:
        """The results of `streams`; many samples are generated together, token by token."""
        sampler = sampler_of(asked)
        if sampler is None or asked.samples <= MOST_IN_TURN:
            return [collect(each, asked.max_new_tokens) for each in self._draw(prompt, asked)]
        return continue_many(
            self.model,
            [self.context(prompt)] * asked.samples,
            markers=self.tokenizer.special,
            max_new_tokens=asked.max_new_tokens,
            sampler=sampler,
        )

    def _draw(self, prompt: str | bytes, asked: GenerationSettings) -> list[Iterator[int]]:
        """The new tokens of each sample, without end unless EOS comes."""
        context, special = self.context(prompt), self.tokenizer.special
        return [next_tokens(self.model, context, special, each) for each in samplers_of(asked)]

    def next_tokens(
        self, prompt: str | bytes, count: int, asked: GenerationSettings | None = None
    ) -> list[NextToken]:
        """The `count` most probable next tokens, ties to the lower ID.

        asked: return the probabilities used for sampling, without tokens that temperature, top-k or
        top-p exclude and without BOS unless it is also EOS; None: those of the model.

        Raises what `context` raises.
        """
        sampler, masked = Sampler(1.0, SplitMix64(0)), list[int]()
        if asked:
            sampler = sampler_of(asked) or replace(sampler, top_k=1)
            masked = never_produced(self.tokenizer.special)
        weights_V = sampler.weights(next_logits(self.model, self.context(prompt), masked))
        p_V = weights_V / weights_V.sum()
        order = np.argsort(-p_V, kind="stable")[:count].tolist()
        text, label = self.tokenizer.text, self.tokenizer.label
        return [
            NextToken(token, text(token), label(token), float(p_V[token]))
            for token in order
            if p_V[token] > 0 or not asked
        ]

    def windows(self, text: str | Sequence[str]) -> tuple[windows.Windows, int]:
        """What is scored of a text, or of several as documents, and the UTF-8 bytes that this is.

        The context of the first tokens is padded with BOS, as for a prompt. Without BOS the first C
        tokens are context only.

        Raises ModelError when nothing is left to score, TokenizerError for what the vocabulary
        lacks.
        """
        texts = [text] if isinstance(text, str) else list(text)
        length, bos = self.model.architecture.context_length, self.tokenizer.bos
        if not texts:
            raise ModelError("there is no text to score; give at least one")
        longest = 0 if bos is not None else max(map(len, self.tokenizer.encode(texts)))
        if bos is None and longest <= length:
            raise ModelError(
                f"the text has {longest} tokens but the model reads {length} before the first that "
                "it predicts, and without special tokens it cannot be padded; score a "
                "longer text"
            )
        settings = WindowSettings(context_length=length, padding="none" if bos is None else "left")
        documents, counts = windows.encode(texts, self.tokenizer, settings)
        return documents, counts["scored_bytes"]

    def score(self, text: str | Sequence[str]) -> TextScore:
        """What the model gives a text as a document of its own: each token, and EOS where there is.

        Several texts are scored together, each as a document. Raises what `windows` raises.
        """
        documents, scored_bytes = self.windows(text)
        scores = scoring.score(self.model, documents, batch_size=ROWS_AT_ONCE)
        return scored_by(self, documents, scores.log_probabilities, scored_bytes)


def scored_by(
    trained: Trained,
    documents: windows.Windows,
    log_probabilities: NDArray[np.float64],
    scored_bytes: int,
) -> TextScore:
    """The score of windows whose targets have these log probabilities, (N,) in nats."""
    targets = documents.targets().astype(np.int64)
    unknown = targets == (-1 if trained.tokenizer.unknown is None else trained.tokenizer.unknown)
    return TextScore(targets, log_probabilities, unknown, scored_bytes)


def load(model: Path, tokenizer: Path, sha256: str | None = None) -> Trained:
    """The model of a file and the tokenizer of a folder.

    sha256: of the model's file; None: the hash recorded beside it.

    Raises ArtifactError when one is missing or damaged or they do not belong together, ModelError
    when the model's parts do not fit.
    """
    network, origin = model_storage.load(model, sha256)
    hashes = {name: sha256 for name, sha256 in origin.items() if name.endswith("_sha256")}
    trained = Trained(network, tokenizers.load(tokenizer), hashes)
    require_tokenizer(origin, trained.tokenizer.sha256, f"{tokenizer / 'tokenizer.json'} is")
    return trained
