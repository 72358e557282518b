"""Reading and writing the files that stages pass on: atomic, byte-stable, identified by hash.

Every writer writes to a temporary name in the same folder and then renames, so a file is whole
or absent. Every reader turns a missing or damaged file into one ArtifactError. What reads tables or
arrays imports the library for it when called, so that a command that needs none starts at once.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural_ngram.errors import ArtifactError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

__all__ = [
    "Column",
    "atomic",
    "read_array",
    "read_csv",
    "read_json",
    "read_table",
    "read_tensors",
    "read_text",
    "require_tokenizer",
    "sha256_of_file",
    "write_array",
    "write_bytes",
    "write_csv",
    "write_json",
    "write_table",
    "write_tensors",
    "write_text",
]


ROWS_AT_ONCE = 4096
_DESCRIPTION = "neural_ngram"


@contextmanager
def atomic(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """A temporary file beside `path`, renamed to it if the block succeeds, deleted if it fails.

    durable: wait until it is on disk, so that it also survives a power failure.

    Raises ArtifactError when it cannot be written: no space, no permission.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        yield temporary
        with temporary.open("rb") as written:
            if durable:
                os.fsync(written.fileno())
        temporary.replace(path)
    except FileNotFoundError:
        raise
    except OSError as problem:
        raise ArtifactError(
            f"{path} cannot be written ({problem}); free disk space or allow writing there, "
            "and run the same command again"
        ) from problem
    finally:
        with suppress(OSError):
            temporary.unlink()


def _sweep(path: Path) -> None:
    """Delete temporary files left by killed writers of this file."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        writer = left.name.removeprefix(f".{path.name}.").removesuffix(".tmp")
        if writer.isdecimal() and not _is_alive(int(writer)):
            left.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing; run `dvc repro` to create it") from None
    except Exception as problem:
        raise ArtifactError(
            f"{path} cannot be read ({problem}); delete it and run `dvc repro`"
        ) from problem


class _Object(dict[str, Any]):
    """A JSON object read from a file; the error for a missing key names the file."""

    def __init__(self, path: Path, content: Mapping[str, Any]) -> None:
        super().__init__(content)
        self.path = path

    def __missing__(self, key: str) -> Any:
        raise ArtifactError(f"{self.path} has no {key!r}; delete it and run `dvc repro`")


def _parse_json(path: Path, text: str) -> Any:
    return json.loads(text, object_hook=lambda content: _Object(path, content))


def sha256_of_file(path: Path) -> str:
    """Hexadecimal SHA-256 of a file's bytes."""
    with _reading(path), path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def read_text(path: Path) -> str:
    """Read UTF-8 text."""
    with _reading(path):
        return path.read_text(encoding="utf-8")


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON with sorted keys; NaN and infinity are refused."""
    write_text(
        path,
        json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n",
    )


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    with _reading(path):
        content = _parse_json(path, path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError(f"expected an object, found {type(content).__name__}")
        return content


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a parquet file."""
    with atomic(path) as temporary:
        table.to_parquet(temporary, index=False, compression="zstd")


def read_table(path: Path) -> pd.DataFrame:
    """Read a parquet file."""
    import pandas as pd  # noqa: PLC0415

    with _reading(path):
        return pd.read_parquet(path)


class Column:
    """A column of text in a parquet file, read a few thousand rows at a time, as often as needed.

    most: how many rows, from the first; None: all.
    """

    def __init__(self, path: Path, name: str, most: int | None = None) -> None:
        self.path, self.name, self.most = path, name, most

    def __iter__(self) -> Iterator[str]:
        return islice(self._values(), self.most)

    def _values(self) -> Iterator[str]:
        import pyarrow.parquet  # noqa: PLC0415

        with _reading(self.path), pyarrow.parquet.ParquetFile(self.path) as file:
            batches = file.iter_batches(ROWS_AT_ONCE, columns=[self.name])
            yield from chain.from_iterable(batch.column(0).to_pylist() for batch in batches)


def read_csv(path: Path) -> pd.DataFrame:
    """Read a CSV file; raises ArtifactError with its name."""
    import pandas as pd  # noqa: PLC0415

    with _reading(path):
        return pd.read_csv(path)


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a CSV file; floats keep every digit."""
    with atomic(path) as temporary:
        table.to_csv(temporary, index=False, lineterminator="\n")


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file as it is."""
    with atomic(path) as temporary:
        temporary.write_bytes(data)


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an npy file."""
    import numpy as np  # noqa: PLC0415

    with atomic(path) as temporary, temporary.open("wb") as handle:
        np.save(handle, array, allow_pickle=False)


def read_array(path: Path) -> NDArray[Any]:
    """Read an npy file, memory-mapped and read-only."""
    import numpy as np  # noqa: PLC0415

    with _reading(path), np.errstate(over="ignore"):
        return np.lib.format.open_memmap(path, mode="r")


def require_tokenizer(origin: Mapping[str, Any], sha256: str, what: str) -> None:
    """Raise ArtifactError when a model was not trained with the tokenizer of this SHA-256.

    origin: what the model was saved with. what: subject and verb of what has that tokenizer.
    """
    trained_with = origin.get("tokenizer_sha256")
    if trained_with is None:
        raise ArtifactError(
            "the model does not say which tokenizer it was trained with; train it again"
        )
    if trained_with != sha256:
        raise ArtifactError(
            f"the model was trained with another tokenizer: {trained_with[:12]}…, but {what} of "
            f"{sha256[:12]}…; run `dvc repro`, or use both from the same run"
        )


def write_tensors(
    path: Path,
    tensors: Mapping[str, NDArray[Any]],
    description: Mapping[str, Any],
    *,
    durable: bool = True,
) -> None:
    """Write a safetensors file; the description is its one metadata entry, as sorted JSON."""
    import safetensors.numpy  # noqa: PLC0415

    metadata = {_DESCRIPTION: json.dumps(description, sort_keys=True, allow_nan=False)}
    with atomic(path, durable=durable) as temporary:
        temporary.write_bytes(safetensors.numpy.save(dict(tensors), metadata))


def read_tensors(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays of a safetensors file and their description."""
    import safetensors  # noqa: PLC0415

    with _reading(path), safetensors.safe_open(path, framework="numpy") as handle:
        names = handle.keys()
        tensors = {name: handle.get_tensor(name) for name in names}
        description = _parse_json(path, (handle.metadata() or {})[_DESCRIPTION])
        if not isinstance(description, dict):
            raise ValueError(f"its description is {type(description).__name__}, not an object")
        return tensors, description
