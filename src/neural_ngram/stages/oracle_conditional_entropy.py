"""oracle-conditional-entropy: what the last k tokens could tell of the next, at best."""

from dataclasses import asdict

import pandas as pd

from neural_ngram import windows as token_windows
from neural_ngram.artifacts import write_csv, write_json
from neural_ngram.ngram import conditional_entropies
from neural_ngram.settings import Settings
from neural_ngram.stages import ORACLE, WINDOWS, run, say


def main(settings: Settings) -> None:
    """Count on the windows of train."""
    windows, _ = token_windows.load(WINDOWS / "train")
    entropies = conditional_entropies(windows)
    table = pd.DataFrame(map(asdict, entropies)).rename(columns={"order": "k"})
    write_csv(ORACLE / "entropies.csv", table)
    write_json(
        ORACLE / "metrics.json",
        {f"k{entropy.order}": {"entropy_nats": entropy.entropy_nats} for entropy in entropies},
    )
    say(", ".join(f"H(next | last {e.order}) = {e.entropy_nats:.4f}" for e in entropies) + " nats")


if __name__ == "__main__":
    run(main)
