"""How many of another partition's windows, context and target, the model saw in train."""

import numpy as np

from neural_ngram.corpus.shingles import fraction_among, runs
from neural_ngram.tokens.windows import Windows

__all__ = ["seen_in_train"]


def seen_in_train(train: Windows, other: Windows) -> float:
    """The fraction of the other windows whose whole context and target occur in train."""
    width = train.context_length + 1
    known, asked = (
        runs(part.tokens, width)[part.positions - part.context_length] for part in (train, other)
    )
    return fraction_among(asked, np.sort(known))
