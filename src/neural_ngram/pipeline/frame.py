"""The frame of every stage: into the sandbox, then run on the settings, with one line per error."""

import sys

from neural_ngram.pipeline.console import escape, require_text, say
from neural_ngram.pipeline.interruption import INTERRUPTION

if " ".join(sys.orig_argv[1:3]).startswith("-m neural_ngram.stages."):  # importing takes seconds
    INTERRUPTION.listen()

import os
from collections.abc import Callable
from pathlib import Path

import hydra
from omegaconf import DictConfig

from neural_ngram.errors import ConfigurationError, NeuralNgramError
from neural_ngram.pipeline.boundary import sandbox as boundary_sandbox
from neural_ngram.pipeline.boundary.declaration import lookup, parameters_of
from neural_ngram.pipeline.boundary.sandbox import Sandbox
from neural_ngram.pipeline.configuration import typed
from neural_ngram.pipeline.overrides import for_hydra
from neural_ngram.pipeline.params import committed
from neural_ngram.pipeline.unfinished import mark
from neural_ngram.settings import Settings

_QUIET_HYDRA = (
    "hydra.run.dir=.",
    "hydra.sweep.dir=runs/multirun",
    "hydra.sweep.subdir=.",
    "hydra.output_subdir=null",
    "hydra.job.chdir=false",
    "hydra/hydra_logging=disabled",
    "hydra/job_logging=disabled",
)


_SMALLER_CORPUS = "set corpus.path to a part of the text"
_SMALLER_MODEL = (
    "lower training.batch_size, the widths of the model, windows.context_length or "
    "tokenizer.vocabulary_size"
)
_LESS_MEMORY = {  # what a stage needs memory for
    "split-corpus": _SMALLER_CORPUS,
    "learn-bpe": f"lower tokenizer.vocabulary_size, or {_SMALLER_CORPUS}",
    "build-windows": f"lower windows.context_length, or {_SMALLER_CORPUS}",
    "oracle-conditional-entropy": f"lower oracle.order or windows.context_length, or "
    f"{_SMALLER_CORPUS}",
    "evaluate": "lower evaluation.batch_size, the widths of the model or windows.context_length",
    "generate": "lower generation.samples, or generation.max_new_tokens",
}

FIXED_SUMS = {"MKL_CBWR": "AVX2,STRICT", "ATEN_CPU_CAPABILITY": "avx2"}  # read as torch loads
_sandbox = Sandbox("off")


def enter() -> None:
    """Close to this process what its stage does not declare in dvc.yaml.

    It is called above all other imports of a stage's script, since no thread may run before it.
    """
    global _sandbox  # noqa: PLW0603
    label = _label()
    if not Path("params.yaml").exists():
        sys.exit(
            f"{label}: error: there is no params.yaml in {Path.cwd()}; run from the project's root"
        )
    try:
        require_text(sys.argv)
        _overrides(sys.argv[1:])
        given = parameters_of(Path.cwd(), sys.argv[1:])
        if lookup(given, "training.determinism"):
            os.environ |= FIXED_SUMS
        if "DVC_STAGE" in os.environ:
            mark(Path.cwd(), label, given)
        committed(Path.cwd())
        _sandbox = boundary_sandbox.enter(label, given)
    except (NeuralNgramError, OSError) as problem:
        sys.exit(f"{label}: error: {problem}")
    if _sandbox.kind != "landlock":
        say(f"warning: boundary: {_sandbox}")
    for path in _sandbox.missing():
        say(f"warning: boundary: {path} is missing; if created later, it could not be read")


def sandbox() -> Sandbox:
    """The sandbox around this process."""
    return _sandbox


def _label() -> str:
    return Path(sys.argv[0]).stem.replace("_", "-")


def run(stage: Callable[[Settings], object]) -> None:
    """Run a stage on params.yaml and the command line's overrides; with `-m`, one after another.

    What the stage returns is what a sweeper minimises.
    An error that the user can fix is printed on one line, with exit code 1.
    """
    root = Path.cwd()
    escape()

    def guarded(configuration: DictConfig) -> object:
        INTERRUPTION.cleans_up = True
        try:
            return stage(typed(configuration, root))
        except Exception as problem:
            if INTERRUPTION.code is not None:
                sys.exit(INTERRUPTION.code)
            told = _sandbox.explanation(problem) or _told(problem)
            if told is None:
                raise
            sys.exit(f"{_label()}: error: {told}")

    try:
        sys.argv[1:] = _overrides(sys.argv[1:], say)
    except ConfigurationError as problem:
        sys.exit(f"{_label()}: error: {problem}")
    sys.argv += _QUIET_HYDRA
    hydra.main(version_base="1.3", config_path=str(root), config_name="params")(guarded)()
    INTERRUPTION.finish()


def _overrides(words: list[str], tell: Callable[[str], object] = lambda line: None) -> list[str]:
    """The command line with its overrides checked and quoted; Hydra's own flags stay."""
    sweeps = any(word in ("-m", "--multirun") for word in words)
    flags = any(word.startswith("-") for word in words)
    return [
        word
        if word.startswith("-") or (flags and "=" not in word)
        else for_hydra([word], sweeps=sweeps, tell=tell)[0]
        for word in words
    ]


def _told(problem: Exception) -> str | None:
    """The message for the user; None for what would be a bug of ours."""
    if isinstance(problem, NeuralNgramError | OSError):
        return str(problem)
    if isinstance(problem, MemoryError) or "can't allocate memory" in str(problem):
        reason = f" ({str(problem).splitlines()[0]})" if str(problem) else ""
        return f"there is not enough memory{reason}; {_LESS_MEMORY.get(_label(), _SMALLER_MODEL)}"
    return None
