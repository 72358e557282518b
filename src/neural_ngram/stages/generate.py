"""generate: continue the prompt greedily and by sampling."""

from neural_ngram import model as models
from neural_ngram import tokenizer as tokenizers
from neural_ngram.artifacts import sha256_of_file, write_json
from neural_ngram.errors import ArtifactError
from neural_ngram.generation import Sampler, continue_context, opening_context
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import Settings
from neural_ngram.stages import GENERATION, MODEL, TOKENIZER, parameters, run, run_name, say
from neural_ngram.tracking import find_run


def main(settings: Settings) -> None:
    """Write and log one greedy continuation and some samples."""
    asked = settings.generation
    model, origin = models.load(MODEL)
    tokenizer = tokenizers.load(TOKENIZER)
    if sha256_of_file(TOKENIZER / "tokenizer.json") != origin["tokenizer_sha256"]:
        raise ArtifactError(f"{MODEL} was trained with another tokenizer; run `dvc repro`")
    prompt = next(tokenizer.encode([asked.prompt])).tolist()
    context = opening_context(prompt, length=model.architecture.context_length, bos=tokenizer.bos)
    sampler = Sampler(asked.temperature, SplitMix64(asked.seed))
    samplers = [None] + [sampler] * (asked.samples if asked.temperature else 0)
    texts = []
    for each in samplers:
        continuation = continue_context(
            model,
            context,
            markers=(tokenizer.bos, tokenizer.eos),
            max_new_tokens=asked.max_new_tokens,
            sampler=each,
        )
        method = "greedy" if each is None else f"temperature {asked.temperature:g}"
        text = tokenizer.decode(prompt + continuation.ids)
        texts.append(
            {"method": method, "text": text, "ids": continuation.ids}
            | {"bytes_hex": tokenizer.decode_bytes(continuation.ids).hex()}
            | {"stop": continuation.stop}
        )
        say(f"{method}: {text}")
    write_json(
        GENERATION / "samples.json",
        {"prompt": asked.prompt, "prompt_ids": prompt, "continuations": texts},
    )
    with find_run(sha256_of_file(MODEL), run_name(settings), parameters(settings)) as tracked:
        folder = f"generation/temperature-{asked.temperature:g}-seed-{asked.seed}"
        tracked.artifact(GENERATION, folder)
        tracked.artifact(TOKENIZER, "tokenizer")


if __name__ == "__main__":
    run(main)
