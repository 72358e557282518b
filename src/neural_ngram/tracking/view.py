"""The table of runs with the columns that compare models, best on validation first.

MLflow's page opens it by `?viewStateShareKey=comparison`: it is the state of the page as its own
button "Share" would keep it, in a tag of the experiment.
"""

import json

__all__ = ["COLUMNS", "VIEW", "VIEW_TAG"]

COLUMNS = (
    "metrics.`validation.loss_nats`",
    "metrics.`validation.bits_per_byte`",
    "metrics.`kneser_ney.validation.loss_nats`",
    "params.`corpus.name`",
    "params.`model.hidden`",
    "params.`optimizer.learning_rate`",
)
VIEW_TAG = "mlflow.sharedViewState.comparison"
VIEW = json.dumps({"selectedColumns": COLUMNS, "orderByKey": COLUMNS[0], "orderByAsc": True})
