"""generate: continue the prompt greedily and by sampling; register the model for serving."""

from neural_ngram.pipeline.frame import enter

if __name__ == "__main__":
    enter()

from pathlib import Path
from tempfile import TemporaryDirectory

from neural_ngram.artifacts import sha256_of_file, write_json
from neural_ngram.export.mlflow_model import package
from neural_ngram.generation.samples import continuations, method_of
from neural_ngram.generation.trained import MOST_IN_TURN, Stream, load
from neural_ngram.pipeline.console import say
from neural_ngram.pipeline.frame import run, sandbox
from neural_ngram.pipeline.project import GENERATION, MODEL, TOKENIZER, parameters, run_name
from neural_ngram.settings import Settings
from neural_ngram.tracking.run import find_run


def main(settings: Settings) -> None:
    """Write and log one greedy continuation and some samples, and the model as a servable one."""
    asked, model_sha256 = settings.generation, sha256_of_file(MODEL)
    trained, method = load(MODEL, TOKENIZER), method_of(settings.generation)
    found = []
    for continuation in continuations(trained, asked, _show):
        found.append(continuation)
        if continuation["cycle"]:
            advice = "" if asked.temperature else "; set generation.temperature > 0"
            say(f"greedy decoding entered a {continuation['cycle']}-token cycle{advice}")
    described = {
        "model_sha256": model_sha256,
        "prompt": asked.prompt,
        "prompt_ids": trained.encode(asked.prompt),
        "continuations": found,
    }
    write_json(GENERATION / "samples.json", described)
    if len(found) - 1 > MOST_IN_TURN:
        say(f"{method}: {len(found) - 1:,} samples in {GENERATION / 'samples.json'}")
    with find_run(model_sha256, run_name(settings), parameters(settings)) as tracked:
        tracked.boundary("generate", sandbox().kind)
        folder = f"generation/{method.replace(' ', '-')}-seed-{asked.seed}"
        tracked.artifact(GENERATION, folder)
        tracked.artifact(TOKENIZER, "tokenizer")
        with TemporaryDirectory() as packed:
            package(Path(packed), MODEL, TOKENIZER)
            tracked.model(Path(packed))


def _show(method: str, stream: Stream) -> None:
    """Print a continuation as it comes."""
    print(f"  {method}: ", end="")
    for piece in stream:
        print(piece, end="", flush=True)
    print(flush=True)


if __name__ == "__main__":
    run(main)
