"""The activations of dense hidden layers, by the name that `model.hidden` gives: one entry each.

    tanh      Bengio et al. 2003
    relu      max(z, 0)
    sigmoid   1 / (1 + exp(-z)) = (1 + tanh(z / 2)) / 2
    gelu      z Phi(z), Phi(z) = (1 + erf(z / sqrt 2)) / 2, Hendrycks & Gimpel 2016

The second forms are used: unlike the library's own sigmoid and gelu, its tanh and erf give the same
bits however threads divide the rows (`training.determinism`).

Only the standard library is imported here, since the settings read the names from here and must
not load the tensor library; functions that need it receive it as an argument.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ACTIVATIONS", "Activation", "Kernels"]

Run = Callable[[], object]


class Kernels(NamedTuple):
    """The closed form: how to make the calls that a training step repeats.

    forward: (torch, z, a) to a call that computes a = f(z).
    backward: (torch, d, z, a) to a call that turns d from the gradient of a into that of z.
    reads_z: whether the backward pass reads z; if not, a may overwrite its memory.
    """

    forward: "Callable[[Any, Tensor, Tensor], Run]"
    backward: "Callable[[Any, Tensor, Tensor, Tensor], Run]"
    reads_z: bool = False


class Activation(NamedTuple):
    """An elementwise function.

    function: of one tensor, written with operators and the tensor's own methods.
    python: the same as an expression in z, np and math, for the model card.
    onnx: the ONNX operator (opset 20).
    gain: the factor of the initial weights that keeps the scale of values (He et al. 2015), which
        `model.initialisation=scaled` applies.
    kernels: None leaves the derivative to the tensor library.
    """

    function: "Callable[[Tensor], Tensor]"
    python: str
    onnx: str
    gain: float = 1.0
    kernels: Kernels | None = None


def _sigmoid(torch: Any, z: "Tensor", a: "Tensor") -> Run:
    return lambda: torch.mul(z, 0.5, out=a).tanh_().mul_(0.5).add_(0.5)


def _gelu(torch: Any, z: "Tensor", a: "Tensor") -> Run:
    return lambda: torch.mul(z, math.sqrt(0.5), out=a).erf_().add_(1).mul_(z).mul_(0.5)


def _gelu_back(torch: Any, d: "Tensor", z: "Tensor", a: "Tensor") -> Run:
    """f'(z) = Phi(z) + z phi(z), with Phi(z) - 1/2 computed where a was."""

    def multiply() -> None:
        density = torch.square(z).mul_(-0.5).exp_().mul_(1 / math.sqrt(2 * math.pi))
        twice_phi_less_1 = torch.mul(z, math.sqrt(0.5), out=a).erf_()
        d.mul_(density.mul_(z).add_(twice_phi_less_1, alpha=0.5).add_(0.5))

    return multiply


# tanh' = 1 - a^2, sigmoid' = a (1 - a) and relu' = [a > 0] need only a, and each is one kernel.
ACTIVATIONS = {
    "tanh": Activation(
        lambda z: z.tanh(),
        python="np.tanh(z)",
        onnx="Tanh",
        gain=5 / 3,
        kernels=Kernels(
            lambda torch, z, a: partial(torch.tanh, z, out=a),
            lambda torch, d, _, a: partial(
                torch.ops.aten.tanh_backward.grad_input, d, a, grad_input=d
            ),
        ),
    ),
    "relu": Activation(
        lambda z: z.relu(),
        python="np.maximum(z, 0)",
        onnx="Relu",
        gain=math.sqrt(2),
        kernels=Kernels(
            lambda torch, z, a: partial(torch.clamp_min, z, 0, out=a),
            lambda torch, d, _, a: partial(
                torch.ops.aten.threshold_backward.grad_input, d, a, 0, grad_input=d
            ),
        ),
    ),
    "sigmoid": Activation(
        lambda z: (1 + (z / 2).tanh()) / 2,
        python="1 / (1 + np.exp(-z))",
        onnx="Sigmoid",
        kernels=Kernels(
            _sigmoid,
            lambda torch, d, _, a: partial(
                torch.ops.aten.sigmoid_backward.grad_input, d, a, grad_input=d
            ),
        ),
    ),
    "gelu": Activation(
        lambda z: z * (1 + (z * math.sqrt(0.5)).erf()) / 2,
        python="z * (1 + np.vectorize(math.erf)(z / math.sqrt(2))) / 2",
        onnx="Gelu",
        gain=math.sqrt(2),
        kernels=Kernels(_gelu, _gelu_back, reads_z=True),
    ),
}
