"""replay: train and generate again in a second folder; weights, losses and samples, bit for bit.

No stage of dvc.yaml, but `make replay`: it compares what those stages left with what they leave
in a fresh folder that holds only their declared inputs, and puts the evidence into the run.
"""

import sys
import tempfile
from pathlib import Path

from neural_ngram.artifacts import sha256_of_file, write_json
from neural_ngram.errors import BoundaryError
from neural_ngram.pipeline.boundary.declaration import declaration, parameters_of
from neural_ngram.pipeline.console import say
from neural_ngram.pipeline.frame import run
from neural_ngram.pipeline.project import MODEL, parameters, run_name
from neural_ngram.pipeline.replay import replay
from neural_ngram.settings import Settings
from neural_ngram.tracking.run import find_run

REPLAYED = ("train", "generate")


def main(settings: Settings) -> None:
    """Run again, compare, log; differing files are an error after the evidence is logged."""
    here = Path.cwd()
    given = parameters_of(here, sys.argv[1:])
    evidence = replay(here, [declaration(here, name, given) for name in REPLAYED], say)
    with (
        tempfile.TemporaryDirectory() as folder,
        find_run(sha256_of_file(MODEL), run_name(settings), parameters(settings)) as tracked,
    ):
        write_json(Path(folder) / "replay.json", evidence)
        tracked.tags({"replay": "identical" if evidence["identical"] else "different"})
        tracked.artifact(Path(folder) / "replay.json", "replay")
    if not evidence["identical"]:
        raise BoundaryError(
            f"training again gave other bytes in {', '.join(evidence['different'])}; look for "
            "what is not seeded, or for another version or processor than the first run had"
        )
    say(f"{len(evidence['sha256'])} files of {', '.join(REPLAYED)} are the same, bit for bit")


if __name__ == "__main__":
    run(main)
