"""The reference: the tensor library differentiates the model."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from neural_ngram.model.network import Model, logits
from neural_ngram.training.gradients.batch import Batch

__all__ = ["Autograd"]


class Autograd:
    """Mean loss in nats, its gradient by reverse-mode automatic differentiation."""

    def __init__(self, model: Model, gradient: Mapping[str, Tensor], *, frozen: bool) -> None:
        leaves = {name: weights.detach() for name, weights in model.parameters.items()}
        self.gradient = {n: g for n, g in gradient.items() if not (frozen and n == "embedding")}
        for name, buffer in self.gradient.items():
            leaves[name].requires_grad_().grad = buffer
        self.model = Model(model.architecture, leaves, model.flat)

    def __call__(self, batch: Batch, masks: Sequence[Tensor] = ()) -> float:
        """The loss; the gradient buffers are overwritten."""
        for buffer in self.gradient.values():
            buffer.zero_()
        context_RC = batch.tokens.view(-1, self.model.architecture.context_length)
        with torch.enable_grad():
            log_p_RV = logits(self.model, context_RC, masks).log_softmax(dim=1)
            loss = -log_p_RV.flatten()[batch.flat_targets].mean()
        torch.autograd.backward(loss)
        return float(loss.detach())
