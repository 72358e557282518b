"""A Kneser-Ney model on disk: its counts and discounts in one file.

The weights follow from these, so they are not stored. The same model gives the same bytes.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from neural_ngram.artifacts import read_tensors, write_tensors
from neural_ngram.errors import ArtifactError, ModelError
from neural_ngram.ngram.discounts import Discounts
from neural_ngram.ngram.kneser_ney import TOKEN, KneserNey, Level

__all__ = ["load_kneser_ney", "save_kneser_ney"]

ARRAYS = {"contexts": np.uint64, "grams": np.uint64, "counts": np.int64}


def save_kneser_ney(model: KneserNey, path: Path) -> None:
    """Write the model as a safetensors file."""
    arrays = {
        f"{order}.{name}": getattr(level, name).astype(dtype)
        for order, level in enumerate(model.levels, start=1)
        for name, dtype in ARRAYS.items()
    }
    description = {
        "bos": model.bos,
        "discounts": [asdict(discounts) for discounts in model.discounts],
        "vocabulary_size": model.vocabulary_size,
    }
    write_tensors(path, arrays, description)


def load_kneser_ney(path: Path) -> KneserNey:
    """Read a model back, or raise if any part is invalid.

    Raises ArtifactError when the file is missing, damaged, or does not contain valid counts.
    """
    arrays, described = read_tensors(path)
    discounts, vocabulary_size, bos = _described(described, path)
    levels: list[Level] = []
    for order, discount in enumerate(discounts, start=1):
        found = {name: arrays.pop(f"{order}.{name}", np.empty((0, 0))) for name in ARRAYS}
        for name, array in found.items():
            if array.ndim != 1 or array.dtype != ARRAYS[name]:
                raise _damaged(path, f"{name} of order {order} are not {ARRAYS[name].__name__}s")
        level = Level(**found, discounts=discount)
        shorter = len(levels[-1].contexts) if levels else 0
        _check_level(level, path, (shorter, vocabulary_size))
        levels.append(level)
    if arrays:
        raise _damaged(path, f"{min(arrays)} belongs to no order that has discounts")
    return KneserNey(levels=tuple(levels), vocabulary_size=vocabulary_size, bos=bos)


def _damaged(path: Path, reason: str) -> ArtifactError:
    return ArtifactError(f"{path} is not a valid model: {reason}; delete it and run `dvc repro`")


def _described(described: dict[str, Any], path: Path) -> tuple[list[Discounts], int, int | None]:
    size, bos = described.get("vocabulary_size"), described.get("bos")
    if type(size) is not int or not 1 <= size < 2**32:
        raise _damaged(path, f"its vocabulary size is {size!r}")
    if bos is not None and (type(bos) is not int or not 0 <= bos < size):
        raise _damaged(path, f"its BOS {bos!r} is outside its vocabulary of {size}")
    try:
        discounts = [Discounts(**one) for one in described["discounts"]]
    except (KeyError, TypeError, ModelError) as problem:
        raise _damaged(path, f"its discounts are wrong ({problem})") from problem
    if not discounts:
        raise _damaged(path, "it has no discounts, so no order")
    return discounts, size, bos


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
            raise _damaged(path, f"the {name} refer to a context or a token that does not exist")
    if len(level.counts) != len(level.grams) or (level.counts < 1).any():
        raise _damaged(path, "there is not one count of at least 1 per n-gram")
    if len(np.unique(level.grams >> TOKEN)) != len(level.contexts):
        raise _damaged(path, "a context has no n-gram")
    if not shorter and level.contexts.tolist() != [0]:
        raise _damaged(path, "single tokens have a context")
