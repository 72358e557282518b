"""Adaptive softmax: frequent tokens exactly, rare ones in clusters that are seldom computed.

After Grave, Joulin, Cissé, Grangier & Jégou 2017, "Efficient softmax approximation for GPUs",
with the parameters of torch.nn.AdaptiveLogSoftmaxWithLoss. Dimension letters: R rows, B windows,
W width of h, V vocabulary. With q = softmax(h output) over the head's tokens and one entry a tail,

    p(v | h) = q_v                                                      v in the head
    p(v | h) = q_(tail t) softmax((h tail_t_down) tail_t)_v             v in tail t

Tokens are ranked by their frequency in train. The head holds the first eighth of the ranks, the
first tail those up to a half, the second the rest; tail t reads h through W / 4^t numbers.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

__all__ = ["adaptive_shapes", "log_probabilities", "log_probabilities_of"]

TAILS = (1, 2)


def borders(vocabulary_size: int) -> list[int]:
    """Where the head and each tail end."""
    V = vocabulary_size
    return [max(1, V // 8), max(2, V // 2), V]


def adaptive_shapes(vocabulary_size: int, width: int) -> dict[str, tuple[int, ...]]:
    """Name and shape of each parameter of the output."""
    ends = borders(vocabulary_size)
    shapes: dict[str, tuple[int, ...]] = {"output": (width, ends[0] + len(TAILS))}
    for tail in TAILS:
        inner = max(1, width // 4**tail)
        shapes[f"tail_{tail}_down"] = (width, inner)
        shapes[f"tail_{tail}"] = (inner, ends[tail] - ends[tail - 1])
    return shapes


def log_probabilities(weights: Mapping[str, Tensor], h_RW: Tensor, rank_V: Tensor) -> Tensor:
    """(R, V) of every token, in nats."""
    head = (h_RW @ weights["output"]).log_softmax(dim=1)
    size = head.shape[1] - len(TAILS)
    parts = [_tail(weights, tail, h_RW) + head[:, size + tail - 1, None] for tail in TAILS]
    return torch.cat([head[:, :size], *parts], dim=1)[:, rank_V]


def log_probabilities_of(
    weights: Mapping[str, Tensor], h_RW: Tensor, row_B: Tensor, rank_B: Tensor
) -> Tensor:
    """(B,) of one token of a row, given by its rank; a tail is computed for its own alone."""
    head = (h_RW @ weights["output"]).log_softmax(dim=1)
    size = start = head.shape[1] - len(TAILS)
    tail_B = torch.zeros_like(rank_B)
    inside = []
    for tail in TAILS:
        width = weights[f"tail_{tail}"].shape[1]
        (chosen,) = ((rank_B >= start) & (rank_B < start + width)).nonzero(as_tuple=True)
        tail_B[chosen] = tail
        log_p = _tail(weights, tail, h_RW[row_B[chosen]])
        inside.append((chosen, log_p.gather(1, (rank_B[chosen] - start)[:, None])[:, 0]))
        start += width
    entry_B = torch.where(tail_B == 0, rank_B, size + tail_B - 1)
    log_p_B = head[row_B, entry_B]
    for chosen, log_p in inside:
        log_p_B = log_p_B.index_add(0, chosen, log_p)
    return log_p_B


def _tail(weights: Mapping[str, Tensor], tail: int, h_RW: Tensor) -> Tensor:
    return (h_RW @ weights[f"tail_{tail}_down"] @ weights[f"tail_{tail}"]).log_softmax(dim=1)
