"""evaluate: the trained model on train and validation, beside its floor."""

import torch

from neural_ngram import model as models
from neural_ngram import windows as token_windows
from neural_ngram.artifacts import read_json, sha256_of_file, write_json
from neural_ngram.errors import ArtifactError
from neural_ngram.evaluation import report
from neural_ngram.scoring import score
from neural_ngram.settings import Settings
from neural_ngram.stages import EVALUATION, MODEL, ORACLE, WINDOWS, parameters, run, run_name, say
from neural_ngram.tracking import find_run


def main(settings: Settings) -> None:
    """Score every window once, save and log the metrics."""
    torch.set_num_threads(settings.training.threads)
    model, origin = models.load(MODEL)
    metrics = {}
    for name in ("train", "validation"):
        windows, description = token_windows.load(WINDOWS / name)
        if description["tokenizer_sha256"] != origin["tokenizer_sha256"]:
            raise ArtifactError(
                f"{MODEL} was trained with another tokenizer than {WINDOWS / name} was made with; "
                "run `dvc repro`"
            )
        scores = score(model, windows, batch_size=settings.evaluation.batch_size)
        metrics[name] = report(scores, scored_bytes=description["scored_bytes"])
        say(_line(name, metrics[name]))
    write_json(EVALUATION / "metrics.json", metrics)
    oracle = read_json(ORACLE / "metrics.json")
    with find_run(sha256_of_file(MODEL), run_name(settings), parameters(settings)) as tracked:
        step = settings.training.max_steps
        for name, values in metrics.items():
            tracked.metrics({f"{name}.{key}": value for key, value in values.items()}, step)
        for k, values in oracle.items():
            tracked.metrics({f"oracle.{k}.{key}": value for key, value in values.items()})
        tracked.artifact(EVALUATION, "evaluation")
        tracked.artifact(ORACLE, "oracle")


def _line(name: str, metrics: dict[str, float | int]) -> str:
    return (
        f"{name:10} {metrics['tokens']:>9,} tokens   {metrics['loss_nats']:.4f} nats   "
        f"perplexity {metrics['perplexity']:.2f}   {metrics['bits_per_byte']:.4f} bits a byte   "
        f"accuracy {metrics['accuracy']:.1%}"
    )


if __name__ == "__main__":
    run(main)
