"""The boundary between train, validation and test, as a stage meets it.

    declaration   what dvc.yaml says that a stage reads and writes
    stores        where DVC and git keep copies
    territory     which files are closed to it, and by which rule
    landlock      the kernel refuses to open them, to this process and its children
    hook          Python refuses with a clear message, and alone where there is no Landlock
    graph         what may flow where, proved from dvc.yaml and dvc.lock

`enter` must come before numpy, pandas, torch or MLflow is imported: Landlock holds for the thread
that asks and for what it starts, not for threads that exist already.
"""
