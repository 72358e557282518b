"""The baseline: an interpolated modified Kneser-Ney model over the same IDs and windows.

Dimension letters: V vocabulary, N windows, B rows asked for, m tokens in an n-gram (its order),
G distinct n-grams of an order, H distinct contexts of an order (m − 1 tokens each).

Chen & Goodman (1999), An empirical study of smoothing techniques for language modeling, eq. 24-27:

    p(w | h) = (a(h w) − D(a(h w))) / a(h) + γ(h) p(w | h without its oldest token)

a(h w) is the adjusted count, a(h) its sum over w, D one of three discounts of the order, γ(h) the
mass that the discounts set free. Unigrams are interpolated with the uniform distribution over all
tokens that can be predicted. As in KenLM (Heafield et al. 2013, Scalable modified Kneser-Ney
language model estimation, sections 2 and 3), an adjusted count is

    how often the n-gram was seen        for the highest order and for n-grams that begin with BOS
    how many distinct tokens precede it  for every other n-gram
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from neural_ngram.errors import ModelError
from neural_ngram.ngram.counts import Counts, Floats, chunks
from neural_ngram.ngram.discounts import Discounts
from neural_ngram.tokens.contexts import Keys
from neural_ngram.tokens.windows import IntArray, Windows

__all__ = ["KneserNey", "Level"]

TOKEN = np.uint64(32)
ROWS_AT_A_TIME = 1 << 20


@dataclass(frozen=True, kw_only=True, eq=False)
class Level:
    """The n-grams of one order: their counts, and what follows from them.

    A context or an n-gram is numbered by its index in its sorted keys. A key has a number in its
    high 32 bits and a token in its low 32.

    contexts: (H,) the number of the context without its oldest token, one level down | that token.
    grams: (G,) the number of the context | the target.
    counts: (G,) adjusted counts, at least 1.
    """

    contexts: Keys
    grams: Keys
    counts: Counts
    discounts: Discounts

    @cached_property
    def totals(self) -> Floats:
        """(H,) a(h), the summed adjusted counts of each context."""
        return np.bincount(self._context_of_gram, weights=self.counts).astype(np.float64)

    @cached_property
    def weights(self) -> Floats:
        """(G,) (a(h w) − D) / a(h), what an n-gram adds to the probability of its target."""
        kept = self.counts - self.discounts.of_each(self.counts)
        return np.asarray(kept / self.totals[self._context_of_gram])

    @cached_property
    def backoffs(self) -> Floats:
        """(H,) γ(h), the weight of the next lower order."""
        freed = self.discounts.of_each(self.counts)
        return np.asarray(np.bincount(self._context_of_gram, weights=freed) / self.totals)

    @property
    def _context_of_gram(self) -> NDArray[np.int64]:
        return (self.grams >> TOKEN).astype(np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class KneserNey:
    """A model of order n = len(levels): it reads the last n − 1 tokens.

    Exactly the given windows are counted. Each contributes one n-gram: its target with the n − 1
    tokens before it, cut at the nearest BOS before the target, so that a run of padding is one
    BOS. With left padding by BOS, that is what KenLM counts in sentences with `<s>`.

    With complete contexts only, the first C tokens of a document are not targets and occur only in
    contexts: lower orders count what precedes an n-gram within these windows. KenLM differs: it
    would also count the shorter n-grams at the start of each document.

    An ID that is never a target, such as that of an unknown token, gets its part of the uniform
    distribution and nothing else. BOS, where it is never a target, gets probability 0.
    """

    levels: tuple[Level, ...]
    vocabulary_size: int
    bos: int | None

    @classmethod
    def fit(
        cls,
        windows: Windows,
        *,
        vocabulary_size: int,
        order: int,
        discounts: Sequence[Discounts] | None = None,
    ) -> "KneserNey":
        """Count the windows and discount the counts.

        discounts: for each order, from 1 to n; by default those of `Discounts.of`. KenLM's own
        differ a little on small data: its counts of counts take the last gram of each lower order,
        in its order of sorting, by how often it was seen instead of by its adjusted count.

        Raises ModelError when the order is below 1 or exceeds the context, when there is no window,
        when a token is outside the vocabulary, or when there is not one discount per order.
        """
        if not 1 <= order <= windows.context_length + 1:
            raise ModelError(
                f"a Kneser-Ney model of order {order} cannot be fitted on windows with a context "
                f"of {windows.context_length}; choose an order from 1 to "
                f"{windows.context_length + 1}"
            )
        if not len(windows):
            raise ModelError(
                f"a stream of {len(windows.tokens)} tokens yields no window with a context of "
                f"{windows.context_length}, so there is nothing to count; lower "
                "windows.context_length or add documents"
            )
        _check_tokens(windows.tokens, vocabulary_size)
        counted = list(_counted(windows, order))
        if discounts is None:
            discounts = [Discounts.of(counts) for _, _, counts in counted]
        if len(discounts) != order:
            raise ModelError(
                f"{len(discounts)} sets of discounts were given for a model of order {order}; "
                "provide one for each order, from 1 up"
            )
        levels = tuple(
            Level(contexts=contexts, grams=grams, counts=counts, discounts=discount)
            for (contexts, grams, counts), discount in zip(counted, discounts, strict=True)
        )
        return cls(levels=levels, vocabulary_size=vocabulary_size, bos=windows.bos)

    @property
    def order(self) -> int:
        """n, the number of tokens in the longest n-gram."""
        return len(self.levels)

    @property
    def discounts(self) -> tuple[Discounts, ...]:
        """The discounts of each order, from 1 to n, and whether they are the fallback."""
        return tuple(level.discounts for level in self.levels)

    @cached_property
    def unigrams(self) -> Floats:
        """(V,) the probability of each token without any context."""
        counted = (self.levels[0].grams).astype(np.int64)
        predictable = np.ones(self.vocabulary_size)
        if self.bos is not None and self.bos not in counted:
            predictable[self.bos] = 0
        probabilities = self.levels[0].backoffs[0] * predictable / predictable.sum()
        probabilities[counted] += self.levels[0].weights
        return np.asarray(probabilities)

    def log_probabilities(self, windows: Windows) -> Floats:
        """(N,) ln p(target | context) of each window, in nats; −inf for a BOS never a target.

        Raises ModelError when the windows are too short, pad with another BOS or hold a token
        outside the vocabulary.
        """
        if windows.context_length < self.order - 1 or windows.bos != self.bos:
            raise ModelError(
                f"windows with a context of {windows.context_length} and BOS {windows.bos} do not "
                f"belong to a Kneser-Ney model of order {self.order} fitted with BOS {self.bos}; "
                f"build them with a context of at least {self.order - 1} and the same BOS"
            )
        _check_tokens(windows.tokens, self.vocabulary_size)
        parts = [self._of_windows(chunk) for chunk in chunks(windows, ROWS_AT_A_TIME)]
        with np.errstate(divide="ignore"):
            return np.log(np.concatenate(parts))

    def matched(self, windows: Windows) -> NDArray[np.int64]:
        """(N,) the order of the longest n-gram of each window, target included, that was seen."""
        parts = [
            self.orders(chunk.tokens[chunk.positions], self._recent(chunk))
            for chunk in chunks(windows, ROWS_AT_A_TIME)
        ]
        return np.concatenate(parts)

    def orders(self, targets: IntArray, recent: Iterable[IntArray]) -> NDArray[np.int64]:
        """(B,) the order of the longest n-gram that was seen, 1 if there is none.

        recent: the tokens one before, two before, …, (B,) each.
        """
        longest = np.ones(len(targets), dtype=np.int64)
        found = self.contexts(recent, len(targets))
        for order, (level, rows, context) in enumerate(found, start=2):
            seen, _ = _find(level.grams, _key(context, targets[rows]))
            longest[rows[seen]] = order
        return longest

    def _of_windows(self, windows: Windows) -> Floats:
        return self.probabilities(windows.tokens[windows.positions], self._recent(windows))

    def _recent(self, windows: Windows) -> Iterator[IntArray]:
        """(N,) each: the tokens one before the targets, two before, …, n − 1 before."""
        return (windows.tokens[windows.positions - lag] for lag in range(1, self.order))

    def probabilities(self, targets: IntArray, recent: Iterable[IntArray]) -> Floats:
        """(B,) p(target | context); recent: the tokens one before, two before, …, (B,) each."""
        p = self.unigrams[targets]
        for level, rows, context in self.contexts(recent, len(targets)):
            p[rows] *= level.backoffs[context]
            seen, gram = _find(level.grams, _key(context, targets[rows]))
            p[rows[seen]] += level.weights[gram]
        return np.asarray(p)

    def contexts(
        self, recent: Iterable[IntArray], size: int
    ) -> Iterator[tuple[Level, NDArray[np.intp], Keys]]:
        """For each order from 2: its level, the rows whose context it knows, and the contexts."""
        rows, context = np.arange(size), np.zeros(size, dtype=np.uint64)
        for level, column in zip(self.levels[1:], recent, strict=False):
            found, context = _find(level.contexts, _key(context, column[rows]))
            rows = rows[found]
            yield level, rows, context

    def distribution(self, context: IntArray) -> Floats:
        """(V,) the probability of each token after `context`, oldest token first; it sums to 1.

        Only the last n − 1 tokens are used; there may be fewer, or none.

        Raises ModelError when a token of the context is outside the vocabulary.
        """
        recent = np.asarray(context, dtype=np.int64)[::-1]
        _check_tokens(recent, self.vocabulary_size)
        p, number = self.unigrams.copy(), np.zeros(1, dtype=np.uint64)
        for level, token in zip(self.levels[1:], recent, strict=False):
            found, number = _find(level.contexts, _key(number, token))
            if not len(found):
                break
            bounds = np.concatenate([number, number + np.uint64(1)]) << TOKEN
            low, high = np.searchsorted(level.grams, bounds)
            p *= level.backoffs[number]
            p[(level.grams[low:high] - bounds[0]).astype(np.int64)] += level.weights[low:high]
        return p


def _check_tokens(tokens: IntArray, vocabulary_size: int) -> None:
    low, high = int(tokens.min(initial=0)), int(tokens.max(initial=0))
    if low < 0 or high >= vocabulary_size:
        raise ModelError(
            f"token ID {low if low < 0 else high} is outside the vocabulary of "
            f"{vocabulary_size}; use windows and a vocabulary size from one tokenizer"
        )


def _counted(windows: Windows, order: int) -> Iterator[tuple[Keys, Keys, Counts]]:
    """For n-grams of 1 … `order` tokens: their contexts, keys and adjusted counts."""
    positions = windows.positions
    context = np.zeros(len(positions), dtype=np.int64)
    contexts, goes_on = np.zeros(1, dtype=np.uint64), np.ones(len(positions), dtype=bool)
    grams, gram = _ranked(_key(context, windows.tokens[positions]))
    for lag in range(1, order):
        ended = np.bincount(gram[~goes_on], minlength=len(grams))
        positions, context, shorter = positions[goes_on], context[goes_on], gram[goes_on]
        oldest = windows.tokens[positions - lag]
        longer_contexts, context = _ranked(_key(context, oldest))
        longer_grams, gram = _ranked(_key(context, windows.tokens[positions]))
        continuations = np.bincount(_suffixes(gram, shorter), minlength=len(grams))
        yield contexts, grams, ended + continuations
        contexts, grams = longer_contexts, longer_grams
        goes_on = np.ones(len(oldest), dtype=bool) if windows.bos is None else oldest != windows.bos
    yield contexts, grams, np.bincount(gram, minlength=len(grams))


def _suffixes(gram: NDArray[np.int64], shorter: NDArray[np.int64]) -> NDArray[np.int64]:
    """(G,) for each distinct n-gram, its number without the oldest token; both given per window."""
    suffix = np.zeros(gram.max(initial=-1) + 1, dtype=np.int64)
    suffix[gram] = shorter
    return suffix


def _key(number: NDArray[np.integer], token: IntArray) -> Keys:
    return number.astype(np.uint64) << TOKEN | np.asarray(token).astype(np.uint64)


def _ranked(keys: Keys) -> tuple[Keys, NDArray[np.int64]]:
    """The distinct keys, sorted, and the index of each key among them."""
    distinct, places = np.unique(keys, return_inverse=True)
    return distinct, places.astype(np.int64, copy=False)


def _find(keys: Keys, wanted: Keys) -> tuple[NDArray[np.intp], Keys]:
    """Which of `wanted` are among the sorted `keys`, and the indices of those."""
    by_key = np.argsort(wanted)
    places = np.empty(len(wanted), dtype=np.intp)
    places[by_key] = np.searchsorted(keys, wanted[by_key])
    inside = np.flatnonzero(places < len(keys))
    found = inside[keys[places[inside]] == wanted[inside]]
    return found, places[found].astype(np.uint64)
