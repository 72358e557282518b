"""A divided corpus: what is recorded of it, and the lists that divide it."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from neural_ngram.corpus.division import Division, divide, read_lists
from neural_ngram.corpus.document import Document
from neural_ngram.corpus.reading import Corpus
from neural_ngram.errors import ConfigurationError, PartitionError
from neural_ngram.settings import CorpusSettings, SplitSettings


def division(settings: CorpusSettings, **split: list[Document]) -> Division:
    parts = {name: split.get(name, []) for name in ("train", "validation", "test")}
    corpus = Corpus(documents=[])
    return Division(settings=settings, corpus=corpus, split=parts, overlaps=[], leakage={})


def test_another_encoding_and_the_characters_of_a_cut_text_are_recorded():
    particular = {"encoding", "characters", "test_partition"}
    latin = division(CorpusSettings(encoding="latin-1")).report
    assert {key: latin[key] for key in particular & latin.keys()} == {"encoding": "latin-1"}
    by_position = SplitSettings(method="position", train=0.9, validation=0.1)
    train = [Document(id="a[:2]", text="ab")]
    cut = division(CorpusSettings(split=by_position), train=train).report
    assert {key: cut[key] for key in particular & cut.keys()} == {
        "characters": {"train": 2, "validation": 0, "test": 0},
        "test_partition": "none",
    }
    assert not particular & division(CorpusSettings()).report.keys()


@pytest.mark.parametrize("content", [{"train": None}, {"train": 5}, {"trian": []}, {"test": [1]}])
def test_lists_that_are_no_lists_of_ids_are_refused(tmp_path: Path, content: dict):
    (tmp_path / "lists.json").write_text(json.dumps(content))
    with pytest.raises(ConfigurationError, match="lists of document IDs under train, validation"):
        read_lists(tmp_path / "lists.json")


TEXTS = {
    "a": "The quick brown fox jumps over the lazy dog.",
    "b": "A text of its own, which shares nothing.",
    "c": "the quick  brown fox jumps over the lazy dog.",
    "d": "Yet another one about entirely other things.",
}


def listed(tmp_path: Path, **options: float) -> Division:
    lists = {"train": ["a", "b"], "validation": ["c"], "test": ["d"]}
    (tmp_path / "lists.json").write_text(json.dumps(lists))
    split = SplitSettings(method="named", lists=str(tmp_path / "lists.json"), **options)
    documents = [Document(id=key, text=text) for key, text in TEXTS.items()]
    return divide(Corpus(documents=documents), CorpusSettings(split=split))


def test_the_tables_of_a_division_hold_each_document_once_with_its_hash(tmp_path: Path):
    divided = listed(tmp_path)
    assert divided.sizes == {"train": 2, "validation": 1, "test": 1}
    assert divided.tables["train"]["text"].tolist() == [TEXTS["a"], TEXTS["b"]]
    manifest = divided.manifest.set_index("id")
    assert manifest["partition"].to_dict() == {
        "a": "train",
        "b": "train",
        "c": "validation",
        "d": "test",
    }
    hashes = {key: sha256(text.encode()).hexdigest() for key, text in TEXTS.items()}
    assert manifest["sha256"].to_dict() == hashes


def test_a_division_reports_what_of_validation_has_a_near_duplicate_in_train(tmp_path: Path):
    divided = listed(tmp_path)
    assert divided.overlap_table.to_dict("records") == [
        {"partition": "validation", "id": "c", "train_id": "a", "similarity": 1.0}
    ]
    found = {name: part["near_duplicate_in_train"] for name, part in divided.leakage.items()}
    assert found == {"validation": 1.0, "test": 0.0}
    with pytest.raises(PartitionError, match=r"corpus\.split\.most_overlap allows 50\.0%"):
        listed(tmp_path, most_overlap=0.5)
