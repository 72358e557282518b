"""Where the documents of a corpus come from: files, a download, or a source that is drawn."""

from hashlib import sha256
from pathlib import Path

import numpy as np

from neural_ngram.corpus.document import Document
from neural_ngram.corpus.download import fetch
from neural_ngram.corpus.reading import Corpus, merge_rare_words, read_corpus
from neural_ngram.corpus.synthetic import MarkovSource
from neural_ngram.errors import ConfigurationError
from neural_ngram.settings import CorpusSettings, SourceSettings

__all__ = ["corpus_at", "corpus_of", "draw_corpus"]


def corpus_of(settings: CorpusSettings, downloads: Path) -> Corpus:
    """The documents that the settings ask for; what `corpus.url` names is kept in `downloads`.

    Raises ConfigurationError when neither `path` nor `url` is set, and what `read_corpus`, `fetch`
    and `draw_corpus` raise.
    """
    if settings.source.documents:
        return draw_corpus(settings.source)
    return corpus_at(_path(settings, downloads), settings)


def corpus_at(path: Path, settings: CorpusSettings) -> Corpus:
    """The documents of a file or folder, read as the settings say; raises as `read_corpus` does."""
    corpus = read_corpus(
        path,
        unit=settings.unit,
        encoding=settings.encoding,
        files=settings.files,
        document_mark=settings.document_mark,
        paragraph_mark=settings.paragraph_mark,
    )
    return merge_rare_words(corpus, settings.minimum_frequency)


def draw_corpus(settings: SourceSettings) -> Corpus:
    """Synthetic documents of a Markov source, with the exact conditional entropies of the source.

    Raises ConfigurationError when a setting is out of range.
    """
    generator = np.random.default_rng(settings.seed)
    source = MarkovSource.draw(
        generator,
        alphabet=settings.alphabet,
        order=settings.order,
        concentration=settings.concentration,
    )
    texts = source.documents(generator, count=settings.documents, length=settings.length)
    return Corpus(
        documents=[Document(id=f"{n}", text=text) for n, text in enumerate(texts, start=1)],
        counts={"documents": len(texts)},
        entropies_nats=source.conditional_entropies(),
    )


def _path(settings: CorpusSettings, downloads: Path) -> Path:
    if settings.path is not None:
        return Path(settings.path)
    if settings.url is None:
        raise ConfigurationError(
            f"the corpus {settings.name!r} has no corpus.url; set corpus.path to a local copy"
        )
    pinned = sha256(f"{settings.url} {settings.sha256}".encode()).hexdigest()[:12]
    folder = downloads / settings.name / pinned  # a version's own, lest files of two be mixed
    return fetch(settings.url, settings.sha256, folder, most_bytes=settings.most_bytes)
