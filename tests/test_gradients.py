import math
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from neural_ngram.choices.activations import ACTIVATIONS, Activation
from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import Model, initialise, logits, restore, views
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import LAYERS, ModelSettings
from neural_ngram.training.gradients import closed_form
from neural_ngram.training.gradients.autograd import Autograd
from neural_ngram.training.gradients.batch import Batch
from neural_ngram.training.gradients.closed_form import ClosedForm

HIDDEN = [*LAYERS, *ACTIVATIONS, "softsign", "none"]


@pytest.fixture(autouse=True, scope="module")
def softsign() -> Iterator[None]:
    """An activation without kernels of its own: the tensor library differentiates it."""
    added = Activation(lambda z: z / (1 + z.abs()), python="z / (1 + np.abs(z))", onnx="Softsign")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ACTIVATIONS, "softsign", added)
        yield


pytestmark = pytest.mark.usefixtures("one_thread")


def both(model: Model, batch: Batch, masks: list[Tensor], frozen: bool = False):
    """(loss, flat gradient) of the closed form and of the reference."""
    results = []
    for kind in (ClosedForm, Autograd):
        flat = torch.zeros_like(model.flat)
        path = kind(model, views(model.architecture, flat), frozen=frozen)
        path(batch, masks)
        results.append((path(batch, masks), flat))
    return results


@st.composite
def models(draw) -> Model:
    hidden = draw(st.sampled_from(HIDDEN))
    tied, layered = draw(st.booleans()), hidden != "none"
    D = draw(st.integers(1, 5))
    chosen = ModelSettings(
        embedding_width=D,
        hidden=hidden,
        hidden_width=D if tied else draw(st.integers(1, 6)),
        hidden_layers=draw(st.integers(1, 3)),
        hidden_bias=hidden in ACTIVATIONS and draw(st.booleans()),
        dropout=draw(st.sampled_from([0.0, 0.4])) if layered else 0.0,
        direct=layered and draw(st.booleans()),
        output_bias=draw(st.booleans()),
        tied_output=tied,
        initialisation="normal",
        initialisation_scale=0.7,
    )
    shape = Architecture(
        vocabulary_size=draw(st.integers(2, 9)),
        context_length=1 if tied and not layered else draw(st.integers(1, 3)),
        settings=chosen,
    )
    model = initialise(shape, SplitMix64(draw(st.integers(0, 999))), torch.float64)
    generator = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    for weights in model.parameters.values():
        if weights.dim() == 1:
            weights.copy_(torch.randn(weights.shape, generator=generator, dtype=torch.float64))
    return model


@st.composite
def batches(draw, model: Model) -> tuple[Batch, list[Tensor]]:
    V, C = model.architecture.vocabulary_size, model.architecture.context_length
    rows = draw(st.integers(1, 7))
    multiplicity = torch.tensor(
        draw(st.lists(st.integers(1, 3), min_size=rows, max_size=rows))
        if draw(st.booleans())
        else [1] * rows
    )
    generator = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    row = torch.repeat_interleave(torch.arange(rows), multiplicity)
    batch = Batch(
        torch.randint(0, V, (rows * C,), generator=generator),
        row * V + torch.randint(0, V, (len(row),), generator=generator),
        multiplicity[:, None].double() if int(multiplicity.max()) > 1 else None,
    )
    chosen = model.architecture.settings
    shape = rows, chosen.hidden_width
    masks = [
        (torch.rand(shape, generator=generator) > 0.4).double() / 0.6
        for _ in range(chosen.hidden_layers if chosen.dropout else 0)
    ]
    return batch, masks


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_the_closed_form_equals_reverse_mode_differentiation(data):
    model = data.draw(models())
    batch, masks = data.draw(batches(model))
    frozen = model.architecture.settings.hidden != "none" and data.draw(st.booleans())
    V = model.architecture.vocabulary_size
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(closed_form, "MOST_LOGITS", data.draw(st.sampled_from([1, 2 * V, 2**22])))
        patch.setattr(closed_form, "LEAST_BYTES", data.draw(st.sampled_from([1, 2048])))
        patch.setattr(closed_form, "LEAST_RATIO", 0)
        (loss, gradient), (expected_loss, expected) = both(model, batch, masks, frozen)
    assert loss == pytest.approx(expected_loss, rel=1e-10)
    scale = float(expected.abs().max())
    torch.testing.assert_close(gradient, expected, rtol=1e-10, atol=1e-10 * scale + 1e-15)


@pytest.mark.parametrize("hidden", HIDDEN)
def test_the_reference_agrees_with_finite_differences(hidden):
    chosen = ModelSettings(
        embedding_width=3, hidden=hidden, hidden_width=4, direct=hidden != "none", output_bias=True
    )
    shape = Architecture(vocabulary_size=5, context_length=2, settings=chosen)
    model = initialise(shape, SplitMix64(3), torch.float64)
    context, target = torch.tensor([[0, 1], [3, 3], [4, 2]]), torch.tensor([1, 0, 4])

    def loss(*weights: Tensor) -> Tensor:
        named = dict(zip(model.parameters, weights, strict=True))
        return torch.nn.functional.cross_entropy(
            logits(Model(shape, named, model.flat), context), target
        )

    leaves = [weights.detach().requires_grad_() for weights in model.parameters.values()]
    assert torch.autograd.gradcheck(loss, leaves)


def test_textbook_softmax_loss_and_gradient():
    """Logits 2.0, 1.0, 0.1: probabilities 0.659, 0.242, 0.099."""
    chosen = ModelSettings(embedding_width=1, hidden="none", output_bias=True)
    shape = Architecture(vocabulary_size=3, context_length=1, settings=chosen)
    arrays = {
        "embedding": torch.ones(3, 1).double().numpy(),
        "output": torch.tensor([[2.0, 1.0, 0.1]]).double().numpy(),
        "output_bias": torch.zeros(3).double().numpy(),
    }
    model = restore(shape, arrays)
    for loss, flat in both(model, Batch(torch.tensor([0]), torch.tensor([0])), []):
        gradient = views(shape, flat)["output_bias"]
        assert loss == pytest.approx(0.417, abs=5e-4)
        assert gradient.tolist() == pytest.approx([-0.341, 0.242, 0.099], abs=5e-4)
    p = logits(model, torch.tensor([[0]])).softmax(dim=1)[0]
    assert p.tolist() == pytest.approx([0.659, 0.242, 0.099], abs=5e-4)


@pytest.mark.parametrize("least_bytes", [1, 2048])
@pytest.mark.parametrize(("dtype", "gap"), [(torch.float32, 300.0), (torch.float64, 2000.0)])
def test_a_probability_below_the_smallest_number_still_has_its_loss(
    dtype, gap, least_bytes, monkeypatch
):
    monkeypatch.setattr(closed_form, "LEAST_BYTES", least_bytes)
    monkeypatch.setattr(closed_form, "LEAST_RATIO", 0)
    chosen = ModelSettings(embedding_width=1, hidden="none", output_bias=True)
    shape = Architecture(vocabulary_size=2, context_length=1, settings=chosen)
    model = initialise(shape, SplitMix64(0), dtype)
    model.flat.zero_()
    model.parameters["output_bias"][0] = gap
    (loss, gradient), (expected_loss, expected) = both(
        model, Batch(torch.tensor([0]), torch.tensor([1])), []
    )
    assert loss == expected_loss == gap
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("shift", [-2000.0, -500.0, -80.0, -40.0, 40.0, 80.0, 500.0, 2000.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_logits_may_lie_anywhere(dtype, shift, monkeypatch):
    """The exponentials of some of them are infinite, or zero."""
    monkeypatch.setattr(closed_form, "LEAST_BYTES", 1)
    monkeypatch.setattr(closed_form, "LEAST_RATIO", 0)
    chosen = ModelSettings(embedding_width=2, hidden="tanh", hidden_width=3, output_bias=True)
    shape = Architecture(vocabulary_size=4, context_length=1, settings=chosen)
    model = initialise(shape, SplitMix64(0), dtype)
    model.parameters["output_bias"].copy_(torch.tensor([0.0, 1.0, 2.0, 3.0]) + shift)
    batch = Batch(torch.tensor([0, 1, 3]), torch.tensor([0, 4 + 2, 8 + 3]))
    (loss, gradient), (expected_loss, expected) = both(model, batch, [])
    eps = torch.finfo(dtype).eps * max(1, abs(shift))
    assert loss == pytest.approx(expected_loss, rel=10 * eps)
    torch.testing.assert_close(gradient, expected, rtol=0, atol=10 * eps)


def test_logits_never_exist_for_more_rows_than_allowed():
    chosen = ModelSettings(embedding_width=2, hidden="none")
    shape = Architecture(vocabulary_size=2**15, context_length=1, settings=chosen)
    model = initialise(shape, SplitMix64(0), torch.float32)
    path = ClosedForm(model, views(shape, torch.zeros_like(model.flat)), frozen=False)
    rows = torch.arange(1000)
    loss = path(Batch(rows, rows * 2**15 + 7))
    assert loss == pytest.approx(math.log(2**15), rel=1e-3)
    assert path.memory.memory["logits"].numel() == 2**22


@pytest.mark.parametrize("hidden", ["tanh", "gelu", "swiglu", "none"])
def test_batches_of_changing_size_share_memory_and_leave_no_trace(hidden: str):
    chosen = ModelSettings(embedding_width=3, hidden=hidden, hidden_width=4, output_bias=True)
    shape = Architecture(vocabulary_size=5, context_length=2, settings=chosen)
    model = initialise(shape, SplitMix64(2), torch.float64)
    model.parameters["output_bias"].copy_(torch.arange(5))
    gradient = torch.zeros_like(model.flat)
    kept = ClosedForm(model, views(shape, gradient), frozen=False)
    for rows in (7, 2, 7, 2, 3, 8, 7, 1, 2):
        generator = torch.Generator().manual_seed(rows)
        tokens = torch.randint(0, 5, (rows * 2,), generator=generator)
        batch = Batch(tokens, torch.arange(rows) * 5 + rows % 5)
        (expected, fresh), _ = both(model, batch, [])
        assert kept(batch) == expected
        assert torch.equal(gradient, fresh)


@pytest.mark.parametrize("hidden", ["swiglu", "tanh"])
def test_without_masks_nothing_is_dropped(hidden: str):
    chosen = ModelSettings(embedding_width=3, hidden=hidden, hidden_width=4, dropout=0.5)
    shape = Architecture(vocabulary_size=5, context_length=2, settings=chosen)
    batch = Batch(torch.tensor([0, 1, 2, 3]), torch.tensor([3, 5 + 1]))
    model = initialise(shape, SplitMix64(2), torch.float64)
    (loss, gradient), (expected, by_reference) = both(model, batch, [])
    assert loss == pytest.approx(expected, rel=1e-12)
    torch.testing.assert_close(gradient, by_reference, rtol=1e-10, atol=1e-14)
