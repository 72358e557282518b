"""evaluate-test: the trained model on test when it is unsealed; else the record that it is sealed.

What it writes never enters DVC's cache or run cache (`cache: false` with `persist: true`), so that
no figure on test comes back from there without its line in the ledger.
"""

from neural_ngram.pipeline.frame import enter

if __name__ == "__main__":
    enter()

from pathlib import Path

from neural_ngram.artifacts import write_json
from neural_ngram.pipeline.console import say
from neural_ngram.pipeline.frame import run, sandbox
from neural_ngram.pipeline.ledger import number_of, record
from neural_ngram.pipeline.project import LEDGER, STORE, TEST, dvc_root, parameters, run_name
from neural_ngram.pipeline.recorded import SUBJECT, entry_of
from neural_ngram.settings import Settings
from neural_ngram.tracking.run import find_run

SEALED = {"test": "sealed"}


def main(settings: Settings) -> None:
    """Score test once and record it, or write that it is sealed."""
    if not settings.evaluation.unseal_test:
        for name in ("figures.json", "metrics.json"):
            write_json(TEST / name, SEALED)
        say("test is sealed")
        return
    # They import torch, which a sealed test needs not wait for.
    from neural_ngram.evaluation.decomposition import flat  # noqa: PLC0415
    from neural_ngram.evaluation.summary import show  # noqa: PLC0415
    from neural_ngram.evaluation.unsealed import score_test  # noqa: PLC0415

    evaluation = score_test(settings)
    # The line in the ledger comes first: no figure is written, logged or printed without it.
    ledger, entry = dvc_root() / LEDGER, entry_of(evaluation.figures)
    line = record(ledger, entry, dvc_root() / STORE, Path.cwd() / LEDGER)
    number = {"evaluation": number_of(line)}
    say(f"test is unsealed: evaluation no. {number_of(line)} on this test split, in {LEDGER}")
    show(evaluation.summary)
    figures = {"test": evaluation.figures | number}
    write_json(TEST / "figures.json", figures | {key: line[key] for key in SUBJECT})
    write_json(TEST / "metrics.json", {"test": evaluation.compared | number})
    with find_run(line["model_sha256"], run_name(settings), parameters(settings)) as tracked:
        tracked.boundary("evaluate-test", sandbox().kind)
        tracked.metrics(dict(flat(figures)), settings.training.max_steps)
        tracked.artifact(TEST, "test")


if __name__ == "__main__":
    run(main)
