"""The model card: what the model is, its figures, how to load it without this package."""

from collections.abc import Mapping
from typing import Any

from neural_ngram.export.templates import fill
from neural_ngram.model.architecture import Architecture, parameter_count, parameter_shapes
from neural_ngram.model.hidden import hidden_names, layer_named
from neural_ngram.settings import CorpusSettings, ModelSettings

__all__ = ["model_card"]


def model_card(
    name: str,
    architecture: Architecture,
    corpus: CorpusSettings,
    figures: Mapping[str, Any],
    hashes: Mapping[str, str],
) -> str:
    """A README in Markdown, whose Python computes the logits with numpy alone.

    figures: what `evaluate` measured. hashes: SHA-256 by the name of what it identifies.
    """
    return fill(
        "card.md",
        name=name,
        architecture=architecture,
        settings=architecture.settings,
        parameters=parameter_count(architecture),
        shapes=parameter_shapes(architecture),
        hidden=_hidden(architecture.settings),
        corpus=corpus,
        source=_source(corpus),
        losses={part: figures[part] for part in ("train", "validation", "test") if part in figures},
        hashes=hashes,
    )


def _hidden(settings: ModelSettings) -> list[str]:
    """The lines of Python that turn x into what the output reads, named h throughout."""
    lines: list[str] = []
    for names in hidden_names(settings):
        weights = {name: f'weights["{full}"]' for name, full in names.items()}
        lines += layer_named(settings.hidden).python(weights)
    return lines


def _source(corpus: CorpusSettings) -> str:
    if corpus.source.documents:
        return "a Markov source that generates synthetic text"
    return f"`{corpus.path}`" if corpus.path else f"<{(corpus.url or '').split(' ')[0]}>"
