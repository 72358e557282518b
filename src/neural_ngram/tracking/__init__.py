"""The only place that knows MLflow: one run a model, found again by the hash of its weights.

The store is `MLFLOW_TRACKING_URI` when that is set; else SQLite, `runs/mlflow.db`, under the root
of the DVC project, with `artifacts/` beside it: a folder of its own, since SQLite must read back
the journal that it makes beside the database, behind the walls of the boundary. Queued and
temporary experiments share that store.

    place       where the store is            spool     what happens to a run, on disk first
    relocation  when its project was moved    run       a run as stages see it
    store       a run as MLflow has it        sending   from the spool to the store
    past        finished runs, for reading    sender    the process that does so during training

A store that is down, slow or broken never loses a training: what it does not take stays in the
spool beside it, and `neural-ngram sync` sends it later.
"""

from typing import TYPE_CHECKING, Any

from neural_ngram.tracking.run import Run, find_run, git_commit, start_run
from neural_ngram.tracking.spool import MODEL_TAG, TRAINING_TAG

if TYPE_CHECKING:
    from neural_ngram.tracking.past import PastRun, newest_run, past_runs
    from neural_ngram.tracking.sending import synchronise

__all__ = [
    "MODEL_TAG",
    "TRAINING_TAG",
    "PastRun",
    "Run",
    "find_run",
    "git_commit",
    "newest_run",
    "past_runs",
    "start_run",
    "synchronise",
]


def __getattr__(name: str) -> Any:
    """What imports MLflow, which takes seconds, only when it is used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from neural_ngram.tracking import past, sending  # noqa: PLC0415

    return getattr(sending if name == "synchronise" else past, name)
