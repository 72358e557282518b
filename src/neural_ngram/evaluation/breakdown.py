"""Where the loss arises: by position in the document, by token frequency, and by confidence.

Dimension letters: N windows, V vocabulary, G groups.

Positions and counts are grouped in bands of doubling width, 1, 2–3, 4–7 and so on, so that each
holds enough tokens. Calibration follows Guo et al. 2017 (arXiv:1706.04599).
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from neural_ngram.evaluation.scoring import Scores
from neural_ngram.tokens.windows import Windows

__all__ = ["calibration", "calibration_error", "loss_by_frequency", "loss_by_position"]

BINS = 10

Parts = Mapping[str, tuple[Windows, Scores]]


def loss_by_position(parts: Parts) -> pd.DataFrame:
    """One row per band of positions: the first position, and tokens and loss in nats by partition.

    The first target of a document has position 1: its C-th token without padding, counted from 0.
    """
    return _losses("first_place", {name: _places(w) for name, (w, _) in parts.items()}, parts)


def loss_by_frequency(parts: Parts) -> pd.DataFrame:
    """One row per band of counts: the least count, and tokens and loss in nats by partition.

    The count of a token is how often it is a target of `train`; 0 is a band of its own.
    """
    targets = {name: windows.targets().astype(np.int64) for name, (windows, _) in parts.items()}
    V = 1 + max(int(target_N.max()) for target_N in targets.values())
    count_V = np.bincount(targets["train"], minlength=V)
    counts = {name: count_V[target_N] for name, target_N in targets.items()}
    return _losses("least_count", counts, parts)


def calibration(scores: Scores) -> pd.DataFrame:
    """One row per tenth of probability that the model ever gave to its most probable token.

    Columns: from, to, tokens, predicted (its mean probability there), observed (its frequency).
    """
    bin_N = np.minimum((scores.confidences * BINS).astype(np.int64), BINS - 1)
    tokens = np.bincount(bin_N, minlength=BINS)
    used = np.flatnonzero(tokens)
    means = {
        name: np.bincount(bin_N, weights=values, minlength=BINS)[used] / tokens[used]
        for name, values in (("predicted", scores.confidences), ("observed", scores.hits))
    }
    edges = {"from": used / BINS, "to": (used + 1) / BINS, "tokens": tokens[used]}
    return pd.DataFrame(edges | means)


def calibration_error(table: pd.DataFrame) -> float:
    """The mean distance of predicted from observed, weighted by tokens: ECE, Guo et al. 2017."""
    distances = (table["predicted"] - table["observed"]).abs()
    return float((distances * table["tokens"]).sum() / table["tokens"].sum())


def _places(windows: Windows) -> NDArray[np.int64]:
    """(N,) which target of its document each window has, from 1."""
    document_N = np.searchsorted(windows.offsets, windows.positions, side="right") - 1
    return windows.positions - windows.offsets[document_N] - windows.context_length + 1


def _losses(name: str, numbers: Mapping[str, NDArray[np.int64]], parts: Parts) -> pd.DataFrame:
    """Tokens and loss of each partition by non-empty bands of `numbers`, (N,) each."""
    bands = {part: np.frexp(number_N)[1] for part, number_N in numbers.items()}
    G = 1 + max(int(band_N.max()) for band_N in bands.values())
    columns: dict[str, NDArray[np.generic]] = {name: (1 << np.arange(G)) >> 1}
    for part, (_, scores) in parts.items():
        tokens_G = np.bincount(bands[part], minlength=G)
        nats_G = -np.bincount(bands[part], weights=scores.log_probabilities, minlength=G)
        columns[f"{part}_tokens"] = tokens_G
        with np.errstate(invalid="ignore"):
            columns[f"{part}_loss_nats"] = nats_G / tokens_G
    table = pd.DataFrame(columns)
    used = table[[f"{part}_tokens" for part in parts]].any(axis=1)
    return table.loc[used].reset_index(drop=True)
