"""The closed form of the gradient, put together from layers.

Dimension letters: B windows of the batch, R rows (contexts computed), C context length,
D embedding width, K = C * D, W width that the output reads, V vocabulary.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from neural_ngram.model.calls import Call, Node, Pool, Result, in_turn, linear
from neural_ngram.model.hidden import hidden_passes, layer_suffixes
from neural_ngram.model.network import Model
from neural_ngram.settings import ModelSettings
from neural_ngram.training.gradients.batch import Batch

__all__ = ["ClosedForm"]

MOST_LOGITS = 2**22
LEAST_BYTES, LEAST_RATIO = 2048, 8
KEPT = 2


class ClosedForm:
    """Mean loss in nats and its gradient by the formulas, in memory allocated once.

    Without masks there is no dropout.
    """

    def __init__(self, model: Model, gradient: Mapping[str, Tensor], *, frozen: bool) -> None:
        self.architecture = model.architecture
        self.nodes = {
            name: Node(name, weights, None if frozen and name == "embedding" else gradient[name])
            for name, weights in model.parameters.items()
        }
        self.memory = Pool(model.dtype)
        self.layer_memory = [Pool(model.dtype) for _ in layer_suffixes(self.settings)]
        self.passes: dict[tuple[int, int], _Pass] = {}
        self.shape = (0, 0)

    @property
    def settings(self) -> ModelSettings:
        """Of the model."""
        return self.architecture.settings

    def __call__(self, batch: Batch, masks: Sequence[Tensor] = ()) -> float:
        """The loss; the gradient buffers are overwritten."""
        shape = batch.tokens.numel(), batch.flat_targets.numel()
        if shape != self.shape:
            self._change_to(shape)
        return self.passes[shape](batch, masks)

    def _change_to(self, shape: tuple[int, int]) -> None:
        """Make the calls for batches of a shape, or find them.

        Two are kept, since an epoch has batches of two shapes: all of them, and the last. Each pass
        writes all that it reads, so that it does not matter which one used the memory before; but
        for the columns of ones, which are filled here, once and not in every step.
        """
        if shape not in self.passes:
            if len(self.passes) == KEPT:
                del self.passes[next(iter(self.passes))]
            self.passes[shape] = _Pass(self, *shape)
        self.passes[shape].fill_ones()
        self.shape = shape


class _Pass:
    """Views of the memory, and calls over them, for batches of so many tokens and windows."""

    def __init__(self, model: ClosedForm, tokens: int, windows: int) -> None:
        rows = tokens // model.architecture.context_length
        settings, K = model.settings, model.architecture.input_width
        self.embedding, self.embedding_gradient = model.nodes["embedding"][1:3]
        x_RK, dx_RK = model.memory.take("x", rows, K), model.memory.take("dx", rows, K)
        self.x_rows, self.dx_rows = (m.view(-1, settings.embedding_width) for m in (x_RK, dx_RK))
        x = Node("x", x_RK, None if self.embedding_gradient is None else dx_RK)
        # The output comes first in the backward pass, and its direct connections write dx.
        read = x.adding() if settings.direct else x
        layers, self.masks = hidden_passes(settings, model.nodes, read, model.layer_memory)
        h = layers[-1].h if layers else x
        self.no_masks = [torch.ones(()).expand_as(mask) for mask in self.masks]
        self.ones = [layer.h.extended[:, -1] for layer in layers if layer.h.extended is not None]
        self.forward = in_turn([call for layer in layers for call in layer.forward])
        self.output = _Output(model.nodes, h, x, model.memory, windows)
        backward = [call for layer in reversed(layers) for call in layer.backward]
        if self.embedding_gradient is not None and not settings.tied_output:
            zero = Call("gradient of the embedding, zero", self.embedding_gradient.zero_)
            backward.append(zero)
        self.backward = in_turn(backward)

    def fill_ones(self) -> None:
        for ones in self.ones:
            ones.fill_(1)

    def __call__(self, batch: Batch, masks: Sequence[Tensor]) -> float:
        torch.index_select(self.embedding, 0, batch.tokens, out=self.x_rows)
        for memory, mask in zip(self.masks, masks or self.no_masks, strict=True):
            memory.copy_(mask)
        self.forward()
        loss = self.output(batch)
        self.backward()
        if self.embedding_gradient is not None:
            self.embedding_gradient.index_add_(0, batch.tokens, self.dx_rows)
        return loss


class _Chunk(NamedTuple):
    """Some rows, the memory of their logits as (R, V) and flat, and the calls around it.

    sums: (R, 1) memory for the sums of exponentials and then the factors of rows that are not
        normalised.
    """

    rows: slice
    logits: Tensor
    flat_logits: Tensor
    sums: Tensor | None
    forward: Callable[[], None]
    backward: Callable[[], None]


class _Output:
    """Logits, loss, and the gradients of h and of the direct part of x, a few rows at a time.

    Rows that no windows share are not normalised where they are long, and long beside what they are
    computed from: y holds their exponentials, and what is left to divide its rows by is applied to
    the smaller matrices that it is multiplied with.
    """

    def __init__(
        self, nodes: Mapping[str, Node], h: Node, x: Node, memory: Pool, windows: int
    ) -> None:
        read = {name: nodes[name] for name in ("output", "output_bias", "direct") if name in nodes}
        if "output" not in read:
            read["output"] = nodes["embedding"].transposed()
        V = self.V = read["output"].value.shape[1]
        self.ones = torch.ones(windows, dtype=memory.dtype)
        self.most_nats = -math.log(torch.finfo(memory.dtype).tiny)
        self.chunks: list[_Chunk] = []
        (rows, width), step = h.value.shape, max(1, MOST_LOGITS // V)
        long = V * memory.dtype.itemsize >= LEAST_BYTES and width * LEAST_RATIO <= V
        for start in range(0, rows, step):
            chunk = slice(start, min(start + step, rows))
            y_RV = memory.take("logits", chunk.stop - start, V)
            sums = memory.take("sums", chunk.stop - start, 1) if long and windows == rows else None
            result = Result(y_RV, y_RV, 1 / windows, sums)
            # The first chunk overwrites the gradients of the parameters, the others add theirs.
            own = {name: node.adding() if start else node for name, node in read.items()}
            bias = own.get("output_bias")
            first, backward = linear(h.rows(chunk), result, own["output"], bias)
            forward = [first]
            if "direct" in own:
                beside = result._replace(adds=True)
                second, back = linear(x.rows(chunk), beside, own["direct"])
                forward, backward = [first, second], [*backward, *back]
            calls = in_turn(forward), in_turn(backward)
            self.chunks.append(_Chunk(chunk, y_RV, y_RV.view(-1), sums, *calls))

    def __call__(self, batch: Batch) -> float:
        flat_targets, multiplicity, total = batch.flat_targets, batch.multiplicity, 0.0
        for chunk in self.chunks:
            if len(self.chunks) > 1:
                flat_targets = self._targets_in(batch.flat_targets, chunk.rows)
                multiplicity = (
                    None if batch.multiplicity is None else batch.multiplicity[chunk.rows]
                )
            nats = None if chunk.sums is None else self._by_sums(chunk, chunk.sums, flat_targets)
            total += self._by_softmax(chunk, flat_targets, multiplicity) if nats is None else nats
            chunk.backward()
        return total / len(self.ones)

    def _by_softmax(
        self, chunk: _Chunk, flat_targets: Tensor, multiplicity: Tensor | None
    ) -> float:
        """Summed negative log-likelihood of the targets; leaves its gradient in y.

        A probability too small for its type is recomputed as a logarithm.
        """
        y_RV, flat = chunk.logits, chunk.flat_logits
        chunk.forward()
        torch.softmax(y_RV, 1, out=y_RV)
        log_p_B = flat.index_select(0, flat_targets).log_()
        nats: float = -log_p_B.sum().item()
        if nats >= self.most_nats and -float(log_p_B.amin()) >= self.most_nats:
            chunk.forward()
            nats = -float(y_RV.log_softmax(1).view(-1).index_select(0, flat_targets).sum())
            torch.softmax(y_RV, 1, out=y_RV)
        if multiplicity is not None:
            y_RV.mul_(multiplicity)
        ones = self.ones if len(flat_targets) == len(self.ones) else self.ones[: len(flat_targets)]
        flat.index_add_(0, flat_targets, ones, alpha=-1.0)
        if chunk.sums is not None:
            chunk.sums.fill_(1)
        return nats

    def _by_sums(self, chunk: _Chunk, sums: Tensor, flat_targets: Tensor) -> float | None:
        """The same for one target per row, except for a factor per row, which it leaves in `sums`.

        Softmax first searches each row for its largest logit and subtracts it, so that no
        exponential is infinite: a pass over all logits, which this does without. Logits of a model
        in training lie within a few tens around zero, where exponentials are far from the ends of
        their type's range. Otherwise a sum of a row is infinite or its logarithm is not a number:
        then None is returned, before anything is overwritten that `_by_softmax` does not recompute.
        """
        chunk.forward()
        logit_B = chunk.flat_logits.index_select(0, flat_targets)
        torch.sum(chunk.logits.exp_(), 1, keepdim=True, out=sums)
        log_sum_B = sums.log().view(-1)
        low, high = torch.aminmax(log_sum_B)
        if not (low.item() > -self.most_nats / 2 and high.item() < self.most_nats / 2):
            return None
        nats: float = (log_sum_B - logit_B).sum().item()
        chunk.flat_logits.index_add_(0, flat_targets, sums.view(-1), alpha=-1.0)
        sums.reciprocal_()
        return nats

    def _targets_in(self, flat_targets: Tensor, rows: slice) -> Tensor:
        """The flat target indices that lie in some of the rows, counted from the first of them."""
        borders = torch.tensor([rows.start * self.V, rows.stop * self.V])
        first, last = torch.searchsorted(flat_targets, borders).tolist()
        inside: Tensor = flat_targets[first:last] - rows.start * self.V
        return inside
