"""Which tokens lie close together in embedding space.

Dimension letters: V vocabulary, D embedding width.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neural_ngram.errors import ModelError

__all__ = ["Neighbour", "nearest", "principal_plane"]

Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Neighbour:
    """A token, the cosine of the angle to it, and how far away it is."""

    token: int
    cosine: float
    distance: float


def nearest(embedding_VD: Floats, token: int, count: int) -> list[Neighbour]:
    """The `count` other tokens whose embeddings point most nearly the same way, nearest first.

    Ties go to the lower ID; a vector of zeros points nowhere and has cosine 0 with all others.

    Raises ModelError when the token lies outside the vocabulary.
    """
    V = len(embedding_VD)
    if not 0 <= token < V:
        raise ModelError(f"token {token} is outside the vocabulary of {V}; give an ID below {V}")
    vectors = embedding_VD.astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=1)
    scale = lengths * lengths[token]
    cosines = np.divide(vectors @ vectors[token], scale, out=np.zeros(V), where=scale > 0)
    distances = np.linalg.norm(vectors - vectors[token], axis=1)
    order = [int(other) for other in np.argsort(-cosines, kind="stable") if other != token]
    return [Neighbour(o, float(cosines[o]), float(distances[o])) for o in order[:count]]


def principal_plane(embedding_VD: Floats) -> tuple[NDArray[np.float64], float]:
    """(V, 2) the embeddings in the plane that keeps most of their variance, and that fraction.

    Two dimensions are left as they are. Each axis points where its largest entry is positive.
    """
    vectors = embedding_VD.astype(np.float64)
    if vectors.shape[1] == 2:
        return vectors, 1.0
    if vectors.shape[1] == 1:
        return np.concatenate([vectors, np.zeros_like(vectors)], axis=1), 1.0
    centred = vectors - vectors.mean(axis=0)
    _, strengths, axes = np.linalg.svd(centred, full_matrices=False)
    plane = centred @ axes[:2].T
    plane *= np.sign(plane[np.abs(plane).argmax(axis=0), [0, 1]])
    total = float((strengths**2).sum())
    return plane, float((strengths[:2] ** 2).sum()) / total if total else 1.0
