"""generate: continue the prompt greedily and by sampling; register the model for serving."""

from neural_ngram.pipeline.frame import enter

if __name__ == "__main__":
    enter()

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from neural_ngram.artifacts import sha256_of_file, write_json
from neural_ngram.export.mlflow_model import package
from neural_ngram.generation.continuation import Continuation, cycle_length
from neural_ngram.generation.trained import MOST_IN_TURN, Trained, load
from neural_ngram.pipeline.console import say
from neural_ngram.pipeline.frame import run, sandbox
from neural_ngram.pipeline.project import GENERATION, MODEL, TOKENIZER, parameters, run_name
from neural_ngram.settings import GenerationSettings, Settings
from neural_ngram.tracking.run import find_run


def main(settings: Settings) -> None:
    """Write and log one greedy continuation and some samples, and the model as a servable one."""
    asked, model_sha256 = settings.generation, sha256_of_file(MODEL)
    trained = load(MODEL, TOKENIZER)
    write_json(
        GENERATION / "samples.json",
        {
            "model_sha256": model_sha256,
            "prompt": asked.prompt,
            "prompt_ids": trained.encode(asked.prompt),
            "continuations": list(_continuations(trained, asked)),
        },
    )
    with find_run(model_sha256, run_name(settings), parameters(settings)) as tracked:
        tracked.boundary("generate", sandbox().kind)
        method = _method(asked).replace(" ", "-")
        tracked.artifact(GENERATION, f"generation/{method}-seed-{asked.seed}")
        tracked.artifact(TOKENIZER, "tokenizer")
        with TemporaryDirectory() as folder:
            package(Path(folder), MODEL, TOKENIZER)
            tracked.model(Path(folder))


def _continuations(trained: Trained, asked: GenerationSettings) -> Iterator[dict[str, Any]]:
    """The greedy continuation, then the samples; few of them are printed token by token."""
    (greedy,) = _shown(trained, "greedy", replace(asked, temperature=0))
    cycle = cycle_length(trained.context(asked.prompt), greedy.ids)
    if cycle:
        say(f"greedy decoding entered a {cycle}-token cycle; set generation.temperature > 0")
    yield _described(trained, asked.prompt, "greedy", greedy) | {"cycle": cycle}
    if not asked.temperature:
        return
    if asked.samples > MOST_IN_TURN:
        sampled = trained.samples(asked.prompt, asked)
        say(f"{_method(asked)}: {asked.samples:,} samples in {GENERATION / 'samples.json'}")
    else:
        sampled = _shown(trained, _method(asked), asked)
    for each in sampled:
        yield _described(trained, asked.prompt, _method(asked), each)


def _shown(trained: Trained, method: str, asked: GenerationSettings) -> list[Continuation]:
    """Each continuation, printed as it comes."""
    streams = trained.streams(asked.prompt, asked)
    for stream in streams:
        print(f"  {method}: ", end="")
        for piece in stream:
            print(piece, end="", flush=True)
        print(flush=True)
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


def _method(asked: GenerationSettings) -> str:
    top_k = "" if asked.top_k is None else f" top-k {asked.top_k}"
    top_p = "" if asked.top_p == 1 else f" top-p {asked.top_p:g}"
    return f"temperature {asked.temperature:g}{top_k}{top_p}"


if __name__ == "__main__":
    run(main)
