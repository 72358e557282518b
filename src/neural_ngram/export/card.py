"""The card that goes with a model: what it is, what came out, how to load it without us."""

from collections.abc import Mapping
from typing import Any

from neural_ngram.errors import ModelError
from neural_ngram.model import Architecture, parameter_count, parameter_shapes
from neural_ngram.model.hidden import layer_suffixes
from neural_ngram.settings import CorpusSettings
from neural_ngram.templates import fill

__all__ = ["model_card"]

ACTIVATIONS = {
    "tanh": "np.tanh(z)",
    "relu": "np.maximum(z, 0)",
    "sigmoid": "1 / (1 + np.exp(-z))",
    "gelu": "z * (1 + np.vectorize(math.erf)(z / math.sqrt(2))) / 2",
}


def model_card(
    name: str,
    architecture: Architecture,
    corpus: CorpusSettings,
    figures: Mapping[str, Any],
    hashes: Mapping[str, str],
) -> str:
    """A README in Markdown, whose Python computes the logits with numpy alone.

    figures: what `evaluate` measured. hashes: SHA-256 by the name of what it identifies.

    Raises ModelError when that Python is not known for the model's hidden layers or output.
    """
    settings = architecture.settings
    if settings.hidden not in ("none", "swiglu", *ACTIVATIONS) or settings.output != "softmax":
        raise ModelError(
            f"the card of model.hidden={settings.hidden}, model.output={settings.output} would "
            f"need Python that is not written here; add it to {__file__}"
        )
    return fill(
        "card.md",
        name=name,
        architecture=architecture,
        settings=settings,
        parameters=parameter_count(architecture),
        shapes=parameter_shapes(architecture),
        suffixes=layer_suffixes(architecture.settings),
        activations=ACTIVATIONS,
        corpus=corpus,
        source=_source(corpus),
        losses={part: figures[part] for part in ("train", "validation", "test") if part in figures},
        hashes=hashes,
    )


def _source(corpus: CorpusSettings) -> str:
    if corpus.source.documents:
        return "a Markov source that is drawn anew"
    return f"`{corpus.path}`" if corpus.path else f"<{(corpus.url or '').split(' ')[0]}>"
