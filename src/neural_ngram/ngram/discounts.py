"""How much modified Kneser-Ney takes from the count of an n-gram, to give it to unseen ones.

Dimension letter: G distinct n-grams of one order.
"""

from dataclasses import dataclass

import numpy as np

from neural_ngram.errors import ModelError
from neural_ngram.ngram.counts import Counts, Floats

__all__ = ["Discounts"]


@dataclass(frozen=True, kw_only=True)
class Discounts:
    """What is subtracted from an n-gram's adjusted count of one, two, or three and more."""

    one: float
    two: float
    more: float
    fallback: bool = False
    """Whether the closed form did not apply, so that these are 0.5, 1 and 1.5."""

    def __post_init__(self) -> None:
        if not (0 < self.one <= 1 and 0 < self.two <= 2 and 0 < self.more <= 3):
            raise ModelError(
                f"discounts of {self.one}, {self.two} and {self.more} are out of range; "
                "give positive ones of at most 1, 2 and 3"
            )

    @classmethod
    def of(cls, counts: Counts) -> "Discounts":
        """Chen & Goodman (1999), eq. 26, from the (G,) adjusted counts of one order.

        The fallback follows KenLM's `--discount_fallback`: no n-gram was seen once, none twice, or
        none three times, or a discount is out of range. (KenLM allows 0; a context all of whose
        n-grams were discounted by 0 would leave nothing for an unseen token.)
        """
        n1, n2, n3, n4 = np.bincount(np.minimum(counts, 5), minlength=6)[1:5].tolist()
        if n1 and n2 and n3:
            Y = n1 / (n1 + 2 * n2)
            one, two, more = 1 - 2 * Y * n2 / n1, 2 - 3 * Y * n3 / n2, 3 - 4 * Y * n4 / n3
            if one > 0 and two > 0 and more > 0:
                return cls(one=one, two=two, more=more)
        return cls(one=0.5, two=1.0, more=1.5, fallback=True)

    def of_each(self, counts: Counts) -> Floats:
        """(G,) the discount of each adjusted count."""
        return np.array([0.0, self.one, self.two, self.more])[np.minimum(counts, 3)]
