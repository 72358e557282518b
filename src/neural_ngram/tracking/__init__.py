"""The only place that knows MLflow: one run a model, found again by the hash of its weights.

The store is `MLFLOW_TRACKING_URI` when that is set; else SQLite, `runs/mlflow.db`, under the root
of the DVC project, with `artifacts/` beside it: a folder of its own, since SQLite must read back
the journal that it makes beside the database, behind the walls of the boundary. Queued and
temporary experiments share that store.

A store that is down, slow or broken never loses a training: what it does not take is kept in a
spool beside it, and `neural-ngram sync` sends it later.
"""

from neural_ngram.tracking.past import PastRun, newest_run, past_runs
from neural_ngram.tracking.run import Run, find_run, git_commit, start_run
from neural_ngram.tracking.spool import synchronise
from neural_ngram.tracking.store import MODEL_TAG, TRAINING_TAG

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
