"""oracle-conditional-entropy: what counting says of the windows: the floor and the baseline."""

from neural_ngram.pipeline.frame import enter

if __name__ == "__main__":
    enter()

from dataclasses import asdict

import pandas as pd

from neural_ngram.artifacts import write_csv, write_json
from neural_ngram.evaluation.metrics import mean_loss
from neural_ngram.ngram.entropy import conditional_entropies
from neural_ngram.ngram.kneser_ney import KneserNey
from neural_ngram.ngram.storage import save_kneser_ney
from neural_ngram.pipeline.console import say
from neural_ngram.pipeline.frame import run
from neural_ngram.pipeline.project import ORACLE, WINDOWS
from neural_ngram.settings import Settings
from neural_ngram.tokens import windows as token_windows


def main(settings: Settings) -> None:
    """Count on the windows of train; score the count model on both partitions."""
    train, origin = token_windows.load(WINDOWS / "train")
    validation, described = token_windows.load(WINDOWS / "validation")
    entropies = conditional_entropies(train)
    baseline = KneserNey.fit(
        train,
        vocabulary_size=origin["vocabulary_size"],
        order=settings.oracle.order or train.context_length + 1,
    )
    losses = {
        name: mean_loss(baseline.log_probabilities(part), scored_bytes=scored_bytes)
        for name, part, scored_bytes in (
            ("train", train, origin["scored_bytes"]),
            ("validation", validation, described["scored_bytes"]),
        )
    }
    table = pd.DataFrame(map(asdict, entropies)).rename(columns={"order": "k"})
    write_csv(ORACLE / "entropies.csv", table)
    discounts = [{"order": n, **asdict(of)} for n, of in enumerate(baseline.discounts, start=1)]
    write_csv(ORACLE / "discounts.csv", pd.DataFrame(discounts))
    save_kneser_ney(baseline, ORACLE / "kneser_ney.safetensors")
    floors = {f"k{entropy.order}": {"entropy_nats": entropy.entropy_nats} for entropy in entropies}
    write_json(ORACLE / "figures.json", {"oracle": floors, "kneser_ney": losses})
    told = [f"H(next | last {e.order}) = {e.entropy_nats:.4f}" for e in entropies]
    say(", ".join(told if len(told) < 10 else [*told[:8], "…", told[-1]]) + " nats")
    say(
        f"Kneser-Ney of order {baseline.order}: train {losses['train']['loss_nats']:.4f}, "
        f"validation {losses['validation']['loss_nats']:.4f} nats"
    )


if __name__ == "__main__":
    run(main)
