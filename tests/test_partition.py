import hashlib
import itertools
import json
import random
from collections import Counter
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from neural_ngram.corpus.document import Document
from neural_ngram.corpus.partition import PARTITIONS, parted, split_documents
from neural_ngram.corpus.reading import read_corpus
from neural_ngram.errors import PartitionError
from neural_ngram.settings import SplitSettings

ROOT = Path(__file__).parents[1]
NAMES = {"method": "ratios", "seed": 42, "keep_duplicates_together": False}


def document(identifier, text=None, group=None, source=""):
    text = identifier if text is None else text
    return Document(id=identifier, text=text, provenance_group=group, source=source)


@st.composite
def corpora(draw):
    groups, words = st.sampled_from([None, None, "g", "h"]), st.sampled_from("abcdefgh")
    pairs = draw(st.lists(st.tuples(words, groups), min_size=1, max_size=16))
    return [document(f"d{n}", text, group) for n, (text, group) in enumerate(pairs)]


def linked(one, other, *, texts):
    same_group = one.provenance_group is not None and one.provenance_group == other.provenance_group
    return same_group or (texts and one.text == other.text)


def components(documents, *, texts):
    """Documents that must stay together: grown by hand until nothing more is linked."""
    rest, found = list(documents), []
    while rest:
        component = [rest.pop(0)]
        for member in component:
            component += [other for other in rest if linked(member, other, texts=texts)]
            rest = [other for other in rest if other not in component]
        found.append([document for document in documents if document in component])
    return found


def names(settings, documents, lists=None):
    split = split_documents(documents, SplitSettings(**settings), lists)
    return {name: [document.id for document in split[name]] for name in PARTITIONS}


def complaint(settings, documents, lists=None):
    with pytest.raises(PartitionError) as caught:
        names(settings, documents, lists)
    return str(caught.value)


@given(corpora(), st.integers(0, 99), st.booleans())
def test_ratios_cut_the_shuffled_units_that_must_stay_together(documents, seed, together):
    units = components(documents, texts=together)
    random.Random(seed).shuffle(units)
    first, second = len(units) * 5 // 10, len(units) * 7 // 10
    cuts = {"train": units[:first], "validation": units[first:second], "test": units[second:]}
    expected = {name: [one.id for unit in chosen for one in unit] for name, chosen in cuts.items()}
    settings = {
        "train": 0.5,
        "validation": 0.2,
        "seed": seed,
        "keep_duplicates_together": together,
    }
    if all(expected.values()):
        assert names(settings, documents) == expected
    else:
        assert "partition is empty" in complaint(settings, documents)


@given(corpora(), st.integers(0, 99))
def test_partitions_are_disjoint_and_complete_and_part_no_group_and_no_text(documents, seed):
    everyone = [document(f"alone {n}") for n in range(20)] + documents
    split = split_documents(everyone, SplitSettings(seed=seed))
    ids = Counter(document.id for part in split.values() for document in part)
    assert ids == Counter(document.id for document in everyone)
    for one, other in itertools.combinations(split.values(), 2):
        assert not any(linked(a, b, texts=True) for a in one for b in other)
    assert parted(split) == {"parted_groups": 0, "parted_texts": 0}


@pytest.mark.parametrize(
    ("size", "train", "validation", "counts"),
    [
        (10, 0.8, 0.1, (8, 1, 1)),
        (10, 0.6, 0.3, (6, 3, 1)),
        (100, 0.29, 0.57, (29, 57, 14)),
        (32_033, 0.8, 0.1, (25_626, 3_203, 3_204)),
        (19, 0.8, 0.1, (15, 2, 2)),
    ],
)
def test_ratios_give_the_counts_that_are_meant(size, train, validation, counts):
    settings = {"train": train, "validation": validation}
    found = names(settings, [document(str(n)) for n in range(size)])
    assert tuple(len(found[name]) for name in PARTITIONS) == counts


def test_parted_groups_and_texts_are_counted_once_each():
    split = {
        "train": [document("a", "same", "g"), document("b", "same"), document("c", "x", "h")],
        "validation": [document("d", "same", "g"), document("e", "y", "h")],
        "test": [document("f", "same"), document("g", "z", "alone")],
    }
    assert parted(split) == {"parted_groups": 2, "parted_texts": 1}


SPACES = st.sampled_from([" ", "\n", "\n\n", "\u2003", "  "])


@st.composite
def texts_in_order(draw):
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=6))
    words = iter(range(sum(lengths)))
    return [
        document(f"d{n}", "".join(f"{draw(SPACES)}w{next(words)}" for _ in range(length)))
        for n, length in enumerate(lengths)
    ]


@given(texts_in_order(), st.integers(0, 12), st.integers(0, 12))
def test_contiguous_cuts_the_text_in_order_at_exact_counts(documents, train, validation):
    words = [word for document in documents for word in document.text.split()]
    settings = {"method": "contiguous", "train_tokens": train, "validation_tokens": validation}
    if not (train and validation and train + validation < len(words)):
        assert "partition is empty" in complaint(settings, documents)
        return
    split = split_documents(documents, SplitSettings(**settings))
    found = [[w for d in split[name] for w in d.text.split()] for name in PARTITIONS]
    cut = train + validation
    assert found == [words[:train], words[train:cut], words[cut:]]
    ids = [document.id for part in split.values() for document in part]
    assert len(ids) == len(set(ids))


def test_a_document_on_the_cut_is_divided_there():
    documents = [document("a", "one two"), document("b", "three  four\n\nfive six", group="g")]
    settings = {"method": "contiguous", "train_tokens": 4, "validation_tokens": 1}
    split = split_documents(documents, SplitSettings(**settings))
    found = {name: [(d.id, d.text) for d in split[name]] for name in PARTITIONS}
    assert found == {
        "train": [("a", "one two"), ("b/a", "three  four")],
        "validation": [("b/b/a", "five")],
        "test": [("b/b/b", "six")],
    }
    assert parted(split) == {"parted_groups": 1, "parted_texts": 0}


def test_a_cut_between_two_documents_divides_neither():
    documents = [document("a", "one two\n"), document("b", "three"), document("c", "four")]
    settings = {"method": "contiguous", "train_tokens": 2, "validation_tokens": 1}
    split = split_documents(documents, SplitSettings(**settings))
    assert [split[name] for name in PARTITIONS] == [[one] for one in documents]


def cut_places(total, train, validation):
    return int(round(train * total, 6)), int(round((train + validation) * total, 6))


FRACTIONS = st.sampled_from([(0.9, 0.1), (0.8, 0.1), (0.5, 0.25), (0.29, 0.71), (0.6, 0.3)])


@given(
    st.lists(st.text("aé夜😀\n ", min_size=1, max_size=12), min_size=1, max_size=5),
    FRACTIONS,
    st.sampled_from(["characters", "bytes"]),
)
def test_position_cuts_inside_a_text_and_loses_no_character(texts, fractions, unit):
    documents = [document(f"d{n}", text) for n, text in enumerate(texts)]
    train, validation = fractions
    settings = {"method": "position", "train": train, "validation": validation}
    settings["position_unit"] = unit
    whole = "".join(texts)
    cuts = cut_places(len(whole if unit == "characters" else whole.encode()), train, validation)
    if unit == "bytes":
        cuts = [len(whole.encode()[:cut].decode("utf-8", "ignore")) for cut in cuts]
    expected = [whole[: cuts[0]], whole[cuts[0] : cuts[1]], whole[cuts[1] :]]
    optional = train + validation == 1
    if not (expected[0] and expected[1] and (expected[2] or optional)):
        assert "partition is empty" in complaint(settings, documents)
        return
    split = split_documents(documents, SplitSettings(**settings))
    assert ["".join(d.text for d in split[name]) for name in PARTITIONS] == expected
    ids = [d.id for part in split.values() for d in part]
    assert len(ids) == len(set(ids))


def test_a_piece_is_named_by_its_characters():
    documents = [document("a", "0123456789"), document("b", "ab")]
    settings = {"method": "position", "train": 0.25, "validation": 0.25}
    assert names(settings, documents) == {
        "train": ["a[:3]"],
        "validation": ["a[3:6]"],
        "test": ["a[6:]", "b"],
    }


def test_the_last_tenth_can_be_validation_without_any_test():
    split = split_documents(
        [document("a", "0123456789")], SplitSettings(method="position", train=0.9, validation=0.1)
    )
    found = {name: [d.text for d in part] for name, part in split.items()}
    assert found == {"train": ["012345678"], "validation": ["9"], "test": []}


def test_shakespeare_is_divided_as_nanogpt_does(real_data):
    path = real_data("shakespeare/input.txt")
    preset = yaml.safe_load((ROOT / "conf/corpus/shakespeare_char.yaml").read_text())
    assert hashlib.sha256(path.read_bytes()).hexdigest() == preset["sha256"]
    documents = read_corpus(path, unit=preset["unit"]).documents
    split = split_documents(documents, SplitSettings(**preset["split"]))
    text = path.read_text(encoding="ascii")
    assert [d.text for d in split["train"]] == [text[:1_003_854]]
    assert [d.text for d in split["validation"]] == [text[1_003_854:]]
    assert len(split["validation"][0].text) == 111_540
    assert split["test"] == []


FILES = [
    document("en:1", source="en.txt"),
    document("en:2", source="en.txt"),
    document("ru:1", source="ru.txt"),
    document("de:1", source="de.txt"),
]
BY_FILE = {"train": ["en:1", "en:2"], "validation": ["ru:1"], "test": ["de:1"]}


@pytest.mark.parametrize(
    ("train", "validation", "test"),
    [
        (["en.txt"], ["ru.txt"], ["de.txt"]),
        (["en:1", "en:2"], ["ru:1"], ["de:1"]),
        (["e?.txt"], ["ru*"], ["[d]e:*"]),
        (["en.txt", "en:1", "en*"], ["ru:1"], ["de.txt"]),
    ],
    ids=["files", "ids", "globs", "all three"],
)
def test_documents_are_named_by_file_by_id_or_by_glob(train, validation, test):
    settings = {"train_names": train, "validation_names": validation, "test_names": test}
    assert names({"method": "named", **settings}, FILES) == BY_FILE


def test_documents_are_named_by_lists_and_what_else_the_lists_say_is_left_alone():
    assert names({"method": "named"}, FILES, {**BY_FILE, "strategy": ["held out"]}) == BY_FILE
    rest = {"train": ["en:1"], "test": ["de:1"]}
    more = {"train_names": ["en:2"], "validation_names": ["ru*"]}
    assert names({"method": "named", **more}, FILES, rest) == BY_FILE


def test_an_id_in_a_list_is_no_pattern():
    lists = {"train": ["doc[1]"], "validation": ["doc1"], "test": ["*"]}
    documents = [document(name) for name in ("doc[1]", "doc1", "*")]
    assert names({"method": "named"}, documents, lists) == lists


def test_a_document_named_for_two_partitions_is_refused():
    settings = {"train_names": ["en*"], "validation_names": ["en:2", "ru*"], "test_names": ["de*"]}
    assert complaint({"method": "named", **settings}, FILES).startswith(
        "document 'en:2' of en.txt is named for train and validation; "
    )


def test_a_document_named_for_no_partition_is_refused():
    settings = {"train_names": ["en*"], "validation_names": ["ru*"]}
    assert complaint({"method": "named", **settings}, FILES).startswith(
        "document 'de:1' of de.txt is named for no partition; "
    )


@pytest.mark.parametrize("unmatched", ["fr.txt", "fr*", "EN:1"])
def test_a_name_that_matches_nothing_is_refused(unmatched):
    settings = {"train_names": ["en*", unmatched], "validation_names": ["ru*"]}
    assert f"corpus.split names '{unmatched}', but no document" in complaint(
        {"method": "named", "test_names": ["de*"], **settings}, FILES
    )


@pytest.mark.parametrize(
    ("settings", "empty", "remedy"),
    [
        ({"method": "ratios"}, "train", "corpus.split ratios"),
        (
            {"method": "contiguous", "train_tokens": 1, "validation_tokens": 1},
            "test",
            "lower corpus.split.train_tokens",
        ),
        (
            {"method": "named", "train_names": ["one"], "test_names": ["two"]},
            "validation",
            "name files or IDs in corpus.split.validation_names",
        ),
    ],
    ids=["ratios", "contiguous", "named"],
)
def test_an_empty_partition_is_refused_with_a_remedy(settings, empty, remedy):
    documents = [document("one", "same", "g"), document("two", "same", "g")]
    message = complaint(settings, documents)
    assert message.startswith(f"the {empty} partition is empty: 2 documents under ")
    assert f"corpus.split.method={settings['method']}" in message
    assert remedy in message


def test_whole_puts_everything_in_train_and_holds_nothing_out():
    documents = [document("one"), document("two")]
    split = split_documents(documents, SplitSettings(method="whole"))
    assert split["train"] == documents
    assert [d.text for d in split["validation"]] == ["one", "two"]
    assert not {d.id for d in split["validation"]} & {"one", "two"}
    assert split["test"] == []
    assert parted(split)["parted_texts"] == 2


def test_train_can_be_cut_to_its_first_documents():
    documents = [document(str(n)) for n in range(20)]
    whole = split_documents(documents, SplitSettings())
    cut = split_documents(documents, SplitSettings(max_train_documents=3))
    assert cut["train"] == whole["train"][:3]
    assert (cut["validation"], cut["test"]) == (whole["validation"], whole["test"])


def test_one_text_many_times_cannot_be_divided():
    documents = [document(str(n), "same") for n in range(50)]
    assert "more distinct texts" in complaint({"method": "ratios"}, documents)


def test_the_names_split_with_seed_42_is_the_published_one(real_data):
    documents = read_corpus(real_data("names/names.txt")).documents
    split = split_documents(documents, SplitSettings(**NAMES))
    texts = {name: [document.text for document in split[name]] for name in PARTITIONS}
    windows = {name: sum(len(text) + 1 for text in texts[name]) for name in PARTITIONS}
    assert windows == {"train": 182_625, "validation": 22_655, "test": 22_866}
    known = set(texts["train"])
    repeated = [
        sum(text in known for text in texts[name]) / len(texts[name])
        for name in ("validation", "test")
    ]
    assert [round(100 * share, 1) for share in repeated] == [13.2, 11.8]


def test_names_that_stand_twice_stay_together_unless_asked(real_data):
    documents = read_corpus(real_data("names/names.txt")).documents
    together = split_documents(documents, SplitSettings(seed=42))
    assert sum(map(len, together.values())) == 32_033
    assert parted(together)["parted_texts"] == 0


def test_brown_is_cut_in_the_order_of_its_text(real_data):
    path = real_data("brown/brown.jsonl")
    settings = SplitSettings(method="contiguous", train_tokens=800_000, validation_tokens=200_000)
    split = split_documents(read_corpus(path).documents, settings)
    lines = path.read_text(encoding="utf-8").splitlines()
    words = [word for line in lines for word in json.loads(line)["text"].split()]
    found = [[w for d in split[name] for w in d.text.split()] for name in PARTITIONS]
    assert [len(part) for part in found] == [800_000, 200_000, 161_192]
    assert list(itertools.chain(*found)) == words


def test_the_bilingual_lists_are_followed_and_part_no_pair(real_data):
    lists = json.loads(real_data("bilingual/splits.json").read_text(encoding="utf-8"))
    documents = read_corpus(real_data("bilingual/corpus.json")).documents
    split = split_documents(documents, SplitSettings(method="named"), lists)
    assert [len(split[name]) for name in PARTITIONS] == [8, 2, 2]
    assert parted(split) == {"parted_groups": 0, "parted_texts": 0}
