"""The score of a text by whatever gives tokens probabilities: network, counts, or both.

Dimension letters: N scored tokens, C context length.
"""

import html
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neural_ngram.errors import ModelError
from neural_ngram.generation.trained import TextScore, Trained, scored_by
from neural_ngram.ngram.kneser_ney import KneserNey
from neural_ngram.tokens.windows import Windows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FullScore", "Score", "Scorer"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
LOG_10 = float(np.log(10))


class FullScore(NamedTuple):
    """One token as kenlm's `full_scores` yields it.

    log_probability: natural, or to the base 10 if asked. ngram_length: the number of tokens that
    it rests on, the token itself and one BOS included. unknown: whether the vocabulary lacks it.
    """

    log_probability: float
    ngram_length: int
    unknown: bool


@dataclass(frozen=True, eq=False, repr=False)
class Score(TextScore):
    """The log probabilities of a text's tokens, in nats, and how each token is written.

    labels: (N,) with spaces and what cannot be printed made visible.
    """

    labels: list[str]

    @property
    def table(self) -> "pd.DataFrame":
        """A row per token: token, id, log_probability in nats, unknown."""
        import pandas as pd  # noqa: PLC0415

        columns = (self.labels, self.tokens, self.log_probabilities, self.unknown)
        return pd.DataFrame(
            dict(zip(("token", "id", "log_probability", "unknown"), columns, strict=True))
        )

    def __repr__(self) -> str:
        unknown = int(self.unknown.sum())
        return (
            f"{len(self.tokens):,} tokens ({unknown:,} unknown): {self.nats:.4f} nats, "
            f"{self.loss_nats:.4f} per token, {self.bits_per_byte:.4f} bits per byte, "
            f"perplexity {self.perplexity:.2f}"
        )

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>{self.table.to_html(max_rows=60)}"


@dataclass(frozen=True, eq=False)
class Scorer:
    """What scores texts as the trained model reads them.

    log_probabilities: of windows, (N,) in nats.
    counts: the count model, where it alone gives the probabilities.
    """

    trained: Trained
    log_probabilities: Callable[[Windows], Floats]
    counts: KneserNey | None = None

    def score(self, text: str | Sequence[str]) -> Score:
        """The score of a text, or of several texts together, each as a document of its own.

        A document is its tokens and EOS, after C times BOS. Without BOS the first C tokens of each
        document are context only. Several texts score as `evaluate` scores a partition.

        Raises ModelError when nothing is left to score, TokenizerError for what the vocabulary
        lacks.
        """
        windows, scored_bytes = self.trained.windows(text)
        found = scored_by(self.trained, windows, self.log_probabilities(windows), scored_bytes)
        labels = list(map(self.trained.tokenizer.label, found.tokens.tolist()))
        return Score(**vars(found), labels=labels)

    def perplexity(self, text: str | Sequence[str]) -> float:
        """exp of the mean negative log probability per token, EOS included as in kenlm."""
        return self.score(text).perplexity

    def full_scores(
        self, text: str, *, bos: bool = True, eos: bool = True, log10: bool = False
    ) -> Iterator[FullScore]:
        """Each token of a text, and then EOS, with the meaning of kenlm's `full_scores`.

        bos: the text begins a document; otherwise nothing is known of what precedes it, which only
        counts can score. eos: the text ends a document. log10: logarithms to the base 10.

        Raises ModelError for bos=False where a network is asked, and what `score` raises.
        """
        if bos:
            windows, _ = self.trained.windows(text)
            tokens, lengths = windows.targets().astype(np.int64), self._lengths(windows)
            logs = self.log_probabilities(windows)
        else:
            tokens, lengths, logs = self._without_bos(text)
        tokenizer, unit = self.trained.tokenizer, LOG_10 if log10 else 1.0
        ends = not eos and tokenizer.eos is not None
        for token, length, log in list(zip(tokens, lengths, logs, strict=True))[
            : -1 if ends else None
        ]:
            yield FullScore(float(log) / unit, int(length), bool(token == tokenizer.unknown))

    def _lengths(self, windows: Windows) -> Integers:
        """(N,) the n-gram that each probability rests on: as long as was seen, or C + 1 at most."""
        if self.counts is not None:
            return self.counts.matched(windows)
        starts = windows.offsets[np.searchsorted(windows.offsets, windows.positions, "right") - 1]
        read = windows.positions - starts
        padding = 0 if windows.bos is None else windows.context_length - 1
        lengths: Integers = np.minimum(read - padding, windows.context_length) + 1
        return lengths

    def _without_bos(self, text: str) -> tuple[Integers, Integers, Floats]:
        if self.counts is None:
            raise ModelError(
                "bos=False asks for the probability of a token without any context, but a network "
                f"reads {self.trained.model.architecture.context_length} tokens; use bos=True, or "
                "the baseline"
            )
        eos = self.trained.tokenizer.eos
        tokens = self.trained.encode(text) + ([] if eos is None else [eos])
        lengths, logs = list[int](), list[float]()
        for place, token in enumerate(tokens):
            target = np.array([token])
            recent = [target * 0 + each for each in reversed(tokens[:place])]
            lengths.append(int(self.counts.orders(target, recent)[0]))
            with np.errstate(divide="ignore"):
                logs.append(float(np.log(self.counts.probabilities(target, recent)[0])))
        return np.array(tokens), np.array(lengths), np.array(logs)
