"""The sentences about a divided corpus."""

from collections.abc import Mapping

import pytest

from neural_ngram.corpus.division import Division
from neural_ngram.corpus.document import Document
from neural_ngram.corpus.reading import Corpus
from neural_ngram.corpus.summary import sentences
from neural_ngram.settings import CorpusSettings, SplitSettings

PLAIN = {"documents": 3, "files": 1, "empty_documents_dropped": 0, "utf8_bytes": 30}


def said(counts: Mapping[str, int], settings: CorpusSettings | None = None, **leakage) -> list[str]:
    one = [Document(id="a", text="a")]
    split = {"train": one, "validation": one, "test": one if not settings else []}
    divided = Division(
        settings=settings or CorpusSettings(),
        corpus=Corpus(documents=one, counts=dict(counts)),
        split=split,
        overlaps=[],
        leakage=leakage,
    )
    return list(sentences(divided))


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ({}, "3 documents from 1 file (0 empty dropped)"),
        ({"documents": 1, "files": 1234}, "1 document from 1,234 files (0 empty dropped)"),
        (
            {"empty_documents_dropped": 2, "files_with_bom": 1, "hidden_files_left_out": 4},
            "3 documents from 1 file (2 empty dropped, 1 file with a byte order mark, "
            "4 hidden files skipped)",
        ),
        ({"files_with_crlf": 0}, "3 documents from 1 file (0 empty dropped)"),
    ],
)
def test_what_was_read_is_one_sentence(counts: dict[str, int], sentence: str):
    assert said(PLAIN | counts)[:2] == [sentence, "divided into 1 train, 1 validation, 1 test"]


def test_a_drawn_corpus_comes_from_no_file():
    assert said({"documents": 3})[0] == "3 documents drawn from the synthetic source"


def test_what_is_odd_in_the_text_is_a_warning():
    warning = "warning: the text contains 3 byte order marks (U+FEFF) within the text, which are"
    assert said(PLAIN | {"byte_order_marks_within_text": 3})[1].startswith(warning)
    assert not any("warning" in sentence for sentence in said(PLAIN))


@pytest.mark.parametrize(
    ("split", "sentence"),
    [
        (
            SplitSettings(method="whole"),
            "no held-out text: validation repeats train, and test is empty",
        ),
        (
            SplitSettings(method="position", train=0.9, validation=0.1),
            "no test partition: train and validation use all of the text",
        ),
    ],
)
def test_what_is_not_held_out_is_said(split: SplitSettings, sentence: str):
    assert said(PLAIN, CorpusSettings(split=split))[-1] == sentence


def test_the_overlap_with_train_is_a_sentence_per_partition():
    found = {"same_text_in_train": 0.25, "near_duplicate_in_train": 0.5}
    assert said(PLAIN, validation=found)[-1] == (
        "validation: 25.0% of documents also occur in train, 50.0% have a near duplicate there"
    )
