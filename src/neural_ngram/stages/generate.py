"""generate: continue the prompt greedily and by sampling; register the model for serving."""

from neural_ngram.stages import enter

if __name__ == "__main__":
    enter()

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from neural_ngram import model as models
from neural_ngram import tokenizer as tokenizers
from neural_ngram.artifacts import sha256_of_file, write_json
from neural_ngram.errors import ArtifactError
from neural_ngram.generation import (
    Continuation,
    TextStream,
    collect,
    continue_many,
    cycle_length,
    next_tokens,
    opening_context,
)
from neural_ngram.sampling import Sampler, sampler_of, samplers_of
from neural_ngram.settings import GenerationSettings, Settings
from neural_ngram.stages import GENERATION, MODEL, TOKENIZER, parameters, run, run_name, say, walls
from neural_ngram.tracking import find_run
from neural_ngram.tracking.package import package

MOST_SHOWN = 16


def main(settings: Settings) -> None:
    """Write and log one greedy continuation and some samples, and the model as a servable one."""
    asked, model_sha256 = settings.generation, sha256_of_file(MODEL)
    model, origin = models.load(MODEL)
    tokenizer = tokenizers.load(TOKENIZER)
    if sha256_of_file(TOKENIZER / "tokenizer.json") != origin["tokenizer_sha256"]:
        raise ArtifactError(f"{MODEL} was trained with another tokenizer; run `dvc repro`")
    prompt = next(tokenizer.encode([asked.prompt])).tolist()
    texts = [_continue(model, tokenizer, prompt, None, asked)]
    sampler = sampler_of(asked)
    if sampler and asked.samples > MOST_SHOWN:
        texts += _continue_many(model, tokenizer, prompt, sampler, asked)
    elif sampler:
        texts += [_continue(model, tokenizer, prompt, each, asked) for each in samplers_of(asked)]
    write_json(
        GENERATION / "samples.json",
        {
            "model_sha256": model_sha256,
            "prompt": asked.prompt,
            "prompt_ids": prompt,
            "continuations": texts,
        },
    )
    with find_run(model_sha256, run_name(settings), parameters(settings)) as tracked:
        tracked.boundary("generate", walls().kind)
        method = _method(asked).replace(" ", "-")
        tracked.artifact(GENERATION, f"generation/{method}-seed-{asked.seed}")
        tracked.artifact(TOKENIZER, "tokenizer")
        with TemporaryDirectory() as folder:
            package(Path(folder), MODEL, TOKENIZER)
            tracked.model(Path(folder))


def _continue(
    model: models.Model,
    tokenizer: tokenizers.Tokenizer,
    prompt: list[int],
    sampler: Sampler | None,
    asked: GenerationSettings,
) -> dict[str, Any]:
    """One continuation, printed token by token."""
    context = opening_context(prompt, length=model.architecture.context_length, bos=tokenizer.bos)
    method = "greedy" if sampler is None else _method(asked)
    stream = TextStream(tokenizer)
    print(f"  {method}: {stream.feed(prompt)}", end="", flush=True)
    continuation = collect(
        next_tokens(model, context, (tokenizer.bos, tokenizer.eos), sampler),
        asked.max_new_tokens,
        lambda token: print(stream.feed([token]), end="", flush=True),
    )
    print(stream.close(), flush=True)
    cycle = cycle_length(context, continuation.ids) if sampler is None else None
    if cycle:
        say(f"greedy: the last {cycle} tokens repeat for ever; a temperature breaks the cycle")
    return _described(method, tokenizer, prompt, continuation, cycle)


def _continue_many(
    model: models.Model,
    tokenizer: tokenizers.Tokenizer,
    prompt: list[int],
    sampler: Sampler,
    asked: GenerationSettings,
) -> list[dict[str, Any]]:
    """All samples at once, not printed."""
    context = opening_context(prompt, length=model.architecture.context_length, bos=tokenizer.bos)
    continuations = continue_many(
        model,
        [context] * asked.samples,
        markers=(tokenizer.bos, tokenizer.eos),
        max_new_tokens=asked.max_new_tokens,
        sampler=sampler,
    )
    say(f"{_method(asked)}: {asked.samples:,} samples in {GENERATION / 'samples.json'}")
    return [_described(_method(asked), tokenizer, prompt, each) for each in continuations]


def _described(
    method: str,
    tokenizer: tokenizers.Tokenizer,
    prompt: list[int],
    continuation: Continuation,
    cycle: int | None = None,
) -> dict[str, Any]:
    return {
        "method": method,
        "text": tokenizer.decode(prompt + continuation.ids),
        "ids": continuation.ids,
        "bytes_hex": tokenizer.decode_bytes(continuation.ids).hex(),
        "stop": continuation.stop,
        "cycle": cycle,
    }


def _method(asked: GenerationSettings) -> str:
    top_k = "" if asked.top_k is None else f" top-k {asked.top_k}"
    top_p = "" if asked.top_p == 1 else f" top-p {asked.top_p:g}"
    return f"temperature {asked.temperature:g}{top_k}{top_p}"


if __name__ == "__main__":
    run(main)
