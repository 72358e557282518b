"""Word vectors in word2vec text format.

The first line holds the number of words and the width D; each other line a word and D numbers,
separated by spaces (Mikolov et al. 2013). GloVe files, which have no first line, are read as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from neural_ngram.errors import ArtifactError

__all__ = ["read_word2vec", "word2vec"]


def read_word2vec(
    path: Path, wanted: Mapping[str, int]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(M,) token IDs and (M, D) vectors of the words that are `wanted`; the others are skipped.

    Only the wanted vectors are held in memory. If a word occurs twice, the first counts.

    Raises ArtifactError when the file is missing, a line is malformed or no word is wanted.
    """
    found: dict[int, NDArray[np.float64]] = {}
    width = None
    for number, word, rest in _lines(path):
        if word in wanted and wanted[word] not in found:
            vector = _parse(path, number, rest)
            width = width or len(vector)
            if len(vector) != width:
                raise ArtifactError(
                    f"{path}, line {number}: {word!r} has {len(vector)} numbers but the words "
                    f"before it have {width}; repair the file"
                )
            found[wanted[word]] = vector
    if not found:
        raise ArtifactError(
            f"{path} has none of the {len(wanted)} words of the vocabulary; "
            "use vectors of the same language, and tokenizer.kind=word"
        )
    return np.array(list(found), dtype=np.int64), np.stack(list(found.values()))


def word2vec(words: Sequence[str], vectors_VD: NDArray[np.floating]) -> Iterator[str]:
    """The lines of a file: each word, without whitespace, and its numbers with all digits."""
    yield f"{len(words)} {vectors_VD.shape[1]}"
    for word, vector in zip(words, vectors_VD, strict=True):
        yield " ".join([word, *map(str, vector)])


def _lines(path: Path) -> Iterator[tuple[int, str, str]]:
    try:
        with path.open(encoding="utf-8") as handle:
            for number, line in enumerate(handle, start=1):
                word, _, rest = line.rstrip().partition(" ")
                if number > 1 or " " in rest:
                    yield number, word, rest
    except (OSError, UnicodeDecodeError) as problem:
        raise ArtifactError(
            f"{path} cannot be read ({problem}); check model.pretrained_embedding"
        ) from problem


def _parse(path: Path, number: int, numbers: str) -> NDArray[np.float64]:
    try:
        return np.array(numbers.split(" "), dtype=np.float64)
    except ValueError as problem:
        raise ArtifactError(
            f"{path}, line {number}: {problem}; expected a word and its numbers, separated by "
            "single spaces"
        ) from None
