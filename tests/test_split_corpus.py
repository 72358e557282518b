"""What `split-corpus` reads."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from neural_ngram.errors import ConfigurationError
from neural_ngram.settings import CorpusSettings
from neural_ngram.stages.split_corpus import _corpus, _lists


def test_files_of_an_earlier_address_are_not_read_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    texts = {"a.txt": "first", "b.txt": "second", "c.txt": "third"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)

    def read(*names: str) -> set[str]:
        hashes = (sha256(texts[name].encode()).hexdigest() for name in names)
        addresses = " ".join((tmp_path / name).as_uri() for name in names)
        settings = CorpusSettings(name="x", url=addresses, sha256=" ".join(hashes))
        return {document.text for document in _corpus(settings)[0].documents}

    assert read("a.txt", "b.txt") == {"first", "second"}
    assert read("b.txt", "c.txt") == {"second", "third"}


@pytest.mark.parametrize("content", [{"train": None}, {"train": 5}, {"trian": []}, {"test": [1]}])
def test_lists_that_are_no_lists_of_ids_are_refused(tmp_path: Path, content: dict):
    (tmp_path / "lists.json").write_text(json.dumps(content))
    with pytest.raises(ConfigurationError, match="lists of document IDs under train, validation"):
        _lists(str(tmp_path / "lists.json"))
