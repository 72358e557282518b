"""A model as an ONNX graph, from contexts to logits, in float32.

Dimension letters: B batch, C context length, D embedding width, V vocabulary, K = C * D, W the
width that the output layer reads.

    context (B, C) int64  ->  logits (B, V) float32, for any B
"""

from typing import Any

import numpy as np
from onnx import (
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    checker,
    helper,
    numpy_helper,
)

from neural_ngram.model.hidden import hidden_names, layer_named
from neural_ngram.model.network import Model

__all__ = ["onnx_graph"]

OPSET, IR_VERSION = 20, 10  # the first opset with Gelu, and the IR of its time


def onnx_graph(model: Model) -> ModelProto:
    """The model, checked by ONNX itself."""
    architecture = model.architecture
    nodes = _nodes(model)
    weights = {name: w.detach().float().numpy() for name, w in model.parameters.items()}
    constants = weights | {"row": np.array([-1, architecture.input_width])}
    graph = helper.make_graph(
        nodes,
        "neural n-gram",
        [_info("context", TensorProto.INT64, architecture.context_length)],
        [_info("logits", TensorProto.FLOAT, architecture.vocabulary_size)],
        [numpy_helper.from_array(values, name) for name, values in constants.items()],
    )
    made = helper.make_model(
        graph,
        producer_name="neural-ngram",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    checker.check_model(made, full_check=True)
    return made


def _info(name: str, kind: int, width: int) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, ["batch", width])


def _nodes(model: Model) -> list[NodeProto]:
    settings, nodes = model.architecture.settings, list[NodeProto]()

    def add(operator: str, *inputs: str, **attributes: Any) -> str:
        output = f"{operator}_{len(nodes)}"
        nodes.append(helper.make_node(operator, inputs, [output], name=output, **attributes))
        return output

    def affine(x: str, weight: str, bias: str) -> str:
        product = add("MatMul", x, weight)
        return add("Add", product, bias) if bias in model.parameters else product

    x_BK = add("Reshape", add("Gather", "embedding", "context"), "row")
    h_BW = x_BK
    for names in hidden_names(settings):
        h_BW = layer_named(settings.hidden).onnx(add, h_BW, names)
    output = add("Transpose", "embedding", perm=[1, 0]) if settings.tied_output else "output"
    logits = affine(h_BW, output, "output_bias")
    if settings.direct:
        logits = add("Add", logits, add("MatMul", x_BK, "direct"))
    nodes[-1].output[0] = "logits"
    return nodes
