"""The continuations of one prompt: the greedy one first, then the samples."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from neural_ngram.generation.continuation import Continuation, cycle_length
from neural_ngram.generation.trained import MOST_IN_TURN, Stream, Trained
from neural_ngram.settings import GenerationSettings

__all__ = ["continuations", "method_of"]

Show = Callable[[str, Stream], object]


def continuations(
    trained: Trained, asked: GenerationSettings, show: Show
) -> Iterator[dict[str, Any]]:
    """Each continuation of `asked.prompt`, as JSON holds it; at temperature 0 the greedy one alone.

    cycle: of a greedy continuation that repeats its last tokens without end, how many these are.
    show: called with the method and the stream of a continuation that is drawn by itself, as few
    samples are; it iterates over the text as it comes.

    Raises what `Trained.context` raises.
    """
    (greedy,) = _streamed(trained, replace(asked, temperature=0), "greedy", show)
    cycle = cycle_length(trained.context(asked.prompt), greedy.ids)
    yield _described(trained, asked.prompt, "greedy", greedy) | {"cycle": cycle}
    if not asked.temperature:
        return
    method = method_of(asked)
    if asked.samples > MOST_IN_TURN:
        sampled = trained.samples(asked.prompt, asked)
    else:
        sampled = _streamed(trained, asked, method, show)
    for each in sampled:
        yield _described(trained, asked.prompt, method, each)


def method_of(asked: GenerationSettings) -> str:
    """How samples are drawn, such as "temperature 0.8 top-k 40"."""
    top_k = "" if asked.top_k is None else f" top-k {asked.top_k}"
    top_p = "" if asked.top_p == 1 else f" top-p {asked.top_p:g}"
    return f"temperature {asked.temperature:g}{top_k}{top_p}"


def _streamed(
    trained: Trained, asked: GenerationSettings, method: str, show: Show
) -> list[Continuation]:
    streams = trained.streams(asked.prompt, asked)
    for stream in streams:
        show(method, stream)
    return [stream.continuation for stream in streams]


def _described(
    trained: Trained, prompt: str, method: str, continuation: Continuation
) -> dict[str, Any]:
    tokenizer, ids = trained.tokenizer, continuation.ids
    return {
        "method": method,
        "text": tokenizer.decode(trained.encode(prompt) + ids),
        "ids": ids,
        "bytes_hex": tokenizer.decode_bytes(ids).hex(),
        "stop": continuation.stop,
        "cycle": None,
    }
