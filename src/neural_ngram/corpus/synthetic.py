"""Synthetic text from a source whose entropies are known, and so the lowest possible loss.

Dimension letters: A characters in the alphabet, m order of the source, S = A^m states,
k context tokens, D documents, L characters in a document.

A source of order m draws each character from a distribution that depends on the m characters
before it. Documents start in the stationary distribution, so every position of every document has
the same distribution, and the conditional entropy H(next | last k) is exact for each k.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from neural_ngram.errors import ConfigurationError

__all__ = ["MarkovSource"]

Floats = NDArray[np.float64]
MOST_STATES = 4096
LEAST_PROBABILITY = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class MarkovSource:
    """A stationary Markov source of characters.

    alphabet: A distinct characters.
    transitions: (A,) * m + (A,) probabilities of the next character, the last axis, after the m
        characters before it, oldest first; all positive, so one stationary distribution exists.
    """

    alphabet: str
    transitions: Floats

    @classmethod
    def draw(
        cls, rng: np.random.Generator, *, alphabet: str, order: int, concentration: float = 1.0
    ) -> "MarkovSource":
        """A source whose next-character distributions are drawn from a symmetric Dirichlet prior.

        No probability is below a millionth (before normalisation): every state can be reached.

        concentration: near 0 almost every character is determined by those before it; at 1 all
        distributions are equally likely; large values tend to the uniform distribution.

        Raises ConfigurationError when a setting is out of range.
        """
        A = len(alphabet)
        if A < 1 or len(set(alphabet)) < A:
            raise ConfigurationError(
                f"the alphabet {alphabet!r} of a synthetic source must be distinct characters, at "
                "least one; remove repeated ones"
            )
        if order < 0 or A**order > MOST_STATES:
            raise ConfigurationError(
                f"a synthetic source of order {order} over {A} characters has no state or too many "
                f"(at most {MOST_STATES}); choose an order from 0 up, or a smaller alphabet"
            )
        if not 0 < concentration < np.inf:
            raise ConfigurationError(
                f"a Dirichlet concentration of {concentration} is out of range; it must be positive"
            )
        rows = rng.dirichlet(np.full(A, concentration), size=(A,) * order)
        rows = np.maximum(rows, LEAST_PROBABILITY)
        return cls(alphabet=alphabet, transitions=rows / rows.sum(axis=-1, keepdims=True))

    @property
    def order(self) -> int:
        """m, the number of characters that the next one depends on."""
        return self.transitions.ndim - 1

    @cached_property
    def stationary(self) -> Floats:
        """(A,) * m the probability of each state, m characters in a row, the oldest first.

        The solution of π P = π and Σ π = 1, where the state x₁ … x_m goes to x₂ … x_m w.
        """
        A, m = len(self.alphabet), self.order
        S = A**m
        moves = np.zeros((S, S))
        states = np.arange(S)
        for character, probability in enumerate(self.transitions.reshape(S, A).T):
            moves[states, (states * A + character) % S] += probability
        balance = moves.T - np.eye(S)
        balance[-1] = 1.0
        solution = np.maximum(np.linalg.solve(balance, np.eye(S)[-1]), 0)
        return np.asarray((solution / solution.sum()).reshape((A,) * m))

    def conditional_entropies(self) -> list[float]:
        """H(next | last k characters) in nats for k = 0 … m; from m on it is the entropy rate."""
        joint = self.stationary[..., None] * self.transitions
        entropies = []
        for k in range(self.order + 1):
            pair = joint.sum(axis=tuple(range(self.order - k)))
            entropies.append(_entropy(pair) - _entropy(pair.sum(axis=-1)))
        return entropies

    @property
    def entropy_rate(self) -> float:
        """H(next | all before) in nats: no model's expected loss is lower."""
        return self.conditional_entropies()[-1]

    def documents(self, rng: np.random.Generator, *, count: int, length: int) -> list[str]:
        """D documents of L characters each, all starting in the stationary distribution.

        Raises ConfigurationError when either number is negative.
        """
        if count < 0 or length < 0:
            raise ConfigurationError(
                f"{count} documents of {length} characters cannot be drawn; both must be at least 0"
            )
        A, m = len(self.alphabet), self.order
        state = rng.choice(A**m, size=count, p=self.stationary.reshape(-1))
        drawn = np.empty((count, m + length), dtype=np.int64)
        drawn[:, :m] = np.stack(np.unravel_index(state, (A,) * m), axis=1) if m else 0
        cumulative = self.transitions.reshape(-1, A).cumsum(axis=1)
        for place in range(m, m + length):
            above = rng.random(count)[:, None] * cumulative[state, -1:] >= cumulative[state]
            drawn[:, place] = above.sum(axis=1)
            state = (state * A + drawn[:, place]) % A**m
        characters = np.array(list(self.alphabet))
        return ["".join(characters[row]) for row in drawn[:, :length]]


def _entropy(probabilities: Floats) -> float:
    positive = probabilities[probabilities > 0]
    return float(-np.sum(positive * np.log(positive)))
