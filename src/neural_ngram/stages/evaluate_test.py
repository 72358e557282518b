"""evaluate-test: the trained model on test when it is unsealed; else the record that it is sealed.

What it writes never enters DVC's cache or run cache (`cache: false` with `persist: true`), so that
no figure on test comes back from there without its line in the ledger.
"""

from neural_ngram.pipeline.frame import enter

if __name__ == "__main__":
    enter()

from neural_ngram.artifacts import write_json
from neural_ngram.pipeline.console import say
from neural_ngram.pipeline.frame import run
from neural_ngram.pipeline.project import TEST
from neural_ngram.settings import Settings

SEALED = {"test": "sealed"}


def main(settings: Settings) -> None:
    """Score test once and record it, or write that it is sealed."""
    if settings.evaluation.unseal_test:
        from neural_ngram.evaluation.unsealed import evaluate  # noqa: PLC0415 - imports torch

        evaluate(settings)
        return
    for name in ("figures.json", "metrics.json"):
        write_json(TEST / name, SEALED)
    say("test is sealed")


if __name__ == "__main__":
    run(main)
