"""A Kneser-Ney model in a folder: its counts as .npy files, and a .json that vouches for them.

Only counts and discounts are stored: the weights follow from them. The same model gives the same
bytes.
"""

import hashlib
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neural_ngram.errors import ArtifactError, ModelError
from neural_ngram.ngram.discounts import Discounts
from neural_ngram.ngram.kneser_ney import TOKEN, KneserNey, Level

__all__ = ["load_kneser_ney", "save_kneser_ney"]

FORMAT = "kneser-ney-1"
DESCRIPTION = "kneser_ney.json"
ARRAYS = {"contexts": np.uint64, "grams": np.uint64, "counts": np.int64}


def save_kneser_ney(model: KneserNey, folder: Path) -> None:
    """Write the model to `folder`, which is made when it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    digests = {}
    for order, level in enumerate(model.levels, start=1):
        for name, dtype in ARRAYS.items():
            data = _npy(getattr(level, name).astype(dtype))
            (folder / _file(order, name)).write_bytes(data)
            digests[_file(order, name)] = hashlib.sha256(data).hexdigest()
    description = {
        "bos": model.bos,
        "discounts": [asdict(discounts) for discounts in model.discounts],
        "format": FORMAT,
        "order": model.order,
        "sha256": digests,
        "vocabulary_size": model.vocabulary_size,
    }
    text = json.dumps(description, indent=2, sort_keys=True) + "\n"
    (folder / DESCRIPTION).write_text(text, encoding="utf-8", newline="\n")


def load_kneser_ney(folder: Path) -> KneserNey:
    """Read a model back, whole or not at all.

    Raises ArtifactError when a file is missing, damaged, from another model, or not a count.
    """
    described = _description(folder)
    order, vocabulary_size = described["order"], described["vocabulary_size"]
    levels: list[Level] = []
    for m in range(1, order + 1):
        arrays = {name: _array(folder, _file(m, name), described["sha256"]) for name in ARRAYS}
        level = Level(**arrays, discounts=_discounts(folder, described["discounts"], m))
        shorter = len(levels[-1].contexts) if levels else 0
        _check_level(level, folder / _file(m, "*"), (shorter, vocabulary_size))
        levels.append(level)
    return KneserNey(levels=tuple(levels), vocabulary_size=vocabulary_size, bos=described["bos"])


def _file(order: int, name: str) -> str:
    return f"{order}-{name}.npy"


def _npy(array: NDArray[np.integer]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _damaged(path, f"it cannot be read ({error.strerror})") from error


def _damaged(path: Path, reason: str) -> ArtifactError:
    return ArtifactError(
        f"{path} is not part of a Kneser-Ney model: {reason}; make the model again "
        "(dvc repro) or restore its whole folder (dvc checkout)"
    )


def _description(folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION
    try:
        found = json.loads(_read(path))
    except ValueError as error:
        raise _damaged(path, f"it is not JSON ({error})") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise _damaged(path, f"its format is not {FORMAT!r}")
    for name, least in {"order": 1, "vocabulary_size": 1, "bos": 0}.items():
        value = found.get(name, "missing")
        if name == "bos" and value is None:
            continue
        if type(value) is not int or not least <= value < 2**32:
            raise _damaged(path, f"its {name} is {value!r}, not a whole number from {least}")
    if not isinstance(found.get("sha256"), dict) or not isinstance(found.get("discounts"), list):
        raise _damaged(path, "it lists no sha256 of its files or no discounts")
    if len(found["discounts"]) != found["order"]:
        raise _damaged(path, f"its discounts are not those of {found['order']} orders")
    if found["bos"] is not None and found["bos"] >= found["vocabulary_size"]:
        raise _damaged(path, f"its bos {found['bos']} is outside its vocabulary")
    return found


def _discounts(folder: Path, described: list[dict[str, Any]], order: int) -> Discounts:
    try:
        return Discounts(**described[order - 1])
    except (ModelError, TypeError) as error:
        raise _damaged(folder / DESCRIPTION, f"the discounts of order {order}: {error}") from error


def _array(folder: Path, name: str, digests: dict[str, str]) -> NDArray[Any]:
    data = _read(folder / name)
    if hashlib.sha256(data).hexdigest() != digests.get(name):
        raise _damaged(folder / name, f"its SHA-256 is not the one in {DESCRIPTION}")
    try:
        array: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    except (EOFError, ValueError) as error:
        raise _damaged(folder / name, f"it is not an array ({error})") from error
    dtype = ARRAYS[name.split("-")[1].removesuffix(".npy")]
    if array.ndim != 1 or array.dtype != dtype:
        raise _damaged(folder / name, f"it is a {array.ndim}-dimensional array of {array.dtype}")
    return array


def _check_level(level: Level, path: Path, sizes: tuple[int, int]) -> None:
    """Check what scoring relies on; sizes: contexts one level down (0: none), vocabulary."""
    shorter, vocabulary_size = sizes
    numbers = {
        "contexts": (level.contexts, max(shorter, 1), vocabulary_size),
        "grams": (level.grams, len(level.contexts), vocabulary_size),
    }
    for name, (keys, largest, tokens) in numbers.items():
        if (keys[1:] <= keys[:-1]).any():
            raise _damaged(path, f"the {name} are not sorted and distinct")
        if (keys >> TOKEN >= largest).any() or (keys & np.uint64(0xFFFFFFFF) >= tokens).any():
            raise _damaged(path, f"the {name} name a context or a token that is not there")
    if len(level.counts) != len(level.grams) or (level.counts < 1).any():
        raise _damaged(path, "the counts are not one a gram, each at least 1")
    if len(np.unique(level.grams >> TOKEN)) != len(level.contexts):
        raise _damaged(path, "a context has no gram")
    if not shorter and level.contexts.tolist() != [0]:
        raise _damaged(path, "single tokens have a context")
