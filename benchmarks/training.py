"""What a training step costs here and in the usual PyTorch loops, at the same loss.

    PYTHONPATH=src NEURAL_NGRAM_DATA=... python benchmarks/training.py [regime ...]

Both sides start from the same weights over the same windows and run in turns, a few steps each.
Without NEURAL_NGRAM_DATA the
names are made up, one letter drawn after another; the other texts are always made up: independent
tokens, whose frequencies fall off about as in the text of that vocabulary. Takes 3 minutes.
"""

import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from measure import Row, compare, compare_results
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from neural_ngram.evaluation.scoring import score
from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import Model, initialise
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import ModelSettings, OptimizerSettings, Settings, TrainingSettings
from neural_ngram.tokens.windows import Windows, build_stream, join
from neural_ngram.tracking.run import start_run
from neural_ngram.training.live import live
from neural_ngram.training.loop import Record, Run, products_of_float32, train


@dataclass(frozen=True, kw_only=True)
class Regime:
    """One workload: token v has the frequency (v + shift)^-1; turns of `steps` steps each.

    products: of our side, as `training.products`.
    """

    meaning: str
    vocabulary: int
    context: int
    model: ModelSettings
    optimizer: OptimizerSettings
    batch: int
    peer: str
    tokens: int
    shift: float = 3
    dtype: torch.dtype = torch.float32
    products: str = "full"
    turns: int = 15
    steps: int = 500


def tanh(embedding: int, hidden: int) -> ModelSettings:
    return ModelSettings(
        embedding_width=embedding,
        hidden="tanh",
        hidden_width=hidden,
        hidden_bias=True,
        output_bias=True,
    )


def adamw(rate: float) -> OptimizerSettings:
    return OptimizerSettings(learning_rate=rate, weight_decay=0.01, decay_biases=True)


NAMES = {"vocabulary": 27, "context": 3, "model": tanh(10, 200), "batch": 32, "tokens": 0}
BROWN = {
    **{"vocabulary": 16_383, "context": 4, "model": tanh(60, 100), "tokens": 200_000},
    **{"optimizer": adamw(0.001), "peer": "DataLoader"},
}
REGIMES = {
    "names_sgd": Regime(
        meaning="R1 names, SGD",
        optimizer=OptimizerSettings(name="sgd", learning_rate=0.1),
        peer="lecture",
        **NAMES,
    ),
    "names_adamw": Regime(
        meaning="R1 names, AdamW",
        optimizer=adamw(0.003),
        peer="DataLoader",
        **NAMES,
    ),
    "bigram": Regime(
        meaning="R2 bigram, V=1108",
        vocabulary=1108,
        context=1,
        model=ModelSettings(embedding_width=256, hidden="none", output_bias=True),
        optimizer=OptimizerSettings(name="adam", learning_rate=0.01),
        batch=4096,
        peer="DataLoader",
        tokens=291_000,
        steps=12,
    ),
    "brown_256": Regime(meaning="R3 V=16383, batch 256", batch=256, steps=12, turns=21, **BROWN),
    "brown_256_bf16": Regime(
        meaning="R3 V=16383, batch 256, bf16",
        batch=256,
        steps=12,
        products="bf16",
        turns=7,
        **BROWN,
    ),
    "brown_1024": Regime(meaning="R3 V=16383, batch 1024", batch=1024, steps=6, turns=7, **BROWN),
    "ch23": Regime(
        meaning="R4 SwiGLU, float64",
        vocabulary=266,
        context=2,
        model=ModelSettings(embedding_width=4, hidden_width=8),
        optimizer=adamw(0.01),
        batch=64,
        peer="DataLoader",
        tokens=1_838,
        dtype=torch.float64,
    ),
}


def documents(regime: Regime) -> list[NDArray[np.int64]]:
    """The token IDs of each document."""
    draws = np.random.default_rng(1)
    if regime.vocabulary != 27:
        weights = 1 / (np.arange(regime.vocabulary) + regime.shift)
        return [draws.choice(regime.vocabulary, regime.tokens, p=weights / weights.sum())]
    folder = os.environ.get("NEURAL_NGRAM_DATA")
    if folder is None:
        return [np.append(draws.choice(26, 6) + 1, 0) for _ in range(26_000)]
    names = (Path(folder) / "names" / "names.txt").read_text().split()
    order = np.random.default_rng(42).permutation(len(names))[:28_829]
    return [np.array([ord(letter) - 96 for letter in names[i]] + [0]) for i in order]


def build(texts: list[NDArray[np.int64]], regime: Regime) -> Windows:
    """The windows of a regime, padded for the names."""
    tokens, offsets = build_stream(
        texts,
        context_length=regime.context,
        vocabulary_size=regime.vocabulary,
        pad=0 if regime.vocabulary == 27 else None,
    )
    return Windows(tokens=tokens, offsets=offsets, context_length=regime.context)


class Network(nn.Module):
    """The same model, as it is usually written."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        weights, self.hidden = model.parameters, model.architecture.settings.hidden
        self.embedding = nn.Embedding.from_pretrained(weights["embedding"].clone(), freeze=False)
        self.linear = nn.ModuleDict()
        for name in ("gate", "up", "down", "hidden", "output"):
            if name in weights:
                fan_in, fan_out = weights[name].shape
                bias = weights.get(f"{name}_bias")
                layer = nn.Linear(fan_in, fan_out, bias=bias is not None, dtype=model.dtype)
                layer.weight.data.copy_(weights[name].t())
                if bias is not None:
                    layer.bias.data.copy_(bias)
                self.linear[name] = layer

    def forward(self, context_BC: Tensor) -> Tensor:
        """(B, V) logits."""
        layer, h = self.linear, self.embedding(context_BC).flatten(1)
        if self.hidden == "swiglu":
            h = layer["down"](functional.silu(layer["gate"](h)) * layer["up"](h))
        elif self.hidden == "tanh":
            h = torch.tanh(layer["hidden"](h))
        return layer["output"](h)


def loader_loop(
    model: Model, contexts_NC: Tensor, targets_N: Tensor, regime: Regime
) -> tuple[nn.Module, Iterator[float]]:
    """The textbook loop: DataLoader, Module, optimizer."""
    network = Network(model)
    data = DataLoader(TensorDataset(contexts_NC, targets_N), batch_size=regime.batch, shuffle=True)
    rule = torch.optim.Adam if regime.optimizer.name == "adam" else torch.optim.AdamW
    optimizer = rule(
        network.parameters(),
        lr=regime.optimizer.learning_rate,
        weight_decay=regime.optimizer.weight_decay,
    )

    def steps() -> Iterator[float]:
        while True:
            for context_BC, target_B in data:
                optimizer.zero_grad()
                loss = functional.cross_entropy(network(context_BC), target_B)
                loss.backward()
                optimizer.step()
                yield loss.item()

    return network, steps()


def lecture_loop(
    model: Model, contexts_NC: Tensor, targets_N: Tensor, regime: Regime
) -> tuple[nn.Module, Iterator[float]]:
    """The loop of the character-MLP lecture: drawn batches, plain matrices, SGD by hand."""
    network = Network(model)
    C = network.embedding.weight
    hidden, output = network.linear["hidden"], network.linear["output"]
    W1, b1 = nn.Parameter(hidden.weight.data.t().contiguous()), hidden.bias
    W2, b2 = nn.Parameter(output.weight.data.t().contiguous()), output.bias
    hidden.weight.data, output.weight.data = W1.data.t(), W2.data.t()
    parameters = [C, W1, b1, W2, b2]

    def steps() -> Iterator[float]:
        while True:
            ix = torch.randint(0, len(contexts_NC), (regime.batch,))
            emb = C[contexts_NC[ix]]
            h = torch.tanh(emb.view(emb.shape[0], -1) @ W1 + b1)
            loss = functional.cross_entropy(h @ W2 + b2, targets_N[ix])
            for p in parameters:
                p.grad = None
            loss.backward()
            for p in parameters:
                p.data += -regime.optimizer.learning_rate * p.grad
            yield loss.item()

    return network, steps()


def ours(model: Model, windows: Windows, regime: Regime) -> Iterator[float]:
    """The step of `train`, everything included."""
    with torch.inference_mode():
        run = Run(
            model,
            {"train": windows, "validation": windows},
            regime.optimizer,
            TrainingSettings(batch_size=regime.batch, max_steps=10**9),
        )
    for step in itertools.count(1):
        run.step(step)
        yield run.record.batch_losses[-1]


def seconds(steps: Iterator[float], count: int) -> float:
    """Mean time of so many steps."""
    start = time.perf_counter()
    for _ in range(count):
        next(steps)
    return (time.perf_counter() - start) / count


def full_loss(network: nn.Module, contexts_NC: Tensor, targets_N: Tensor) -> float:
    """Mean nats over the first windows, as the peer computes it."""
    with torch.no_grad():
        rows = slice(0, 8192)
        return float(functional.cross_entropy(network(contexts_NC[rows]), targets_N[rows]))


def run_training(regime: Regime, mine_threads: int, peer_threads: int) -> Row:
    """One step of both, each with its threads."""
    windows = build(documents(regime), regime)
    architecture = Architecture(
        vocabulary_size=regime.vocabulary, context_length=regime.context, settings=regime.model
    )
    model = initialise(architecture, SplitMix64(1), regime.dtype)
    contexts_NC = torch.from_numpy(windows.contexts().astype(np.int64))
    targets_N = torch.from_numpy(windows.targets().astype(np.int64))
    loop = lecture_loop if regime.peer == "lecture" else loader_loop
    network, peer = loop(model, contexts_NC, targets_N, regime)
    mine = ours(model, windows, regime)

    def turn(steps: Iterator[float], threads: int, products: str = "full") -> float:
        torch.set_num_threads(threads)
        with products_of_float32(products):
            return seconds(steps, regime.steps)

    def losses() -> str:
        nets = (Network(model), network)
        both = (full_loss(net, contexts_NC, targets_N) for net in nets)
        return "loss {:.3f} / {:.3f}".format(*both)

    def threads(count: int) -> str:
        return f"{count} thread{'s'[: count - 1]}"

    mine_turn = torch.inference_mode()(lambda: turn(mine, mine_threads, regime.products))
    mine_turn(), turn(peer, peer_threads)
    names = (
        f"{regime.meaning}, {threads(mine_threads)}",
        f"{regime.peer} loop, {threads(peer_threads)}",
    )
    return compare(names, mine_turn, lambda: turn(peer, peer_threads), regime.turns, losses)


def run_scoring() -> Row:
    """Exact losses of the names: distinct contexts against every row."""
    torch.set_num_threads(1)
    regime = REGIMES["names_sgd"]
    texts = documents(regime)
    parts = [build(texts[:25_626], regime), build(texts[25_626:], regime)]
    together = join(parts)
    architecture = Architecture(vocabulary_size=27, context_length=3, settings=regime.model)
    model = initialise(architecture, SplitMix64(1), torch.float32)
    network = Network(model)
    contexts_NC = torch.from_numpy(together.contexts().astype(np.int64))
    targets_N = torch.from_numpy(together.targets().astype(np.int64))

    def every_row() -> float:
        with torch.no_grad():
            return sum(
                float(functional.cross_entropy(network(x), y, reduction="sum"))
                for x, y in zip(contexts_NC.split(4096), targets_N.split(4096), strict=True)
            )

    def distinct() -> float:
        return score(model, together, batch_size=4096).summed_nats

    names = ("exact loss of all names", "every row")
    return compare_results(names, distinct, every_row, 15, "nats {:.1f} / {:.1f}")


def run_live() -> Row:
    """Training of the names, its curves on their way to MLflow in a fresh store, and without."""
    torch.set_num_threads(1)
    regime = REGIMES["names_sgd"]
    windows = build(documents(regime), regime)
    parts = {"train": windows, "validation": build(documents(regime)[:100], regime)}
    settings = TrainingSettings(batch_size=regime.batch, max_steps=60_000, evaluate_every=60_000)
    chosen = Settings(optimizer=regime.optimizer, training=settings)
    architecture = Architecture(vocabulary_size=27, context_length=3, settings=regime.model)
    reached: list[float] = []

    def step(watch: Callable[[Record], None] = lambda _: None) -> float:
        model = initialise(architecture, SplitMix64(1), regime.dtype)
        start = time.perf_counter()
        record = train(model, parts, regime.optimizer, settings, watch)
        reached.append(record.batch_losses[-1])
        return (time.perf_counter() - start) / settings.max_steps

    def watched() -> float:
        with (
            start_run("cost of watching", {}, live=True) as tracked,
            live(tracked, chosen, regime.batch) as watch,
        ):
            return step(watch)

    names = ("R1 names, SGD, live in MLflow", "not logged")
    with TemporaryDirectory() as folder:
        os.environ["DVC_ROOT"] = folder
        try:
            return compare(names, watched, step, 5, lambda: "loss {:.3f} / {:.3f}".format(*reached))
        finally:
            del os.environ["DVC_ROOT"]


def rows(names: Sequence[str] = ()) -> Iterator[Row]:
    """All comparisons, or some; larger models with one thread, with two, and with two each."""
    for name in names or [*REGIMES, "scoring", "live"]:
        if name in ("scoring", "live"):
            yield run_scoring() if name == "scoring" else run_live()
            continue
        regime = REGIMES[name]
        for threads in [(1, 1), (2, 1), (2, 2)][: None if regime.batch >= 256 else 1]:
            yield run_training(regime, *threads)


if __name__ == "__main__":
    for row in rows(sys.argv[1:]):
        print(row, flush=True)
