"""Whatever a user can put in place of an input: an object, or one clear error; never another."""

import copy
import json
import random
import struct
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from neural_ngram.artifacts import read_array, read_json, sha256_of_file, write_tensors
from neural_ngram.corpus.reading import read_corpus
from neural_ngram.errors import ArtifactError, ConfigurationError, CorpusError, NeuralNgramError
from neural_ngram.model import storage as model_storage
from neural_ngram.model.architecture import Architecture, parameter_shapes
from neural_ngram.model.network import initialise
from neural_ngram.pipeline.configuration import typed
from neural_ngram.pipeline.params import digest
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import ModelSettings, Settings, TokenizerSettings, flatten
from neural_ngram.tokens import tokenizer as tokenizers
from neural_ngram.tokens import windows as token_windows
from neural_ngram.tokens.tokenizer import learn

ENDINGS = ("txt", "json", "jsonl", "conllu")
PLANES = [chr(0x10000 * plane + 0x41) for plane in range(1, 17)] + ["\0", "\ufeff", "\uffff", "é"]


def folder(factory, name: str) -> Path:
    path = factory.getbasetemp() / name
    path.mkdir(exist_ok=True)
    return path


# Corpora

TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(PLANES), max_size=20)
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.just("\ud800")
RECORDS = st.lists(
    st.dictionaries(st.sampled_from(["id", "text", "language", "provenance_group", "x"]), VALUES)
    | VALUES
    | st.lists(VALUES, max_size=2),
    max_size=5,
)


@given(records=RECORDS, cut=st.integers(0, 400))
def test_json_of_any_types_cut_anywhere_is_documents_or_an_error(tmp_path_factory, records, cut):
    path = folder(tmp_path_factory, "any")
    whole = json.dumps(records).encode()
    lines = "\n".join(map(json.dumps, records)).encode()
    for name, content in (("a.json", whole), ("a.jsonl", lines)):
        for content_or_part in (content, content[:cut]):
            (path / name).write_bytes(content_or_part)
            assert_read_or_refused(path / name)


def assert_names(problem: NeuralNgramError, path: Path) -> None:
    assert str(path) in str(problem)
    assert "\n" not in str(problem)


def assert_read_or_refused(path: Path) -> None:
    try:
        found = read_corpus(path)
    except CorpusError as problem:
        assert_names(problem, path)
        return
    assert len({document.id for document in found.documents}) == len(found.documents)
    for document in found.documents:
        document.text.encode()


@given(lines=st.lists(TEXT), breaks=st.lists(st.sampled_from(["\n", "\r\n", "\r", "\n\n"])))
def test_lines_survive_any_mixture_of_line_breaks(tmp_path_factory, lines, breaks):
    path = folder(tmp_path_factory, "breaks") / "a.txt"
    mixed = "".join(
        line + mark for line, mark in zip(lines, breaks + ["\n"] * len(lines), strict=False)
    )
    path.write_bytes(mixed.encode())
    plain = mixed.removeprefix("\ufeff").replace("\r\n", "\n")
    if plain.count("\0") > len(plain) / 100:
        with pytest.raises(CorpusError, match="NUL"):
            read_corpus(path)
        return
    if "\n" not in plain:
        plain = plain.replace("\r", "\n")
    expected = [line for line in plain.split("\n") if line.strip()]
    if not expected:
        with pytest.raises(CorpusError, match="contains no text"):
            read_corpus(path)
        return
    assert [document.text for document in read_corpus(path).documents] == expected


def test_a_line_of_ten_megabytes_and_a_hundred_thousand_empty_ones(tmp_path: Path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"ab " * 3_500_000 + b"\n" * 100_000 + b"end")
    found = read_corpus(path)
    assert [len(document.text) for document in found.documents] == [10_500_000, 3]
    assert found.counts["empty_documents_dropped"] == 99_999
    assert found.documents[1].id == "a:100001"


@pytest.mark.parametrize("ending", ENDINGS)
def test_nul_bytes_are_text_or_refused(tmp_path: Path, ending: str):
    path = tmp_path / f"a.{ending}"
    path.write_bytes(b"\0" * 1000)
    assert_read_or_refused(path)


def test_json_nested_a_million_deep_is_refused(tmp_path: Path):
    for content in (b"[" * 10**6, b'{"text":' * 10**6, b"[" * 10**6 + b"]" * 10**6):
        (tmp_path / "a.json").write_bytes(content)
        with pytest.raises(CorpusError, match="is not JSON"):
            read_corpus(tmp_path / "a.json")


CONLLU = b"# newdoc id = d\n# text = a b\n1" + b"\t_" * 9 + b"\n2" + b"\t_" * 9 + b"\n\n"


def test_conllu_cut_at_every_byte_is_documents_or_an_error(tmp_path: Path):
    for size in range(len(CONLLU)):
        (tmp_path / "a.conllu").write_bytes(CONLLU[:size])
        assert_read_or_refused(tmp_path / "a.conllu")


# Tokenizers


@pytest.mark.promise("reliability")
@pytest.mark.parametrize("kind", ["bpe", "character"])
def test_a_hundred_thousand_random_strings_come_back(kind: str):
    generator = random.Random(kind)
    points = [p for p in range(0x110000) if not 0xD800 <= p < 0xE000]
    if kind == "character":
        points = points[:300]
    alphabet = "abc эюя\n\t" + "".join(PLANES)
    texts = [
        "".join(map(chr, generator.choices(points, k=generator.randrange(8))))
        + "".join(generator.choices("abc эюя\n\t", k=generator.randrange(8)))
        for _ in range(100_000)
    ]
    train = [*map(chr, points), alphabet] if kind == "character" else ["abc эюя abc эюя", alphabet]
    tokenizer = learn(train, TokenizerSettings(kind=kind, vocabulary_size=270))
    for text, ids in zip(texts, tokenizer.encode(texts), strict=True):
        assert tokenizer.decode(ids.tolist()) == text


@pytest.fixture(scope="module")
def tokenizer_json(tmp_path_factory) -> dict:
    made = tmp_path_factory.mktemp("tokenizer")
    tokenizers.save(learn(["abab abc", "bca"], TokenizerSettings(vocabulary_size=262)), made)
    return json.loads((made / "tokenizer.json").read_text())


def changed(tree, generator: random.Random):
    """A copy with one random part removed or replaced."""
    tree = copy.deepcopy(tree)
    node, junk = tree, [None, -1, 2**40, "", "x", [], {}, [[]], True]
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = generator.choice(keys)
        if isinstance(node[key], dict | list) and node[key] and generator.random() < 0.7:
            node = node[key]
            continue
        if generator.random() < 0.3:
            del node[key]
        else:
            node[key] = generator.choice(junk)
        return tree


@pytest.mark.promise("reliability")
def test_a_tokenizer_file_with_any_part_wrong_works_or_is_refused(
    tokenizer_json: dict, tmp_path: Path
):
    generator = random.Random(1)
    for _ in range(600):
        content = changed(tokenizer_json, generator)
        (tmp_path / "tokenizer.json").write_text(json.dumps(content))
        try:
            loaded = tokenizers.load(tmp_path)
            ids = next(loaded.encode(["abab"]))
            assert loaded.decode(ids.tolist()) == "abab"
        except NeuralNgramError:
            pass


# Models

ARCHITECTURE = Architecture(
    vocabulary_size=9, context_length=2, settings=ModelSettings(embedding_width=3, hidden_width=4)
)


@pytest.fixture(scope="module")
def model_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    model = initialise(ARCHITECTURE, SplitMix64(1), torch.float32)
    model_storage.save(model, path, {"tokenizer_sha256": "a"})
    return path


def parts(path: Path) -> tuple[dict, bytes]:
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8 : 8 + size]), content[8 + size :]


def joined(header: dict, body: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def assert_refused(path: Path) -> None:
    with pytest.raises(NeuralNgramError) as caught:
        model_storage.load(path, sha256_of_file(path))
    assert str(path) in str(caught.value)


def test_a_model_file_cut_anywhere_is_refused(model_file: Path, tmp_path: Path):
    content, path = model_file.read_bytes(), tmp_path / "m.safetensors"
    for size in range(0, len(content), 7):
        path.write_bytes(content[:size])
        assert_refused(path)


@pytest.mark.parametrize("size", [0, 2**31, 2**40, 2**63, 2**64 - 1])
def test_a_header_of_a_gigantic_size_is_refused(model_file: Path, tmp_path: Path, size: int):
    path = tmp_path / "m.safetensors"
    path.write_bytes(struct.pack("<Q", size) + model_file.read_bytes()[8:])
    assert_refused(path)


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [2**40, 2**20]},
        {"shape": [2**62, 4]},
        {"shape": [-1, 3]},
        {"shape": [3, 9]},
        {"shape": [27]},
        {"data_offsets": [0, 2**60]},
        {"data_offsets": [8, 0]},
        {"dtype": "BF16"},
        {"dtype": "I32"},
        {"dtype": "X"},
    ],
    ids=str,
)
def test_a_tensor_that_promises_something_else_is_refused(
    model_file: Path, tmp_path: Path, change: dict
):
    header, body = parts(model_file)
    header["embedding"] |= change
    (tmp_path / "m.safetensors").write_bytes(joined(header, body))
    assert_refused(tmp_path / "m.safetensors")


@pytest.mark.promise("reliability")
def test_a_model_that_describes_itself_in_any_other_way_works_or_is_refused(
    model_file: Path, tmp_path: Path
):
    header, body = parts(model_file)
    described = json.loads(header["__metadata__"]["neural_ngram"])
    path, generator = tmp_path / "m.safetensors", random.Random(2)
    for _ in range(600):
        wrong = changed(described, generator)
        header["__metadata__"]["neural_ngram"] = json.dumps(wrong)
        path.write_bytes(joined(header, body))
        try:
            model, description = model_storage.load(path, sha256_of_file(path))
        except NeuralNgramError as problem:
            assert_names(problem, path)
            continue
        assert parameter_shapes(model.architecture) == parameter_shapes(ARCHITECTURE)
        if "tokenizer_sha256" not in description:
            with pytest.raises(ArtifactError, match="has no 'tokenizer_sha256'"):
                description["tokenizer_sha256"]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers_are_refused(tmp_path: Path, value: float):
    shapes = parameter_shapes(ARCHITECTURE)
    for name in shapes:
        arrays = {n: np.zeros(shape, dtype=np.float32) for n, shape in shapes.items()}
        arrays[name][-1, -1] = value
        path = tmp_path / "m.safetensors"
        write_tensors(path, arrays, {"architecture": ARCHITECTURE.describe()})
        with pytest.raises(NeuralNgramError, match=f"{name} has values that are not finite"):
            model_storage.load(path, sha256_of_file(path))


# Windows

NPY = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }"


def npy(descr: str, shape: str, body: bytes = b"") -> bytes:
    header = (NPY % (descr, shape)).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


@pytest.mark.parametrize(
    "shape", ["(1099511627776,)", "(4611686018427387904, 8)", "(-5,)", "('a',)", "7", "((1,),)"]
)
def test_an_array_of_a_gigantic_or_senseless_size_is_refused(tmp_path: Path, shape: str):
    (tmp_path / "a.npy").write_bytes(npy("<u2", shape, bytes(64)))
    with pytest.raises(ArtifactError, match=r"a\.npy cannot be read"):
        read_array(tmp_path / "a.npy")


WINDOWS = {"context_length": 2, "bos": None}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokens.npy", npy("<u2", "(2, 3)", bytes(12))),
        ("tokens.npy", npy("<u2", "()", bytes(2))),
        ("tokens.npy", npy("<f4", "(6,)", bytes(24))),
        ("tokens.npy", npy("<i8", "(6,)", bytes(48))),
        ("tokens.npy", npy("<U2", "(6,)", bytes(48))),
        ("offsets.npy", npy("<u8", "(2,)", struct.pack("<qq", 0, 6))),
        ("offsets.npy", npy("<i8", "(2,)", struct.pack("<qq", 0, 7))),
        ("offsets.npy", npy("<i8", "(2,)", struct.pack("<qq", -3, 6))),
        ("offsets.npy", npy("<i8", "(3,)", struct.pack("<qqq", 0, 9, 6))),
        ("windows.json", json.dumps(WINDOWS | {"context_length": 0}).encode()),
        ("windows.json", json.dumps(WINDOWS | {"context_length": "2"}).encode()),
        ("windows.json", json.dumps(WINDOWS | {"context_length": None}).encode()),
        ("windows.json", json.dumps(WINDOWS | {"bos": 1.5}).encode()),
        ("windows.json", json.dumps({"context_length": 2}).encode()),
    ],
)
def test_windows_that_do_not_fit_together_are_refused(tmp_path: Path, name: str, content: bytes):
    good = {
        "tokens.npy": npy("<u2", "(6,)", bytes(12)),
        "offsets.npy": npy("<i8", "(2,)", struct.pack("<qq", 0, 6)),
        "windows.json": json.dumps(WINDOWS).encode(),
    }
    for file, whole in good.items():
        (tmp_path / file).write_bytes(whole)
    assert len(token_windows.load(tmp_path)[0]) == 4
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ArtifactError, match=str(tmp_path)):
        token_windows.load(tmp_path)


def test_a_key_that_a_file_lacks_is_named_with_the_file(tmp_path: Path):
    (tmp_path / "report.json").write_text('{"a": {"b": 1}}')
    content = read_json(tmp_path / "report.json")
    for missing in (lambda: content["x"], lambda: content["a"]["y"]):
        with pytest.raises(ArtifactError, match=r"report\.json has no '[xy]'; delete it"):
            missing()


# Settings

LEAVES = [name for name, _, _ in flatten(Settings())]
ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
    | st.lists(st.integers(), max_size=2)
    | st.dictionaries(st.text("ab", max_size=2), st.integers(), max_size=1)
)


@pytest.mark.promise("reliability")
@given(name=st.sampled_from(LEAVES), value=ANYTHING)
def test_any_value_of_any_setting_is_checked_or_refused_by_name(name: str, value):
    from omegaconf import OmegaConf  # noqa: PLC0415

    root = Path(__file__).parents[1]
    tree = asdict(replace(Settings(), configuration_sha256=digest(root)))
    *groups, leaf = name.split(".")
    node = tree
    for group in groups:
        node = node[group]
    node[leaf] = value
    try:
        typed(OmegaConf.create(tree), root)
    except ConfigurationError as problem:
        told = str(problem)
        assert "\n" not in told
        assert leaf in told or (leaf == "configuration_sha256" and "stale" in told)
