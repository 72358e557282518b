"""Matrices with their gradients, and the layers between them, forward and backward.

Dimension letters: R rows, I width in, H hidden width, O width out.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from neural_ngram.activations import ACTIVATIONS
from neural_ngram.settings import ModelSettings

__all__ = ["Dense", "Gated", "Linear", "Node", "Pool", "Result"]


class Node(NamedTuple):
    """A matrix and the loss's gradient with respect to it; None where it is not wanted."""

    value: Tensor
    gradient: Tensor | None

    def rows(self, rows: slice) -> "Node":
        """Some of the rows."""
        return Node(self.value[rows], None if self.gradient is None else self.gradient[rows])

    def transposed(self) -> "Node":
        """The same numbers, columns for rows."""
        return Node(self.value.t(), None if self.gradient is None else self.gradient.t())


class Result(NamedTuple):
    """What a layer computes, and where it finds the loss's gradient divided by `scale`."""

    value: Tensor
    gradient: Tensor
    scale: float = 1.0


class Pool:
    """Scratch memory by name, allocated once at the largest size asked for."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.memory: dict[str, Tensor] = {}

    def take(self, name: str, rows: int, columns: int) -> Tensor:
        """(rows, columns) the memory of that name; what it held before is lost."""
        size = rows * columns
        if name not in self.memory or len(self.memory[name]) < size:
            self.memory[name] = torch.empty(size, dtype=self.dtype)
        return self.memory[name][:size].view(rows, columns)


class Linear:
    """y_RO = x_RI W_IO + b_O, as calls made ready for their matrices.

    adds: which of "y", "x" (its gradient) and "parameters" (theirs) are added to, not overwritten.
    """

    def __init__(
        self,
        x: Node,
        y: Result,
        weight: Node,
        bias: Node | None = None,
        adds: frozenset[str] = frozenset(),
    ) -> None:
        y_RO, dy_RO, scale = y
        start = y_RO if "y" in adds else bias.value if bias else None
        self.forward = _product(x.value, weight.value, y_RO, start, 1)
        self.backward_calls: list[Callable[[], Tensor]] = []
        if weight.gradient is not None:
            start = weight.gradient if "parameters" in adds else None
            call = _product(x.value.t(), dy_RO, weight.gradient, start, scale)
            self.backward_calls.append(call)
        if bias is not None and bias.gradient is not None:
            call = _column_sums(dy_RO, bias.gradient, "parameters" in adds, scale)
            self.backward_calls.append(call)
        if x.gradient is not None:
            start = x.gradient if "x" in adds else None
            call = _product(dy_RO, weight.value.t(), x.gradient, start, scale)
            self.backward_calls.append(call)

    def backward(self) -> None:
        """The gradients of W, b and x from that of y."""
        for call in self.backward_calls:
            call()


def _product(
    a: Tensor, b: Tensor, out: Tensor, start: Tensor | None, scale: float
) -> Callable[[], Tensor]:
    """A call that computes out = scale a b, plus `start` when given."""
    if start is not None:
        return partial(torch.addmm, start, a, b, alpha=scale, out=out)
    if scale != 1:
        return partial(torch.addmm, out, a, b, beta=0, alpha=scale, out=out)
    return partial(torch.mm, a, b, out=out)


def _column_sums(a: Tensor, out: Tensor, adds: bool, scale: float) -> Callable[[], Tensor]:
    """A call that computes out = scale times the sum of the rows of a, plus `out` if it adds.

    It is a product of matrices, whose order of summation can be fixed, unlike that of a vector's.
    """
    out_1O = out[None]
    return _product(a.new_ones(1, len(a)), a, out_1O, out_1O if adds else None, scale)


Step = Callable[..., Tensor]


class Dense:
    """h_RH = activation(z_RH) mask, z = x hidden + hidden_bias.

    One buffer holds dL/dh, then dL/da, then dL/dz.
    """

    def __init__(
        self,
        settings: ModelSettings,
        nodes: dict[str, Node],
        x: Node,
        memory: Pool,
        adds: frozenset[str],
    ) -> None:
        self.activate, self.activate_back = DERIVED.get(settings.hidden) or _differentiated(
            ACTIVATIONS[settings.hidden].function
        )
        shape = len(x.value), settings.hidden_width
        self.z, self.d = memory.take("z", *shape), memory.take("d", *shape)
        overwrites = settings.hidden in ("tanh", "sigmoid", "relu")
        self.a = self.z if overwrites else memory.take("a", *shape)
        self.h = Node(memory.take("h", *shape) if settings.dropout else self.a, self.d)
        y = Result(self.z, self.d)
        self.linear = Linear(x, y, nodes["hidden"], nodes.get("hidden_bias"), adds)

    def forward(self, mask: Tensor | None) -> None:
        """From x to h."""
        self.linear.forward()
        self.activate(self.z, self.a)
        if mask is not None:
            torch.mul(self.a, mask, out=self.h.value)

    def backward(self, mask: Tensor | None) -> None:
        """From the gradient of h to those of x and the parameters."""
        if mask is not None:
            self.d.mul_(mask)
        self.activate_back(self.d, self.z, self.a)
        self.linear.backward()


class Gated:
    """h_RH = q down mask, q = silu(g) u, g = x gate, u = x up."""

    def __init__(
        self,
        settings: ModelSettings,
        nodes: dict[str, Node],
        x: Node,
        memory: Pool,
        adds: frozenset[str],
    ) -> None:
        shape = len(x.value), settings.hidden_width
        names = ("g", "u", "q", "s", "dg", "du", "dh")
        self.g, self.u, self.q, self.s, self.dg, self.du, self.dh = (
            memory.take(name, *shape) for name in names
        )
        h = memory.take("h", *shape)
        self.h = Node(h, self.dh)
        self.up = Linear(x, Result(self.u, self.du), nodes["up"], adds=adds)
        self.gate = Linear(x, Result(self.g, self.dg), nodes["gate"], adds=frozenset({"x"}))
        self.down = Linear(Node(self.q, self.dg), Result(h, self.dh), nodes["down"])

    def forward(self, mask: Tensor | None) -> None:
        """From x to h; `g` then holds a = silu(g)."""
        self.gate.forward()
        self.up.forward()
        _sigmoid(self.g, self.s)
        self.g.mul_(self.s)
        torch.mul(self.g, self.u, out=self.q)
        self.down.forward()
        if mask is not None:
            self.h.value.mul_(mask)

    def backward(self, mask: Tensor | None) -> None:
        """From the gradient of h to those of x and the parameters; `dg` starts as that of q."""
        if mask is not None:
            self.dh.mul_(mask)
        self.down.backward()
        torch.mul(self.dg, self.g, out=self.du)
        self.dg.mul_(self.u).mul_(self.s.addcmul_(self.s, self.g, value=-1).add_(self.g))
        self.up.backward()
        self.gate.backward()


def _sigmoid(z: Tensor, a: Tensor) -> Tensor:
    return torch.mul(z, 0.5, out=a).tanh_().mul_(0.5).add_(0.5)


def _gelu(z: Tensor, a: Tensor) -> Tensor:
    return torch.mul(z, math.sqrt(0.5), out=a).erf_().add_(1).mul_(z).mul_(0.5)


def _gelu_back(d: Tensor, z: Tensor, a: Tensor) -> Tensor:
    density = torch.square(z).mul_(-0.5).exp_().mul_(1 / math.sqrt(2 * math.pi))
    twice_phi_less_1 = torch.mul(z, math.sqrt(0.5), out=a).erf_()
    return d.mul_(density.mul_(z).add_(twice_phi_less_1, alpha=0.5).add_(0.5))


def _differentiated(function: Callable[[Tensor], Tensor]) -> tuple[Step, Step]:
    """Forward and backward of an activation whose derivative the tensor library finds."""

    def forward(z: Tensor, a: Tensor) -> Tensor:
        return a.copy_(function(z))

    def backward(d: Tensor, z: Tensor, _: Tensor) -> Tensor:
        with torch.inference_mode(False), torch.enable_grad():
            leaf = z.clone().requires_grad_()
            (dz,) = torch.autograd.grad(function(leaf), leaf, d.clone())
        return d.copy_(dz)

    return forward, backward


kernels = torch.ops.aten

DERIVED: dict[str, tuple[Step, Step]] = {
    "tanh": (
        lambda z, a: torch.tanh(z, out=a),
        lambda d, z, a: kernels.tanh_backward.grad_input(d, a, grad_input=d),
    ),
    "sigmoid": (
        _sigmoid,
        lambda d, z, a: kernels.sigmoid_backward.grad_input(d, a, grad_input=d),
    ),
    "relu": (
        lambda z, a: torch.clamp_min(z, 0, out=a),
        lambda d, z, a: kernels.threshold_backward.grad_input(d, a, 0, grad_input=d),
    ),
    "gelu": (_gelu, _gelu_back),
}
