"""How cost grows: with the number of windows, the vocabulary and the context length."""

import time
from collections.abc import Iterator
from typing import NamedTuple

import altair as alt
import numpy as np
import pandas as pd
import torch
from measure import clock
from ngram import zipf_tokens

from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import initialise
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import ModelSettings, OptimizerSettings, TrainingSettings
from neural_ngram.tokens.windows import Windows, build_stream
from neural_ngram.training.loop import Run


class Point(NamedTuple):
    """What was varied, its value, what was measured, its milliseconds."""

    varied: str
    value: int
    measured: str
    ms: float


def step_ms(vocabulary: int, context: int, steps: int = 10) -> float:
    """The median step of a tanh model (D = 32, H = 64), 256 windows at once."""
    draws = np.random.default_rng(0).integers(0, vocabulary, 20_000)
    tokens, offsets = build_stream(
        [draws], context_length=context, vocabulary_size=vocabulary, pad=None
    )
    windows = Windows(tokens=tokens, offsets=offsets, context_length=context)
    shape = Architecture(
        vocabulary_size=vocabulary,
        context_length=context,
        settings=ModelSettings(hidden="tanh", hidden_width=64, embedding_width=32),
    )
    model = initialise(shape, SplitMix64(1), torch.float32)
    training = TrainingSettings(batch_size=256, max_steps=10**9)
    with torch.inference_mode():
        parts = {"train": windows, "validation": windows}
        run, times = Run(model, parts, OptimizerSettings(), training), []
        for step in range(1, steps + 3):
            start = time.perf_counter()
            run.step(step)
            times.append(time.perf_counter() - start)
    return 1e3 * float(np.median(times[2:]))


def windows_ms(count: int) -> float:
    """From encoded documents of 1,000 tokens to contexts and targets of every window."""
    documents = np.split(zipf_tokens(count, 10_000).astype(np.int64), count // 1000)

    def work() -> None:
        tokens, offsets = build_stream(documents, context_length=4, vocabulary_size=10_000, pad=0)
        windows = Windows(tokens=tokens, offsets=offsets, context_length=4)
        for start in range(0, len(windows), 2**16):
            windows.contexts(slice(start, start + 2**16))
            windows.targets(slice(start, start + 2**16))

    return 1e3 * clock(work)


def points() -> Iterator[Point]:
    """All measurements, one thread."""
    torch.set_num_threads(1)
    for count in (10**4, 10**5, 10**6, 10**7):
        yield Point("windows", count, "building all windows, C = 4", windows_ms(count))
    for vocabulary in (10**2, 10**3, 10**4, 10**5):
        ms = step_ms(vocabulary, 4)
        yield Point("vocabulary", vocabulary, "a step of 256 windows, C = 4", ms)
    for context in (1, 2, 4, 8, 16, 32):
        yield Point("context", context, "a step of 256 windows, V = 1,000", step_ms(1000, context))


def picture(measured: list[Point]) -> alt.HConcatChart:
    """A panel for each thing varied; both axes logarithmic."""
    table, logarithmic = pd.DataFrame(measured), alt.Scale(type="log")
    short = alt.Axis(format="~s", tickCount=6)
    return alt.hconcat(
        *(
            alt.Chart(chosen, title=chosen["measured"].iloc[0])
            .mark_line(point=True)
            .encode(
                x=alt.X("value:Q", title=name, scale=logarithmic, axis=short),
                y=alt.Y("ms:Q", title="milliseconds", scale=logarithmic),
            )
            .properties(width=220, height=200)
            for name, chosen in table.groupby("varied", sort=False)
        )
    )
