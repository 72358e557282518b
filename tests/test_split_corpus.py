"""What `split-corpus` reads."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from neural_ngram.corpus.document import Document
from neural_ngram.errors import ConfigurationError
from neural_ngram.settings import CorpusSettings, SplitSettings
from neural_ngram.stages.split_corpus import _corpus, _lists, _particulars, _warn


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


def test_what_is_odd_in_the_text_is_told(capsys: pytest.CaptureFixture[str]):
    _warn({"files": 2, "byte_order_marks_within_text": 3})
    assert "warning: 3 byte order marks (U+FEFF) within the text" in capsys.readouterr().out
    _warn({"files": 2})
    assert capsys.readouterr().out == ""


def test_another_encoding_and_the_characters_of_a_cut_text_are_recorded():
    split = {"train": [Document(id="a[:2]", text="ab")], "validation": [], "test": []}
    latin = CorpusSettings(encoding="latin-1")
    assert _particulars(latin, split) == {"encoding": "latin-1"}
    by_position = SplitSettings(method="position", train=0.9, validation=0.1)
    assert _particulars(CorpusSettings(split=by_position), split) == {
        "characters": {"train": 2, "validation": 0, "test": 0},
        "test_partition": "none",
    }
    assert _particulars(CorpusSettings(), split) == {}


@pytest.mark.parametrize("content", [{"train": None}, {"train": 5}, {"trian": []}, {"test": [1]}])
def test_lists_that_are_no_lists_of_ids_are_refused(tmp_path: Path, content: dict):
    (tmp_path / "lists.json").write_text(json.dumps(content))
    with pytest.raises(ConfigurationError, match="lists of document IDs under train, validation"):
        _lists(str(tmp_path / "lists.json"))
