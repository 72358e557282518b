"""What one step reads."""

from typing import NamedTuple

from torch import Tensor

__all__ = ["Batch"]


class Batch(NamedTuple):
    """B windows in R rows: those with the same context share a row, or each has its own.

    tokens: (R * C,) the contexts' token IDs, row by row.
    flat_targets: (B,) row * V + target of each window, rows ascending.
    multiplicity: (R, 1) how many windows share each row, in the model's type; None: one each.
    """

    tokens: Tensor
    flat_targets: Tensor
    multiplicity: Tensor | None = None
