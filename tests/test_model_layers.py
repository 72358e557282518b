"""Every kind of hidden layer that is registered: its gradient, its shapes, and its other writings.

Dimension letters: R rows, I width in, H hidden width.
"""

import math
from collections.abc import Mapping
from functools import partial

import numpy as np
import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor

from neural_ngram.choices.activations import ACTIVATIONS
from neural_ngram.export.onnx import IR_VERSION, OPSET
from neural_ngram.model.calls import Node, Pool, Scratch, in_turn
from neural_ngram.model.hidden import layer_named
from neural_ngram.model.layer import differentiated
from neural_ngram.settings import ModelSettings, Settings, flatten

(CHOICES,) = (
    limits["choices"] for name, _, limits in flatten(Settings()) if name == "model.hidden"
)
KINDS = [kind for kind in CHOICES if kind != "none"]
OF_THE_MODEL = {"embedding", "output", "output_bias", "direct"}

pytestmark = pytest.mark.usefixtures("one_thread")
sizes = st.integers(1, 6)


def drawn(seed: int, *shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def parameters(kind: str, I: int, H: int, bias: bool = True) -> dict[str, Tensor]:  # noqa: E741
    chosen = ModelSettings(hidden=kind, hidden_width=H, hidden_bias=bias and kind in ACTIVATIONS)
    shapes = layer_named(kind).shapes(chosen, I)
    return {name: drawn(seed, *shape) for seed, (name, shape) in enumerate(shapes.items())}


def by_autograd(
    kind: str, x_RI: Tensor, weights: Mapping[str, Tensor], d_RH: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    """h, and the gradients of sum(d h) with respect to x and the parameters."""
    leaves = {"x": x_RI, **weights}
    leaves = {name: values.clone().requires_grad_() for name, values in leaves.items()}
    own = {name: leaf for name, leaf in leaves.items() if name != "x"}
    h_RH = layer_named(kind).forward(leaves["x"], own)
    gradients = torch.autograd.grad(h_RH, list(leaves.values()), d_RH)
    return h_RH.detach(), dict(zip(leaves, gradients, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["its own", "the tensor library's"])
@settings(max_examples=25)
@given(data=st.data())
def test_the_gradient_is_that_of_reverse_mode_differentiation(kind: str, way: str, data):
    R, I, H = (data.draw(sizes) for _ in range(3))  # noqa: E741
    wanted, adds = data.draw(st.booleans()), data.draw(st.booleans())
    layer, weights = layer_named(kind), parameters(kind, I, H, data.draw(st.booleans()))
    x_RI, d_RH = drawn(data.draw(st.integers(0, 999)), R, I), drawn(7, R, H)
    before = drawn(8, R, I)
    x = Node("x", x_RI, before.clone() if wanted else None, adds=adds)
    nodes = {n: Node(n, w, torch.full_like(w, math.nan)) for n, w in weights.items()}
    build = layer.passes if way == "its own" else None
    build = build or partial(differentiated, layer)
    with torch.inference_mode():
        passes = build(x, nodes, Scratch(Pool(torch.float64), R, H))
        for _ in range(2):
            if wanted:
                x.gradient.copy_(before)
            in_turn(passes.forward)()
            h_RH = passes.h.value.clone()
            passes.h.gradient.copy_(d_RH)
            in_turn(passes.backward)()
    expected_h, expected = by_autograd(kind, x_RI, weights, d_RH)
    close = partial(torch.testing.assert_close, rtol=1e-10, atol=1e-12)
    close(h_RH, expected_h)
    for name, node in nodes.items():
        close(node.gradient, expected[name])
    if wanted:
        close(x.gradient, expected["x"] + before if adds else expected["x"])


@pytest.mark.parametrize("kind", KINDS)
@given(R=sizes, I=sizes, H=sizes)
def test_a_layer_turns_any_width_into_the_hidden_width(kind: str, R: int, I: int, H: int):  # noqa: E741
    weights = parameters(kind, I, H)
    assert all(weight.dim() in (1, 2) for weight in weights.values())
    assert not weights.keys() & OF_THE_MODEL
    assert layer_named(kind).forward(drawn(1, R, I), weights).shape == (R, H)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10)
@given(R=sizes, I=sizes, H=sizes, bias=st.booleans())
def test_onnxruntime_computes_the_layer(kind: str, R: int, I: int, H: int, bias: bool):  # noqa: E741
    weights = {f"{n}_2": w.float() for n, w in parameters(kind, I, H, bias).items()}
    x_RI, nodes = drawn(3, R, I).float(), []

    def add(operator: str, *inputs: str) -> str:
        nodes.append(helper.make_node(operator, inputs, [f"value_{len(nodes)}"]))
        return nodes[-1].output[0]

    names = {name.removesuffix("_2"): name for name in weights}
    h = layer_named(kind).onnx(add, "x", names)
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [R, I])],
        [helper.make_tensor_value_info(h, TensorProto.FLOAT, [R, H])],
        [numpy_helper.from_array(w.numpy(), name) for name, w in weights.items()],
    )
    opset = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (found,) = session.run([h], {"x": x_RI.numpy()})
    expected = layer_named(kind).forward(x_RI, {n: weights[full] for n, full in names.items()})
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(R=sizes, I=sizes, H=sizes, bias=st.booleans())
def test_the_python_of_the_card_computes_the_layer(kind: str, R: int, I: int, H: int, bias: bool):  # noqa: E741
    weights, x_RI = parameters(kind, I, H, bias), drawn(3, R, I)
    lines = layer_named(kind).python({name: f'weights["{name}"]' for name in weights})
    arrays = {name: weight.numpy() for name, weight in weights.items()}
    known = {"np": np, "math": math, "weights": arrays, "h": x_RI.numpy()}
    exec("\n".join(lines), known)
    expected = layer_named(kind).forward(x_RI, weights).numpy()
    np.testing.assert_allclose(known["h"], expected, rtol=1e-10, atol=1e-12)


def test_an_error_in_a_call_says_in_which():
    weights = parameters("swiglu", 3, 4)
    nodes = {n: Node(n, w, torch.zeros_like(w)) for n, w in weights.items()}
    nodes["gate"] = nodes["gate"]._replace(gradient=torch.zeros(3, 4))  # float32 among float64
    scratch = Scratch(Pool(torch.float64), 2, 4)
    passes = layer_named("swiglu").passes(Node("x", drawn(1, 2, 3), None), nodes, scratch)
    in_turn(passes.forward)()
    with pytest.raises(RuntimeError) as caught:
        in_turn(passes.backward)()
    assert caught.value.__notes__ == ["in: gradient of gate"]
