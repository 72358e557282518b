"""Where documents come from."""

from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from neural_ngram.corpus.origin import corpus_of, draw_corpus
from neural_ngram.corpus.synthetic import MarkovSource
from neural_ngram.errors import ConfigurationError
from neural_ngram.settings import CorpusSettings, SourceSettings


def test_files_of_an_earlier_address_are_not_read_along(tmp_path: Path):
    texts = {"a.txt": "first", "b.txt": "second", "c.txt": "third"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)

    def read(*names: str) -> set[str]:
        hashes = (sha256(texts[name].encode()).hexdigest() for name in names)
        addresses = " ".join((tmp_path / name).as_uri() for name in names)
        settings = CorpusSettings(name="x", url=addresses, sha256=" ".join(hashes))
        return {document.text for document in corpus_of(settings, tmp_path / "raw").documents}

    assert read("a.txt", "b.txt") == {"first", "second"}
    assert read("b.txt", "c.txt") == {"second", "third"}


def test_a_corpus_without_path_and_address_is_refused(tmp_path: Path):
    with pytest.raises(ConfigurationError, match=r"'x' has no corpus\.url; set corpus\.path"):
        corpus_of(CorpusSettings(name="x"), tmp_path)


def test_a_drawn_corpus_is_that_of_its_source_and_brings_its_entropies(tmp_path: Path):
    asked = SourceSettings(documents=3, length=50, alphabet="abc", order=1, seed=7)
    generator = np.random.default_rng(7)
    source = MarkovSource.draw(
        generator, alphabet="abc", order=1, concentration=asked.concentration
    )
    drawn = draw_corpus(asked)
    assert [document.text for document in drawn.documents] == source.documents(
        generator, count=3, length=50
    )
    assert [document.id for document in drawn.documents] == ["1", "2", "3"]
    assert drawn.entropies_nats == source.conditional_entropies()
    assert corpus_of(CorpusSettings(source=asked), tmp_path) == drawn
