"""Where the project is and the names of the files that stages pass on to each other."""

import hashlib
import os
import subprocess
from pathlib import Path

from neural_ngram.pipeline.boundary.declaration import declaration, parameters_of
from neural_ngram.settings import Settings, flatten

RAW = Path("data/raw")
SPLITS = Path("data/splits")
SPLIT_REPORT = Path("artifacts/split/report.json")
TOKENIZER = Path("artifacts/tokenizer")
WINDOWS = Path("data/windows")
MODEL = Path("artifacts/model/model.safetensors")
TRAINING = Path("artifacts/training")
EVALUATION = Path("artifacts/evaluation")
TEST = Path("artifacts/test")
ORACLE = Path("artifacts/oracle")
GENERATION = Path("artifacts/generation")
LEDGER = Path("ledger.jsonl")  # of test evaluations; not an output of a stage, so DVC leaves it
STORE = Path("runs")  # MLflow's folder and the locks; made before the sandbox closes


def dvc_root() -> Path:
    """The root of the DVC project: not the working directory in queued and temporary runs."""
    return Path(os.environ.get("DVC_ROOT", ".")).resolve()


def git_commit() -> str | None:
    """The git commit that is checked out at the root of the DVC project, when there is one.

    A temporary or queued experiment has commits of its own, which do not last.
    """
    answer = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=dvc_root(),
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout.strip() if answer.returncode == 0 else None


def cache() -> Path:
    """What outlives a stage but is not an output; queued and temporary experiments share it."""
    return dvc_root() / STORE


def code_sha256(stage: str) -> str:
    """Hexadecimal SHA-256 of the code that dvc.yaml names as what `stage` computes with."""
    here = Path.cwd()
    reads = declaration(here, stage, parameters_of(here, [])).reads
    places = [here / name for name in reads if name.startswith("src/")]
    files = [file for place in places for file in (place, *place.rglob("*.py")) if file.is_file()]
    total = hashlib.sha256()
    for file in sorted(files):
        total.update(f"{file.relative_to(here).as_posix()}\n".encode() + file.read_bytes())
    return total.hexdigest()


def run_name(settings: Settings) -> str:
    """A readable name of what is trained: corpus, hidden layer, and the sizes that matter."""
    model = settings.model
    sizes = f"C{settings.windows.context_length} D{model.embedding_width}"
    hidden = "linear" if model.hidden == "none" else model.hidden
    width = "" if model.hidden == "none" else f" H{model.hidden_width}"
    return f"{settings.corpus.name} {hidden} {sizes}{width}"


def parameters(settings: Settings) -> dict[str, object]:
    """Every setting that shapes a model, by dotted name."""
    later = ("oracle.", "evaluation.", "generation.", "boundary.", "configuration_sha256")
    return {name: value for name, value, _ in flatten(settings) if not name.startswith(later)}
