"""replay: train and generate again in a second folder; weights, losses and samples, bit for bit.

No stage of dvc.yaml, but `make replay`: it compares what those stages left with what they leave
in a fresh folder that holds only their declared inputs, and puts the evidence into the run.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from neural_ngram.artifacts import sha256_of_file, write_json
from neural_ngram.errors import ArtifactError, BoundaryError
from neural_ngram.pipeline.boundary.declaration import Declaration, declaration, parameters_of
from neural_ngram.pipeline.console import say
from neural_ngram.pipeline.frame import run
from neural_ngram.pipeline.project import MODEL, parameters, run_name
from neural_ngram.settings import Settings
from neural_ngram.tracking.run import find_run

REPLAYED = ("train", "generate")
_ALWAYS = ("dvc.yaml", "params.yaml", "conf", "src")


def main(settings: Settings) -> None:
    """Run again, compare, log; differing files are an error after the evidence is logged."""
    here = Path.cwd()
    stages = [declaration(here, name, parameters_of(here, sys.argv[1:])) for name in REPLAYED]
    with tempfile.TemporaryDirectory(prefix="replay-") as folder:
        again = Path(folder)
        _lay_out(here, again, stages)
        for stage in stages:
            _repeat(stage.stage, again)
        evidence = compare(here, again, [name for stage in stages for name in stage.writes])
        write_json(again / "replay.json", evidence)
        with find_run(sha256_of_file(MODEL), run_name(settings), parameters(settings)) as tracked:
            tracked.tags({"replay": "identical" if evidence["identical"] else "different"})
            tracked.artifact(again / "replay.json", "replay")
    if not evidence["identical"]:
        raise BoundaryError(
            f"training again gave other bytes in {', '.join(evidence['different'])}; look for "
            "what is not seeded, or for another version or processor than the first run had"
        )
    say(f"{len(evidence['sha256'])} files of {', '.join(REPLAYED)} are the same, bit for bit")


def compare(here: Path, again: Path, outputs: list[str]) -> dict[str, Any]:
    """The hashes of all files of the outputs here, and the names of those that differ again."""
    found = {folder: _hashes(folder, outputs) for folder in (here, again)}
    names = sorted(found[here].keys() | found[again].keys())
    different = [name for name in names if found[here].get(name) != found[again].get(name)]
    return {"identical": not different, "different": different, "sha256": found[here]}


def _hashes(folder: Path, outputs: list[str]) -> dict[str, str]:
    files = [path for name in outputs for path in sorted((folder / name).rglob("*"))]
    return {str(path.relative_to(folder)): sha256_of_file(path) for path in files if path.is_file()}


def _lay_out(here: Path, again: Path, stages: list[Declaration]) -> None:
    made = {name for stage in stages for name in stage.writes}
    read = {name for stage in stages for name in stage.reads if not name.startswith("src/")}
    for name in sorted({*_ALWAYS, *read} - made):
        if Path(name).is_absolute():
            continue
        source, target = here / name, again / name
        if not source.exists():
            raise ArtifactError(f"{name} is missing, so nothing can be replayed; run `dvc repro`")
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)


def _repeat(stage: str, again: Path) -> None:
    environment = os.environ | {"PYTHONPATH": "src", "DVC_ROOT": str(again)}
    environment.pop("MLFLOW_TRACKING_URI", None)
    script = f"neural_ngram.stages.{stage.replace('-', '_')}"
    say(f"{stage}, again in {again}")
    done = subprocess.run(
        [sys.executable, "-m", script],
        cwd=again,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BoundaryError(
            f"{stage} failed when it was run again with its declared inputs alone: "
            f"{done.stderr.strip()[-500:]}; see whether dvc.yaml declares all that it reads"
        )


if __name__ == "__main__":
    run(main)
