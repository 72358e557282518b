"""Matrices with their gradients, and the layers between them, as calls made ready to be repeated.

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

__all__ = ["Call", "Layer", "Node", "Pool", "Result", "dense", "gated", "linear"]

Call = Callable[[], object]


class Node(NamedTuple):
    """A matrix and the loss's gradient with respect to it; None where it is not wanted.

    extended: the matrix with a last column of ones, in the same memory, where there is one.
    """

    value: Tensor
    gradient: Tensor | None
    extended: Tensor | None = None

    def rows(self, rows: slice) -> "Node":
        """Some of the rows."""
        gradient, extended = (
            None if part is None else part[rows] for part in (self.gradient, self.extended)
        )
        return Node(self.value[rows], gradient, extended)

    def transposed(self) -> "Node":
        """The same numbers, columns for rows."""
        return Node(self.value.t(), None if self.gradient is None else self.gradient.t())

    def over(self, bias: "Node") -> "Node | None":
        """The matrix with a bias as one more row, if the bias lies right behind it in memory."""
        if self.gradient is None or bias.gradient is None:
            return None
        value, gradient = _over(self.value, bias.value), _over(self.gradient, bias.gradient)
        return None if value is None or gradient is None else Node(value, gradient)


def _over(matrix_IO: Tensor, bias_O: Tensor) -> Tensor | None:
    stored, behind = matrix_IO.untyped_storage().data_ptr(), matrix_IO.storage_offset()
    if not matrix_IO.is_contiguous() or stored != bias_O.untyped_storage().data_ptr():
        return None
    if bias_O.storage_offset() != behind + matrix_IO.numel():
        return None
    I, O = matrix_IO.shape  # noqa: E741
    return matrix_IO.as_strided((I + 1, O), (O, 1))


class Result(NamedTuple):
    """What a layer computes, and where it finds the loss's gradient divided by `scale`.

    factors: (R, 1) what each row of it is divided by as well; None for ones.
    """

    value: Tensor
    gradient: Tensor
    scale: float = 1.0
    factors: Tensor | None = None


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

    def take_extended(self, name: str, rows: int, columns: int) -> Tensor:
        """(rows, columns + 1) the same, column after column in memory; the last is for ones."""
        return self.take(name, columns + 1, rows).t()


class Layer(NamedTuple):
    """What a layer computes, and the calls for it and for the gradients of all that it reads.

    mask: where the dropout mask of a step is put; None without dropout.
    """

    h: Node
    forward: list[Call]
    backward: list[Call]
    mask: Tensor | None


def linear(
    x: Node,
    y: Result,
    weight: Node,
    bias: Node | None = None,
    adds: frozenset[str] = frozenset(),
) -> tuple[Call, list[Call]]:
    """y_RO = x_RI W_IO + b_O: the call for y, and those for the gradients of W, b and x.

    A bias that lies behind its matrix is read as a row of it, where x has the column of ones for
    it; alone, y is first filled with copies of it, and its gradient is a product of its own (whose
    order of summation can be fixed, unlike that of a sum).

    adds: which of "y", "x" (its gradient) and "parameters" (theirs) are added to, not overwritten;
    x never together with factors.
    """
    y_RO, dy_RO, scale, factors = y
    read, matrix = x.value, weight
    if bias is not None and x.extended is not None and (both := weight.over(bias)) is not None:
        read, matrix, bias = x.extended, both, None
    start = y_RO if "y" in adds else bias.value if bias else None
    forward = _product(read, matrix.value, y_RO, start, 1)
    backward: list[Call] = []
    if factors is not None:
        read, unweighted = torch.empty_like(read), read
        backward.append(partial(torch.mul, unweighted, factors, out=read))
    if matrix.gradient is not None:
        start = matrix.gradient if "parameters" in adds else None
        backward.append(_product(read.t(), dy_RO, matrix.gradient, start, scale))
    if bias is not None and bias.gradient is not None:
        ones = dy_RO.new_ones(len(dy_RO), 1) if factors is None else factors
        sums_1O = bias.gradient[None]
        start = sums_1O if "parameters" in adds else None
        backward.append(_product(ones.t(), dy_RO, sums_1O, start, scale))
    if x.gradient is not None:
        start = x.gradient if "x" in adds else None
        backward.append(_product(dy_RO, weight.value.t(), x.gradient, start, scale))
        if factors is not None:
            backward.append(partial(x.gradient.mul_, factors))
    return forward, backward


def _product(a: Tensor, b: Tensor, out: Tensor, start: Tensor | None, scale: float) -> Call:
    """A call that computes out = scale a b, plus `start` when given."""
    if start is not None:
        return partial(torch.addmm, start, a, b, alpha=scale, out=out)
    if scale != 1:
        return partial(torch.addmm, out, a, b, beta=0, alpha=scale, out=out)
    return partial(torch.mm, a, b, out=out)


def dense(
    settings: ModelSettings, nodes: dict[str, Node], x: Node, memory: Pool, adds: frozenset[str]
) -> Layer:
    """h_RH = activation(z_RH) mask, z = x hidden + hidden_bias.

    One buffer holds dL/dh, then dL/da, then dL/dz.
    """
    activate, activate_back = DERIVED.get(settings.hidden) or _differentiated(
        ACTIVATIONS[settings.hidden].function
    )
    shape = len(x.value), settings.hidden_width
    extended = memory.take_extended("z", *shape)
    z, d = extended[:, :-1], memory.take_extended("d", *shape)[:, :-1]
    if settings.hidden not in ("tanh", "sigmoid", "relu"):
        extended = memory.take_extended("a", *shape)
    a = extended[:, :-1]
    up, down = linear(x, Result(z, d), nodes["hidden"], nodes.get("hidden_bias"), adds)
    forward, backward = [up, activate(z, a)], [activate_back(d, z, a), *down]
    if not settings.dropout:
        return Layer(Node(a, d, extended), forward, backward, None)
    extended = memory.take_extended("h", *shape)
    mask = memory.take_extended("mask", *shape)[:, :-1]
    forward.append(partial(torch.mul, a, mask, out=extended[:, :-1]))
    backward.insert(0, partial(d.mul_, mask))
    return Layer(Node(extended[:, :-1], d, extended), forward, backward, mask)


def gated(
    settings: ModelSettings, nodes: dict[str, Node], x: Node, memory: Pool, adds: frozenset[str]
) -> Layer:
    """h_RH = q down mask, q = silu(g) u, g = x gate, u = x up.

    Going forward, g becomes a = silu(g); going back, dg is first the gradient of q.
    """
    shape = len(x.value), settings.hidden_width
    names = ("g", "u", "q", "s", "dg", "du", "h", "dh")
    g, u, q, s, dg, du, h, dh = (memory.take(name, *shape) for name in names)
    up, up_back = linear(x, Result(u, du), nodes["up"], adds=adds)
    gate, gate_back = linear(x, Result(g, dg), nodes["gate"], adds=frozenset({"x"}))
    down, down_back = linear(Node(q, dg), Result(h, dh), nodes["down"])

    def activate() -> None:
        _sigmoid(g, s)
        g.mul_(s)
        torch.mul(g, u, out=q)

    def activate_back() -> None:
        torch.mul(dg, g, out=du)
        dg.mul_(u).mul_(s.addcmul_(s, g, value=-1).add_(g))

    forward = [gate, up, activate, down]
    backward = [*down_back, activate_back, *up_back, *gate_back]
    if not settings.dropout:
        return Layer(Node(h, dh), forward, backward, None)
    mask = memory.take("mask", *shape)
    forward.append(partial(h.mul_, mask))
    return Layer(Node(h, dh), forward, [partial(dh.mul_, mask), *backward], mask)


def _sigmoid(z: Tensor, a: Tensor) -> Tensor:
    return torch.mul(z, 0.5, out=a).tanh_().mul_(0.5).add_(0.5)


def _gelu(z: Tensor, a: Tensor) -> Tensor:
    return torch.mul(z, math.sqrt(0.5), out=a).erf_().add_(1).mul_(z).mul_(0.5)


def _gelu_back(d: Tensor, z: Tensor, a: Tensor) -> Tensor:
    density = torch.square(z).mul_(-0.5).exp_().mul_(1 / math.sqrt(2 * math.pi))
    twice_phi_less_1 = torch.mul(z, math.sqrt(0.5), out=a).erf_()
    return d.mul_(density.mul_(z).add_(twice_phi_less_1, alpha=0.5).add_(0.5))


Ready = Callable[..., Call]


def _differentiated(function: Callable[[Tensor], Tensor]) -> tuple[Ready, Ready]:
    """Forward and backward of an activation whose derivative the tensor library finds."""

    def backward(d: Tensor, z: Tensor) -> None:
        with torch.inference_mode(False), torch.enable_grad():
            leaf = z.clone().requires_grad_()
            (dz,) = torch.autograd.grad(function(leaf), leaf, d.clone())
        d.copy_(dz)

    return lambda z, a: lambda: a.copy_(function(z)), lambda d, z, _: partial(backward, d, z)


kernels = torch.ops.aten

# By name, what makes the calls that turn z into a, and with z and a the gradient d of a into z's.
DERIVED: dict[str, tuple[Ready, Ready]] = {
    "tanh": (
        lambda z, a: partial(torch.tanh, z, out=a),
        lambda d, _, a: partial(kernels.tanh_backward.grad_input, d, a, grad_input=d),
    ),
    "sigmoid": (
        lambda z, a: partial(_sigmoid, z, a),
        lambda d, _, a: partial(kernels.sigmoid_backward.grad_input, d, a, grad_input=d),
    ),
    "relu": (
        lambda z, a: partial(torch.clamp_min, z, 0, out=a),
        lambda d, _, a: partial(kernels.threshold_backward.grad_input, d, a, 0, grad_input=d),
    ),
    "gelu": (
        lambda z, a: partial(_gelu, z, a),
        lambda d, z, a: partial(_gelu_back, d, z, a),
    ),
}
