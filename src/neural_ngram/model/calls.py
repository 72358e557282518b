"""Matrices with their gradients, and calls on them that are prepared once and run every step.

Dimension letters: R rows, I width in, O width out.

The arguments of a call and the memory for its result are bound in advance, so that a step of a
small model, which is a few dozen calls, costs little more than the arithmetic.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Call", "Node", "Pool", "Result", "Scratch", "in_turn", "linear"]


class Call(NamedTuple):
    """A prepared function call, and its name."""

    name: str
    compute: Callable[[], object]


def in_turn(calls: Sequence[Call]) -> Callable[[], None]:
    """A sequence of calls as one; a note on an error says in which call it arose.

    Most calls are functions of the tensor library with no line of Python for a stack trace to show.
    The names are looked up only then: unpacking them each time costs half a microsecond a step.
    """
    computes = [call.compute for call in calls]

    def run() -> None:
        compute = None
        try:
            for compute in computes:
                compute()
        except Exception as problem:
            (name, *_) = (call.name for call in calls if call.compute is compute)
            problem.add_note(f"in: {name}")
            raise

    return run


class Node(NamedTuple):
    """A matrix and the loss's gradient with respect to it; None where it is not wanted.

    name: for the names of calls. extended: the matrix with a last column of ones, in the same
    memory, where there is one. adds: whether its gradient is added to the buffer instead of
    overwriting it.
    """

    name: str
    value: Tensor
    gradient: Tensor | None
    extended: Tensor | None = None
    adds: bool = False

    def rows(self, rows: slice) -> "Node":
        """Some of the rows."""
        gradient, extended = (
            None if part is None else part[rows] for part in (self.gradient, self.extended)
        )
        return Node(self.name, self.value[rows], gradient, extended, self.adds)

    def transposed(self) -> "Node":
        """The same numbers, columns for rows."""
        gradient = None if self.gradient is None else self.gradient.t()
        return Node(self.name, self.value.t(), gradient, None, self.adds)

    def adding(self) -> "Node":
        """The same, with its gradient added to the buffer."""
        return self._replace(adds=True)

    def over(self, bias: "Node") -> "Node | None":
        """The matrix with a bias as one more row, if the bias directly follows it in memory."""
        if self.gradient is None or bias.gradient is None:
            return None
        value, gradient = _over(self.value, bias.value), _over(self.gradient, bias.gradient)
        if value is None or gradient is None:
            return None
        return Node(f"{self.name} with {bias.name}", value, gradient, None, self.adds)


def _over(matrix_IO: Tensor, bias_O: Tensor) -> Tensor | None:
    stored, behind = matrix_IO.untyped_storage().data_ptr(), matrix_IO.storage_offset()
    if not matrix_IO.is_contiguous() or stored != bias_O.untyped_storage().data_ptr():
        return None
    if bias_O.storage_offset() != behind + matrix_IO.numel():
        return None
    I, O = matrix_IO.shape  # noqa: E741
    return matrix_IO.as_strided((I + 1, O), (O, 1))


class Result(NamedTuple):
    """The result of a product, and where to find the loss's gradient divided by `scale`.

    factors: (R, 1) what each row of it is divided by as well; None for ones. adds: whether the
    product is added to what is there already.
    """

    value: Tensor
    gradient: Tensor
    scale: float = 1.0
    factors: Tensor | None = None
    adds: bool = False


class Pool:
    """Scratch memory by name, allocated once at the largest size asked for."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.memory: dict[str, Tensor] = {}

    def take(self, name: str, rows: int, columns: int) -> Tensor:
        """(rows, columns) the memory of that name; its previous contents are lost."""
        size = rows * columns
        if name not in self.memory or len(self.memory[name]) < size:
            self.memory[name] = torch.empty(size, dtype=self.dtype)
        return self.memory[name][:size].view(rows, columns)


class Scratch(NamedTuple):
    """A layer's memory: matrices of one shape, (rows, columns), by name."""

    pool: Pool
    rows: int
    columns: int

    def take(self, name: str) -> Tensor:
        """(R, H) row after row in memory."""
        return self.pool.take(name, self.rows, self.columns)

    def take_extended(self, name: str) -> Tensor:
        """(R, H + 1) the same with a last column for ones, column after column in memory.

        So all but the last column is in one piece, which elementwise calls run over at full speed,
        and the ones cost no copy.
        """
        return self.pool.take(name, self.columns + 1, self.rows).t()


def linear(x: Node, y: Result, weight: Node, bias: Node | None = None) -> tuple[Call, list[Call]]:
    """y_RO = x_RI W_IO + b_O: the call for y, and those for the gradients of W, b and x.

    A bias that follows its matrix in memory is read as one more row of it if x has a ones column:
    one product then gives x W + b, and one both gradients, where a separate bias would take another
    pass over y each way. If it lies elsewhere, y is first filled with copies of it, and
    its gradient is a product of its own (whose order of summation can be fixed, unlike that of a
    sum).

    x.adds never goes together with factors.
    """
    y_RO, dy_RO, scale, factors, y_adds = y
    read, matrix = x.value, weight
    if bias is not None and x.extended is not None and (both := weight.over(bias)) is not None:
        read, matrix, bias = x.extended, both, None
    start = y_RO if y_adds else bias.value if bias else None
    forward = Call(f"{x.name} times {matrix.name}", _product(read, matrix.value, y_RO, start, 1))
    backward: list[Call] = []
    if factors is not None:
        # The rows of dy lack their factors; they are applied to smaller matrices: x here, dx below.
        read, unweighted = torch.empty_like(read), read
        weighted = partial(torch.mul, unweighted, factors, out=read)
        backward.append(Call(f"{x.name} divided by the sums of rows", weighted))
    if matrix.gradient is not None:
        start = matrix.gradient if matrix.adds else None
        product = _product(read.t(), dy_RO, matrix.gradient, start, scale)
        backward.append(Call(f"gradient of {matrix.name}", product))
    if bias is not None and bias.gradient is not None:
        ones = dy_RO.new_ones(len(dy_RO), 1) if factors is None else factors
        sums_1O = bias.gradient[None]
        product = _product(ones.t(), dy_RO, sums_1O, sums_1O if bias.adds else None, scale)
        backward.append(Call(f"gradient of {bias.name}", product))
    if x.gradient is not None:
        start = x.gradient if x.adds else None
        product = _product(dy_RO, weight.value.t(), x.gradient, start, scale)
        backward.append(Call(f"gradient of {x.name} through {weight.name}", product))
        if factors is not None:
            weighted = partial(x.gradient.mul_, factors)
            backward.append(Call(f"gradient of {x.name} divided by the sums of rows", weighted))
    return forward, backward


def _product(
    a: Tensor, b: Tensor, out: Tensor, start: Tensor | None, scale: float
) -> Callable[[], object]:
    """A call that computes out = scale a b, plus `start` when given."""
    if start is not None:
        return partial(torch.addmm, start, a, b, alpha=scale, out=out)
    if scale != 1:
        return partial(torch.addmm, out, a, b, beta=0, alpha=scale, out=out)
    return partial(torch.mm, a, b, out=out)
