import itertools
import math

import numpy as np
import pytest
import torch
from builders import fresh_model, windows_over

from neural_ngram.errors import TrainingError
from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import Model, logits, views
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import ModelSettings, OptimizerSettings, TrainingSettings
from neural_ngram.tokens.windows import Windows
from neural_ngram.training import loop
from neural_ngram.training.batches import Batches, dropout_masks, sampled_rows, shares_contexts
from neural_ngram.training.evidence import losses
from neural_ngram.training.gradients.closed_form import ClosedForm
from neural_ngram.training.loop import Run, train
from neural_ngram.training.optimizer import Optimizer, learning_rates

TANH = {"hidden": "tanh", "hidden_bias": True, "output_bias": True}


pytestmark = pytest.mark.usefixtures("one_thread")


def windows(documents: list[list[int]], vocabulary: int, context_length: int = 2) -> Windows:
    return windows_over(documents, context_length, vocabulary, pad=0)


def text(tokens: int = 200, vocabulary: int = 9, seed: int = 0) -> Windows:
    weights = 1 / np.arange(1, vocabulary + 1)
    ids = np.random.default_rng(seed).choice(vocabulary, tokens, p=weights / weights.sum())
    return windows([ids.tolist()], vocabulary)


def fresh(vocabulary: int = 9, dtype: torch.dtype = torch.float64, **settings) -> Model:
    return fresh_model(
        vocabulary, dtype=dtype, **{"embedding_width": 4, "hidden_width": 5, **settings}
    )


def fit(model: Model, optimizer: OptimizerSettings | None = None, **settings):
    chosen = TrainingSettings(**{"batch_size": 16, "max_steps": 30, **settings})
    parts = {"train": text(), "validation": text(seed=1)}
    return train(model, parts, optimizer or OptimizerSettings(), chosen)


def test_a_context_never_seen_takes_its_follower_from_similar_words():
    """(a, dog) and (a, bush) never occur; dogs and bushes were seen behind another word."""
    words = ["<s>", "the", "a", "one", "cat", "dog", "tree", "bush", "ran", "grew"]
    number = {word: place for place, word in enumerate(words)}
    lines = [
        f"{article} {noun} {verb}"
        for article in ("the", "a", "one")
        for noun, verb in (("cat", "ran"), ("dog", "ran"), ("tree", "grew"), ("bush", "grew"))
        if (article, noun) not in {("a", "dog"), ("a", "bush")}
    ]
    seen = windows([[number[word] for word in line.split()] for line in lines], len(words))
    model = fresh(len(words), hidden="tanh", hidden_width=12)
    chosen = TrainingSettings(batch_size=30, max_steps=300, evaluate_every=300)
    train(model, {"train": seen, "validation": seen}, OptimizerSettings(learning_rate=0.02), chosen)
    for noun, verb in (("dog", "ran"), ("bush", "grew")):
        context = [number["a"], number[noun]]
        counted = [
            t for c, t in zip(seen.contexts(), seen.targets(), strict=True) if [*c] == context
        ]
        likely = int(logits(model, torch.tensor([context])).argmax())
        assert len(counted) == 0
        assert words[likely] == verb


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw"])
@pytest.mark.parametrize("decay_biases", [True, False])
def test_steps_equal_those_of_the_tensor_library(name, decay_biases):
    chosen = OptimizerSettings(
        name=name, learning_rate=0.02, weight_decay=0.1, decay_biases=decay_biases
    )
    model, gradient = fresh(**TANH), torch.zeros_like(fresh(**TANH).flat)
    ours = Optimizer(model, gradient, chosen, frozen=False)
    theirs = {name: weights.clone() for name, weights in model.parameters.items()}
    groups = [
        {"params": [w], "weight_decay": 0.1 if decay_biases or w.dim() == 2 else 0.0}
        for w in theirs.values()
    ]
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[name]
    reference = kind(groups, lr=0.02)
    for step in range(20):
        for name_, part in views(model.architecture, gradient).items():
            part.copy_(torch.sin(torch.arange(part.numel()) * (step + 1.0)).view(part.shape))
            theirs[name_].grad = part.clone()
        ours.step(0.02)
        reference.step()
    for name_, weights in model.parameters.items():
        torch.testing.assert_close(weights, theirs[name_], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "settings", [{}, {**TANH, "hidden_layers": 2, "direct": True}, {**TANH, "dropout": 0.3}]
)
def test_both_ways_to_gradients_train_alike(settings):
    records = [fit(fresh(**settings), gradients=way) for way in ("closed_form", "autograd")]
    np.testing.assert_allclose(records[0].batch_losses, records[1].batch_losses, rtol=1e-9)
    assert records[0].evaluations[-1].train_loss_nats == pytest.approx(
        records[1].evaluations[-1].train_loss_nats, rel=1e-9
    )


def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not():
    models = [fresh(dtype=torch.float32, **TANH, dropout=0.2) for _ in range(3)]
    losses = [fit(m, seed=s).batch_losses for m, s in zip(models, (1, 1, 2), strict=True)]
    assert losses[0] == losses[1] != losses[2]
    assert torch.equal(models[0].flat, models[1].flat)


def test_a_batch_with_shared_contexts_has_the_same_gradient():
    model, parts = fresh(4), text(500, 4)
    chosen = TrainingSettings(batch_size=100)
    single, shared = Batches(model, parts, chosen), Batches(model, parts, chosen)
    assert not single.shared
    shared.shared = True
    gradients = [torch.zeros_like(model.flat) for _ in range(2)]
    paths = [ClosedForm(model, views(model.architecture, g), frozen=False) for g in gradients]
    for one, other in itertools.islice(zip(single, shared, strict=True), 7):
        assert other.multiplicity is not None
        assert len(other.tokens) < len(one.tokens)
        assert paths[0](one) == pytest.approx(paths[1](other), rel=1e-12)
        torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-10, atol=1e-14)


def test_contexts_are_shared_when_that_saves_half_the_rows_and_real_work():
    def shared(vocabulary: int, batch_size: int, **settings) -> bool:
        chosen = ModelSettings(**{"embedding_width": 64, "hidden_width": 64, **settings})
        shape = Architecture(vocabulary_size=vocabulary, context_length=2, settings=chosen)
        return shares_contexts(shape, text(3000, vocabulary), batch_size)

    assert shared(4, 1024)
    assert not shared(4, 1024, dropout=0.1)
    assert not shared(4, 64)
    assert not shared(300, 1024)


def test_every_epoch_holds_every_window_once():
    parts = text(101)
    for batches in (
        Batches(fresh(), parts, TrainingSettings(batch_size=16, sampling=sampling))
        for sampling in ("shuffle", "sequential")
    ):
        epoch = list(itertools.islice(batches, 7))
        assert [len(batch.flat_targets) for batch in epoch] == [16] * 6 + [5]
        tokens = torch.cat([batch.tokens for batch in epoch]).view(-1, 2).tolist()
        assert sorted(tokens) == sorted(parts.contexts().tolist())


def test_shuffle_is_the_permutation_of_the_seed_and_sequential_is_text_order():
    rows = {
        sampling: next(sampled_rows(50, TrainingSettings(sampling=sampling), SplitMix64(4)))
        for sampling in ("shuffle", "sequential")
    }
    assert rows["shuffle"].tolist() == SplitMix64(4).permutation(50).tolist()
    assert rows["sequential"].tolist() == list(range(50))


def test_a_long_permutation_is_fisher_yates_one_swap_at_a_time():
    size, draws = 40_000, SplitMix64(9)
    order = list(range(size))
    for last in range(size - 1, 0, -1):
        other = int(draws.draw(1)[0]) % (last + 1)  # rejections have a chance of 2^-40
        order[last], order[other] = order[other], order[last]
    assert SplitMix64(9).permutation(size).tolist() == order


def test_replacement_draws_each_window_equally_often_and_only_full_batches():
    chosen = TrainingSettings(sampling="replacement", batch_size=300)
    rows = next(sampled_rows(10, chosen, SplitMix64(4)))
    assert len(rows) % 300 == 0
    np.testing.assert_allclose(np.bincount(rows) / len(rows), 0.1, atol=0.005)


def test_blocks_of_a_long_text_lose_no_window(monkeypatch):
    monkeypatch.setattr("neural_ngram.training.batches.BLOCK", 40)
    parts, chosen = text(101), TrainingSettings(batch_size=16, sampling="sequential")
    epoch = list(itertools.islice(Batches(fresh(), parts, chosen), 7))
    tokens = torch.cat([batch.tokens for batch in epoch]).view(-1, 2).tolist()
    assert tokens == parts.contexts().tolist()


def test_dropout_masks_keep_the_mean_and_follow_the_seed():
    shape = fresh(**TANH, dropout=0.25, hidden_layers=2, hidden_width=500).architecture
    first, again = (dropout_masks(shape, torch.float64, SplitMix64(s), 200) for s in (3, 3))
    assert len(first) == 2
    assert first[0].unique().tolist() == [0.0, 1 / 0.75]
    assert float(first[0].mean()) == pytest.approx(1, abs=0.01)
    assert torch.equal(first[1], again[1])
    assert not torch.equal(first[0], first[1])


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [0.8, 0.8, 0.8, 0.8]),
        ("step", [0.8, 0.8, 0.2, 0.2]),
        ("cosine", [0.8, 0.4 * (1 + math.sqrt(0.5)), 0.4, 0.4 * (1 - math.sqrt(0.5))]),
        ("inverse", [0.8, 0.8 / 1.5, 0.4, 0.8 / 2.5]),
    ],
)
def test_learning_rates_follow_their_schedule(schedule, expected):
    chosen = OptimizerSettings(
        learning_rate=0.8, schedule=schedule, schedule_factor=0.25, schedule_decay=0.5
    )
    assert list(learning_rates(chosen, 4)) == pytest.approx(expected)


def test_objectives_stand_at_the_start_at_intervals_and_at_the_end():
    record = fit(fresh(), max_steps=25, evaluate_every=10)
    assert [evaluation.step for evaluation in record.evaluations] == [0, 10, 20, 25]
    assert len(record.batch_losses) == record.kept_step == 25
    assert record.evaluations[-1].train_loss_nats < record.evaluations[0].train_loss_nats


def test_the_watcher_is_called_around_objectives_and_once_per_second(monkeypatch):
    seen, seconds = [], itertools.count(step=0.004)  # 250 steps per second by this clock
    monkeypatch.setattr(loop, "monotonic", lambda: next(seconds))
    parts, chosen = text(), TrainingSettings(batch_size=8, max_steps=700, evaluate_every=600)
    train(
        fresh(),
        {"train": parts, "validation": parts},
        OptimizerSettings(),
        chosen,
        lambda record: seen.append((len(record.batch_losses), len(record.evaluations))),
    )
    at_objectives = [(0, 0), (0, 1), (600, 1), (600, 2), (700, 2), (700, 3)]
    assert [each for each in seen if each in at_objectives] == at_objectives
    between = [step for step, taken in seen if (step, taken) not in at_objectives]
    assert between == [250, 500]


def test_patience_stops_early_and_keeps_the_best_weights():
    """Beyond the frequencies of the tokens the text is random: fitting it makes others worse."""
    fast = OptimizerSettings(learning_rate=0.05)
    patient, short = fresh(), fresh()
    record = fit(patient, fast, max_steps=400, evaluate_every=5, patience=3)
    losses = [evaluation.validation_loss_nats for evaluation in record.evaluations]
    best = losses.index(min(losses))
    assert record.kept_step == best * 5 > 0
    assert len(losses) == best + 4
    fit(short, fast, max_steps=record.kept_step, evaluate_every=400)
    assert torch.equal(patient.flat, short.flat)


def test_the_average_follows_the_weights():
    slow = OptimizerSettings(name="sgd", learning_rate=0.5)
    paths = []
    for steps in range(1, 5):
        model = fresh()
        fit(model, slow, max_steps=steps)
        paths.append(model.flat.clone())
    average = fresh().flat.clone()
    for step, weights in enumerate(paths, start=1):
        average.lerp_(weights, 1 - (1 + step) / (10 + step))
    averaged = fresh()
    fit(averaged, slow, max_steps=4, averaging="ema")
    torch.testing.assert_close(averaged.flat, average)


def test_a_frozen_embedding_stays_and_the_rest_learns():
    for gradients in ("closed_form", "autograd"):
        model, before = fresh(freeze_embedding=True), fresh()
        record = fit(model, OptimizerSettings(weight_decay=0.1), gradients=gradients)
        assert torch.equal(model.parameters["embedding"], before.parameters["embedding"])
        assert not torch.equal(model.parameters["output"], before.parameters["output"])
        assert record.evaluations[-1].train_loss_nats < record.evaluations[0].train_loss_nats


def test_a_trained_model_can_be_differentiated():
    model = fresh()
    fit(model)
    leaf = model.flat.clone().requires_grad_()
    again = Model(model.architecture, views(model.architecture, leaf), leaf)
    logits(again, torch.tensor([[1, 2]])).sum().backward()
    assert leaf.grad is not None


def test_a_rounded_product_trains_to_about_the_same_loss():
    full, rounded = (fit(fresh(dtype=torch.float32), products=p) for p in ("full", "bf16"))
    assert torch.get_float32_matmul_precision() == "highest"
    np.testing.assert_allclose(full.batch_losses, rounded.batch_losses, rtol=0.02)


def test_training_stops_at_the_first_loss_that_is_not_finite():
    model = fresh()
    with pytest.raises(TrainingError, match=r"step \d+ is (nan|inf).*learning_rate \(now 1e\+200"):
        fit(model, OptimizerSettings(name="sgd", learning_rate=1e200))


def test_a_gradient_that_is_not_finite_is_named_before_the_update():
    parts = text()
    run = Run(
        fresh(), {"train": parts, "validation": parts}, OptimizerSettings(), TrainingSettings()
    )
    before = run.model.flat.clone()
    honest = run.gradients

    def broken(batch, masks):
        loss = honest(batch, masks)
        views(run.model.architecture, run.gradient)["up"][0, 0] = math.inf
        return loss

    run.gradients = broken
    with pytest.raises(TrainingError, match="the gradient of up in step 7 is inf"):
        run.step(7)
    assert torch.equal(run.model.flat, before)


def test_a_large_finite_gradient_is_no_error():
    parts = text()
    run = Run(
        fresh(dtype=torch.float32),
        {"train": parts, "validation": parts},
        OptimizerSettings(),
        TrainingSettings(),
    )
    run.gradients = lambda batch, masks: float(run.gradient.fill_(1e30)[0] * 0 + 1)
    run.step(1)
    assert run.record.batch_losses == [1.0]


def test_the_losses_that_a_training_is_judged_by_are_those_of_the_weights_it_keeps():
    fast = OptimizerSettings(learning_rate=0.05)
    record = fit(fresh(), fast, max_steps=400, evaluate_every=5, patience=3)
    best = min(evaluation.validation_loss_nats for evaluation in record.evaluations)
    assert record.kept.validation_loss_nats == best < record.evaluations[-1].validation_loss_nats
    assert losses(record)["validation_improvement_nats"] == pytest.approx(
        record.evaluations[0].validation_loss_nats - best
    )
