"""The only package that knows MLflow: one run per model, found by the hash of its weights.

The store is `MLFLOW_TRACKING_URI` when that is set; else SQLite, `runs/mlflow.db`, under the root
of the DVC project, with `artifacts/` beside it: a folder of its own, since SQLite must read back
the journal that it makes beside the database, inside the sandbox. Queued and
temporary experiments share that store.

    place       where the store is            spool     what happens to a run, on disk first
    relocation  when its project was moved    run       a run as stages see it
    store       a run as MLflow has it        sending   from the spool to the store
    past        finished runs, for reading    sender    the process that does so during training

A store that is down, slow or broken never loses a training: what it does not accept stays in the
spool beside it, and `neural-ngram sync` sends it later.
"""
