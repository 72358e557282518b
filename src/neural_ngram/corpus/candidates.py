"""Which texts are worth comparing: MinHash sketches that agree in a whole band.

Bands are those of locality-sensitive hashing (Broder 1997; Indyk & Motwani 1998). In templated text
most sketches share bands with most others, so that comparing all pairs of a band would be
quadratic. From a crowded band only the nearest in lexicographic order are taken, which agree with
the sketch in the longest run of further values (Bawa et al. 2005), and of all these the `MOST` that
agree in most values. The cost grows with the number of texts and not with its square.

Dimension letters: N sketches, P values in a sketch (permutations).
"""

from itertools import pairwise
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from neural_ngram.errors import CorpusError

__all__ = ["MOST", "PERMUTATIONS", "Candidates", "datasketch"]

PERMUTATIONS = 128
MOST = 24  # compared with one text; in names and EWT no text has more candidates
NEAREST = 16  # taken from a crowded band, on either side
DEPTH = 16  # number of values of a sketch, from the band's first, that are sorted by
_RATHER_FIND = (0.1, 0.9)  # weights of false and of missed candidates

Sketch = NDArray[np.uint32]


def datasketch() -> ModuleType:
    """The library of MinHash, which only the search for near duplicates needs.

    Raises CorpusError when it is not installed.
    """
    try:
        import datasketch  # noqa: PLC0415 - an extra, and SciPy with it
    except ModuleNotFoundError as missing:
        raise CorpusError(
            f"the search for near duplicates needs {missing.name}, which is not installed; "
            "pip install 'neural-ngram[pipeline]'"
        ) from missing
    found: ModuleType = datasketch
    return found


class Candidates:
    """An index of sketches that returns those that may be as similar as the threshold.

    sketches_NP: (N, P) the values of each sketch.
    """

    def __init__(self, sketches_NP: Sketch, threshold: float) -> None:
        # Above 0.99 the library finds no bands; those of 0.99 find what lies above it, too.
        law = datasketch().MinHashLSH(
            threshold=min(threshold, 0.99), num_perm=PERMUTATIONS, weights=_RATHER_FIND
        )
        self._sketches_NP, self._width = sketches_NP, law.r
        self._bands = [_Band(sketches_NP, start, law.r) for start in range(0, law.b * law.r, law.r)]

    def of(self, sketch_P: Sketch) -> list[int]:
        """The indices of at most `MOST` sketches to compare with this one, ascending."""
        found = {place for band in self._bands for place in band.near(sketch_P)}
        places = np.array(sorted(found), dtype=np.int64)
        if len(places) > MOST:
            agreeing = (self._sketches_NP[places] == sketch_P).sum(axis=1)
            places = np.sort(places[np.argsort(-agreeing, kind="stable")[:MOST]])
        return [int(place) for place in places]


class _Band:
    """The sketches in the order of their values from `start` on, gathered by the first `width`."""

    def __init__(self, sketches_NP: Sketch, start: int, width: int) -> None:
        self._columns = np.arange(start, start + max(DEPTH, width)) % PERMUTATIONS
        self._prefix = 4 * width  # bytes
        keys = self._keys(sketches_NP)
        self._order = np.argsort(keys, kind="stable")
        self._sorted = keys[self._order]
        prefixes = self._sorted.astype(f"S{self._prefix}")
        distinct, starts = np.unique(prefixes, return_index=True)
        edges = pairwise([*starts.tolist(), len(keys)])
        self._groups = {bytes(key): edge for key, edge in zip(distinct, edges, strict=True)}

    def _keys(self, sketches_NP: Sketch) -> NDArray[np.bytes_]:
        """(N,) byte strings that compare as the values do."""
        values = np.ascontiguousarray(sketches_NP[:, self._columns]).astype(">u4")
        return values.view(f"S{4 * len(self._columns)}")[:, 0]

    def near(self, sketch_P: Sketch) -> list[int]:
        """The indices of those that share the band; only the nearest ones where it is crowded."""
        (key,) = self._keys(sketch_P[None])
        first, end = self._groups.get(bytes(key[: self._prefix]).rstrip(b"\0"), (0, 0))
        if end - first > 2 * NEAREST:
            place = first + int(np.searchsorted(self._sorted[first:end], key))
            first, end = max(first, place - NEAREST), min(end, place + NEAREST)
        return [int(place) for place in self._order[first:end]]
