"""The boundary between train, validation and test, as a stage meets it.

    declaration   what dvc.yaml says that a stage reads and writes
    stores        where DVC and git keep copies
    rules         which files are closed to it, and by which rule
    landlock      the kernel refuses to open them for this process and its children
    hook          Python refuses with a clear message; the only protection without Landlock
    sandbox       closes them, before anything else is imported
    graph         what may flow where, proved from dvc.yaml and dvc.lock

`enter` must be called before numpy, pandas, torch or MLflow is imported: Landlock applies to the
calling thread and to what it starts, not to threads that already exist.
"""
