"""Stages repeated in a fresh folder that holds only their declared inputs, and compared."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from neural_ngram.artifacts import sha256_of_file
from neural_ngram.errors import ArtifactError, BoundaryError
from neural_ngram.pipeline.boundary.declaration import Declaration

__all__ = ["compare", "replay"]

_ALWAYS = ("dvc.yaml", "params.yaml", "conf", "src")


def replay(
    here: Path, stages: Sequence[Declaration], say: Callable[[str], object]
) -> dict[str, Any]:
    """Run the stages again, one after another, and compare what they write, as `compare` does.

    here: the root of the project, where they ran first and which stays as it is.

    Raises ArtifactError when something that they read is missing, BoundaryError, with the end of
    what it printed, when one fails.
    """
    with tempfile.TemporaryDirectory(prefix="replay-") as folder:
        again = Path(folder)
        _lay_out(here, again, stages)
        for stage in stages:
            say(f"{stage.stage}, again in {again}")
            _repeat(stage.stage, again)
        return compare(here, again, [name for stage in stages for name in stage.writes])


def compare(here: Path, again: Path, outputs: list[str]) -> dict[str, Any]:
    """The hashes of all files of the outputs here, and the names of those that differ again."""
    found = {folder: _hashes(folder, outputs) for folder in (here, again)}
    names = sorted(found[here].keys() | found[again].keys())
    different = [name for name in names if found[here].get(name) != found[again].get(name)]
    return {"identical": not different, "different": different, "sha256": found[here]}


def _hashes(folder: Path, outputs: list[str]) -> dict[str, str]:
    files = [path for name in outputs for path in sorted((folder / name).rglob("*"))]
    return {str(path.relative_to(folder)): sha256_of_file(path) for path in files if path.is_file()}


def _lay_out(here: Path, again: Path, stages: Sequence[Declaration]) -> None:
    """Copy code, settings and what the stages read, but not what they write, from here to again."""
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
    """Run the script of a stage in the folder again, without a tracking server."""
    environment = os.environ | {"PYTHONPATH": "src", "DVC_ROOT": str(again)}
    environment.pop("MLFLOW_TRACKING_URI", None)
    script = f"neural_ngram.stages.{stage.replace('-', '_')}"
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
