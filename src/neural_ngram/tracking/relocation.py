"""The project's own store after the project was moved or copied.

MLflow stores the address of each experiment, run, model and version as an absolute path. When the
project lies elsewhere, they are rewritten, so that its runs belong to the folder that holds them.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from filelock import FileLock, Timeout

from neural_ngram.errors import TrackingError
from neural_ngram.pipeline.project import STORE

__all__ = ["opening_lock", "relocate"]

PATIENCE = 15.0  # seconds
_ADDRESSES = (
    ("experiments", "artifact_location"),
    ("runs", "artifact_uri"),
    ("logged_models", "artifact_location"),
    ("model_versions", "source"),
    ("model_versions", "storage_location"),
)
_REBASE = """
    UPDATE {table} SET {column} = :new || substr({column}, length(:old) + 1)
    WHERE substr({column}, 1, length(:old) + 1) = :old || '/'
      AND NOT (substr(:new, 1, length(:old) + 1) = :old || '/'
               AND substr({column}, 1, length(:new) + 1) = :new || '/')
"""


def opening_lock(folder: Path) -> FileLock:
    """A lock to hold while a store is created or moved."""
    return FileLock(folder / ".lock", timeout=PATIENCE)


def relocate(project: Path) -> int:
    """Move every address of the project's own store under the project; returns how many changed.

    Raises TrackingError when the database cannot be changed.
    """
    database = project / STORE / "mlflow.db"
    if not database.exists() or not _strangers(database, project):
        return 0
    try:
        with opening_lock(database.parent), closing(sqlite3.connect(database)) as connection:
            connection.isolation_level = None
            connection.execute("BEGIN IMMEDIATE")
            changed = sum(
                _rebase(connection, old, project) for old in sorted(_strangers(database, project))
            )
            connection.execute("COMMIT")
    except (sqlite3.Error, Timeout) as problem:
        raise TrackingError(
            f"{database} was moved with its project, but its addresses cannot be changed "
            f"({problem}); stop what uses it, or allow writing there"
        ) from problem
    return changed


def _strangers(database: Path, project: Path) -> set[str]:
    """The projects that the experiments say they belong to, other than this one, as URIs."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        if not _has_table(connection, "experiments"):
            return set()
        rows = connection.execute("SELECT artifact_location FROM experiments").fetchall()
    found = {_project_of(location) for (location,) in rows if location}
    return {old for old in found if old is not None and old != project.as_uri()}


def _project_of(location: str) -> str | None:
    """The project whose own store made this address; None for any other address."""
    suffix = f"/{STORE.as_posix()}/artifacts"
    own = location.startswith("file:///") and location.endswith(suffix)
    return location.removesuffix(suffix) if own else None


def _rebase(connection: sqlite3.Connection, old: str, project: Path) -> int:
    """MLflow writes an address as a URI, and that of its default experiment as a path."""
    path = url2pathname(urlsplit(old).path)
    changed = 0
    for table, column in _ADDRESSES:
        for before, after in ((old, project.as_uri()), (path, str(project))):
            if _has_table(connection, table):
                statement = _REBASE.format(table=table, column=column)
                changed += connection.execute(statement, {"old": before, "new": after}).rowcount
    return changed


def _has_table(connection: sqlite3.Connection, name: str) -> bool:
    query = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
    return bool(connection.execute(query, (name,)).fetchone()[0])
