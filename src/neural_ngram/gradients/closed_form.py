"""The closed form of the gradient, put together from layers.

Dimension letters: B windows of the batch, R rows (contexts computed), C context length,
D embedding width, K = C * D, W width that the output reads, V vocabulary.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from neural_ngram.gradients.batch import Batch
from neural_ngram.gradients.layers import Call, Layer, Node, Pool, Result, dense, gated, linear
from neural_ngram.model import Model
from neural_ngram.model.hidden import layer_suffixes
from neural_ngram.settings import ModelSettings

__all__ = ["ClosedForm", "covers"]

MOST_LOGITS = 2**21


def covers(settings: ModelSettings) -> bool:
    """Whether the formulas cover a model; an adaptive output is left to the reference."""
    return settings.output == "softmax"


class ClosedForm:
    """Mean loss in nats and its gradient by the formulas, in memory allocated once.

    Without masks there is no dropout.
    """

    def __init__(self, model: Model, gradient: Mapping[str, Tensor], *, frozen: bool) -> None:
        self.architecture = model.architecture
        self.nodes = {
            name: Node(weights, None if frozen and name == "embedding" else gradient[name])
            for name, weights in model.parameters.items()
        }
        self.suffixes = layer_suffixes(self.architecture.settings)
        self.memory = Pool(model.dtype)
        self.layer_memory = [Pool(model.dtype) for _ in self.suffixes]
        self._prepare(self.architecture.context_length, True)

    def __call__(self, batch: Batch, masks: Sequence[Tensor] = ()) -> float:
        """The loss; the gradient buffers are overwritten."""
        shape = batch.tokens.numel(), batch.sharing is None
        if shape != self.prepared:
            self._prepare(*shape)
        torch.index_select(self.nodes["embedding"].value, 0, batch.tokens, out=self.x_rows)
        for memory, mask in zip(self.masks, masks or self.no_masks, strict=True):
            memory.copy_(mask)
        for call in self.forward:
            call()
        loss = self.output(batch)
        for call in self.backward:
            call()
        self._embedding_gradient(batch.tokens)
        return loss

    def _prepare(self, tokens: int, single: bool) -> None:
        """Views of the memory, and calls over them, for batches whose contexts hold so many tokens.

        single: each window has its own row.
        """
        rows = tokens // self.architecture.context_length
        settings, K = self.architecture.settings, self.architecture.input_width
        x_RK, dx_RK = self.memory.take("x", rows, K), self.memory.take("dx", rows, K)
        self.x_rows, self.dx_rows = (m.view(-1, settings.embedding_width) for m in (x_RK, dx_RK))
        x = h = Node(x_RK, None if self.nodes["embedding"].gradient is None else dx_RK)
        layers: list[Layer] = []
        for suffix, memory in zip(self.suffixes, self.layer_memory, strict=True):
            names = ("hidden", "hidden_bias", "gate", "up", "down")
            nodes = {n: self.nodes[n + suffix] for n in names if n + suffix in self.nodes}
            adds = frozenset({"x"} if settings.direct and not layers else ())
            kind = gated if settings.hidden == "swiglu" else dense
            layers.append(kind(settings, nodes, h, memory, adds))
            h = layers[-1].h
        self.masks = [layer.mask for layer in layers if layer.mask is not None]
        self.no_masks = [torch.ones(()).expand_as(mask) for mask in self.masks]
        self.forward = [call for layer in layers for call in layer.forward]
        self.backward = [call for layer in reversed(layers) for call in layer.backward]
        scale = 1 / rows if single else 1.0
        self.output = _Output(self.nodes, h, x, self.memory, scale)
        self.prepared = tokens, single

    def _embedding_gradient(self, tokens: Tensor) -> None:
        gradient_VD = self.nodes["embedding"].gradient
        if gradient_VD is not None:
            if not self.architecture.settings.tied_output:
                gradient_VD.zero_()
            gradient_VD.index_add_(0, tokens, self.dx_rows)


class _Chunk(NamedTuple):
    """Some rows, the memory of their logits as (R, V) and flat, and the calls around it."""

    rows: slice
    logits: Tensor
    cells: Tensor
    forward: list[Call]
    backward: list[Call]


class _Output:
    """Logits, loss, and the gradients of h and of the direct part of x, a few rows at a time.

    scale: what is left to multiply the gradient of the logits with on the way to the others.
    """

    def __init__(
        self, nodes: Mapping[str, Node], h: Node, x: Node, memory: Pool, scale: float
    ) -> None:
        weight = nodes["output"] if "output" in nodes else nodes["embedding"].transposed()
        V = self.V = weight.value.shape[1]
        self.ones = torch.ones(0, dtype=memory.dtype)
        self.most_nats = -math.log(torch.finfo(memory.dtype).tiny)
        self.chunks: list[_Chunk] = []
        rows, step = len(h.value), max(1, MOST_LOGITS // V)
        for start in range(0, rows, step):
            chunk = slice(start, min(start + step, rows))
            y_RV = memory.take("logits", chunk.stop - start, V)
            result = Result(y_RV, y_RV, scale)
            adds = frozenset({"parameters"} if start else ())
            bias = nodes.get("output_bias")
            first, backward = linear(h.rows(chunk), result, weight, bias, adds)
            forward = [first]
            if "direct" in nodes:
                second, back = linear(x.rows(chunk), result, nodes["direct"], None, adds | {"y"})
                forward, backward = [first, second], [*backward, *back]
            self.chunks.append(_Chunk(chunk, y_RV, y_RV.view(-1), forward, backward))

    def __call__(self, batch: Batch) -> float:
        B = batch.cells.numel()
        if self.ones.numel() != B:
            self.ones = self.ones.new_ones(B)
        cells, ones, nats = batch.cells, self.ones, 0.0
        for chunk in self.chunks:
            if len(self.chunks) > 1:
                cells = self._cells(batch.cells, chunk.rows)
                ones = self.ones[: cells.numel()]
            nats += self._nats(chunk, cells)
            down = -1.0
            if batch.sharing is not None:
                chunk.logits.mul_(batch.sharing[chunk.rows] / B)
                down = -1 / B
            chunk.cells.index_add_(0, cells, ones, alpha=down)
            for call in chunk.backward:
                call()
        return nats / B

    def _nats(self, chunk: _Chunk, cells: Tensor) -> float:
        """Summed negative log-likelihood of the cells; leaves the probabilities in y.

        A probability too small for its type is looked up again as a logarithm.
        """
        y_RV, all_cells = chunk.logits, chunk.cells
        for call in chunk.forward:
            call()
        torch.softmax(y_RV, 1, out=y_RV)
        log_p_B = all_cells.index_select(0, cells).log_()
        nats = -log_p_B.sum().item()
        if nats >= self.most_nats and -float(log_p_B.amin()) >= self.most_nats:
            for call in chunk.forward:
                call()
            nats = -float(y_RV.log_softmax(1).view(-1).index_select(0, cells).sum())
            torch.softmax(y_RV, 1, out=y_RV)
        return nats

    def _cells(self, cells: Tensor, rows: slice) -> Tensor:
        """The cells that lie in some of the rows, counted from the first of them."""
        borders = torch.tensor([rows.start * self.V, rows.stop * self.V])
        first, last = torch.searchsorted(cells, borders).tolist()
        inside: Tensor = cells[first:last] - rows.start * self.V
        return inside
