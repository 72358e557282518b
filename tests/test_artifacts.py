import errno
import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural_ngram.artifacts import (
    Column,
    atomic,
    read_array,
    read_json,
    read_table,
    sha256_of_file,
    write_array,
    write_csv,
    write_json,
    write_table,
    write_text,
)
from neural_ngram.errors import ArtifactError

READERS = [read_array, read_json, read_table]
TABLE = pd.DataFrame({"id": ["a", "b"], "loss": [0.1, 1 / 3]})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "made" / "file"


@pytest.fixture
def old(path):
    write_text(path, "old")
    return path


def assert_only_the_old_file_is_left(path):
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def interrupted(path):
    with atomic(path) as temporary:
        temporary.write_text("half of it")
        raise KeyboardInterrupt


def filling_the_disk(path):
    with atomic(path) as temporary:
        temporary.symlink_to("/dev/full")
        temporary.write_text("new" * 10_000)


def test_a_writer_that_raises_leaves_the_old_file(old):
    with pytest.raises(KeyboardInterrupt):
        interrupted(old)
    assert_only_the_old_file_is_left(old)


def test_a_writer_that_writes_nothing_leaves_the_old_file(old):
    with pytest.raises(FileNotFoundError), atomic(old):
        pass
    assert_only_the_old_file_is_left(old)


def test_the_new_file_appears_only_when_it_is_whole(path):
    with atomic(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]


def test_a_reader_in_the_middle_of_the_old_file_goes_on_reading_it(old):
    with old.open() as reader:
        write_text(old, "new")
        assert reader.read() == "old"
    assert old.read_text() == "new"


@pytest.mark.parametrize(
    "write",
    [
        lambda path: write_text(path, "new" * 10_000),
        lambda path: write_json(path, {"new": "new" * 10_000}),
        lambda path: write_array(path, np.zeros(10_000)),
        lambda path: write_csv(path, pd.DataFrame({"new": range(10_000)})),
        lambda path: write_table(path, TABLE),
    ],
    ids=["text", "json", "array", "csv", "table"],
)
def test_a_full_disk_leaves_the_old_file(old, write, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        ArtifactError, match=r"file cannot be written \(.*No space left.*free disk space"
    ):
        write(old)
    assert_only_the_old_file_is_left(old)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is full")
def test_a_disk_that_fills_while_writing_leaves_the_old_file(old):
    with pytest.raises(
        ArtifactError, match=r"file cannot be written \(.*No space left.*free disk space"
    ):
        filling_the_disk(old)
    assert_only_the_old_file_is_left(old)


def test_a_killed_process_leaves_the_old_file(old):
    script = """
        import os, pathlib, signal, sys
        from neural_ngram.artifacts import atomic
        with atomic(pathlib.Path(sys.argv[1])) as temporary:
            temporary.write_text("half of it")
            os.kill(os.getpid(), signal.SIGKILL)
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(script), old], check=False)
    assert killed.returncode == -9
    assert old.read_text() == "old"


@pytest.mark.promise("reliability")
def test_what_a_killed_writer_left_is_swept_away_by_the_next(old):
    child = subprocess.Popen(["true"])
    child.wait()
    left = old.with_name(f".file.{child.pid}.tmp")
    running = old.with_name(f".file.{os.getppid()}.tmp")
    other = old.with_name(f".file.txt.{child.pid}.tmp")
    for path in (left, running, other):
        path.write_text("half of it")
    write_text(old, "new")
    assert set(old.parent.iterdir()) == {old, running, other}


def test_a_file_in_place_of_a_folder_is_named(old):
    with pytest.raises(ArtifactError, match=r"file/below cannot be written .*allow writing there"):
        write_text(old / "below", "new")
    assert_only_the_old_file_is_left(old)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_json_refuses_what_is_no_number_and_leaves_the_old_file(old, number):
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(old, {"loss": {"train": [number]}})
    assert_only_the_old_file_is_left(old)


def test_json_is_byte_stable_and_readable(path):
    write_json(path, {"b": 1 / 3, "a": "река"})
    assert path.read_bytes() == '{\n  "a": "река",\n  "b": 0.3333333333333333\n}\n'.encode()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # A lone surrogate has no UTF-8.
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text("xyz"), JSON, max_size=4))
def test_json_comes_back_as_it_was(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "content.json"
    write_json(path, content)
    assert read_json(path) == content


def test_text_keeps_its_line_breaks(path):
    write_text(path, "a\nb\r\nc\u2028d")
    assert path.read_bytes() == "a\nb\r\nc\u2028d".encode()


def test_a_table_comes_back_as_it_was(path):
    write_table(path, TABLE)
    pd.testing.assert_frame_equal(read_table(path), TABLE)


def test_csv_keeps_every_digit(path):
    write_csv(path, TABLE)
    assert path.read_bytes() == b"id,loss\na,0.1\nb,0.3333333333333333\n"


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.int64, np.float64])
@pytest.mark.parametrize("shape", [(0,), (7,), (2, 3)])
def test_an_array_comes_back_memory_mapped_and_read_only(path, dtype, shape):
    array = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    write_array(path, array)
    found = read_array(path)
    assert isinstance(found, np.memmap)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, array)
    assert not found.flags.writeable


def test_an_array_of_python_objects_is_never_pickled(old):
    with pytest.raises(ValueError, match="allow_pickle=False"):
        write_array(old, np.array([{}], dtype=object))
    assert_only_the_old_file_is_left(old)


@pytest.mark.parametrize(
    ("write", "content"),
    [(write_json, {"a": 1}), (write_table, TABLE), (write_array, np.arange(9))],
    ids=["json", "table", "array"],
)
def test_writing_twice_gives_the_same_bytes(tmp_path, write, content):
    write(tmp_path / "one", content)
    write(tmp_path / "two", content)
    assert sha256_of_file(tmp_path / "one") == sha256_of_file(tmp_path / "two")


def test_the_hash_is_that_of_the_bytes(path):
    write_text(path, "река")
    assert sha256_of_file(path) == hashlib.sha256("река".encode()).hexdigest()


@pytest.mark.parametrize("read", [*READERS, sha256_of_file])
def test_a_missing_file_is_named_with_the_way_to_make_it(read, path):
    with pytest.raises(ArtifactError) as caught:
        read(path)
    assert str(caught.value) == f"{path} is missing; run `dvc repro` to create it"


@pytest.mark.parametrize("read", [read_array, read_json, sha256_of_file])
def test_a_folder_in_place_of_a_file_is_named(read, tmp_path):
    with pytest.raises(ArtifactError, match=str(tmp_path)):
        read(tmp_path)


def npz():
    buffer = io.BytesIO()
    np.savez(buffer, a=np.arange(3))
    return buffer.getvalue()


def npy_of_objects():
    buffer = io.BytesIO()
    np.save(buffer, np.array([{}], dtype=object), allow_pickle=True)
    return buffer.getvalue()


JUNK = {
    "empty": b"",
    "binary": bytes(range(256)) * 4,
    "text": b"not what was meant\n",
    "nested": b"[" * 100_000,
    "a list": b"[1, 2]",
    "pickle": pickle.dumps({"a": 1}),
    "npz": npz(),
    "npy of objects": npy_of_objects(),
    "not UTF-8": b'{"a": "\xff"}',
}


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
@pytest.mark.parametrize("read", READERS)
def test_junk_is_named_with_the_way_to_make_it_anew(read, junk, path):
    path.parent.mkdir()
    path.write_bytes(junk)
    with pytest.raises(ArtifactError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path} cannot be read (")
    assert str(caught.value).endswith("); delete it and run `dvc repro`")


@pytest.mark.parametrize(
    ("write", "read", "content"),
    [
        (write_json, read_json, {"a": [1, 2, 3]}),
        (write_table, read_table, TABLE),
        (write_array, read_array, np.arange(9)),
    ],
    ids=["json", "table", "array"],
)
def test_a_file_cut_anywhere_is_damaged(tmp_path, write, read, content):
    write(tmp_path / "whole", content)
    whole = (tmp_path / "whole").read_bytes().rstrip(b"\n")
    for size in {*range(0, len(whole), 29), len(whole) - 1}:
        (tmp_path / "cut").write_bytes(whole[:size])
        with pytest.raises(ArtifactError, match="cut cannot be read"):
            read(tmp_path / "cut")


@given(st.binary(max_size=200))
def test_random_bytes_are_an_artifact_error_or_an_object(tmp_path_factory, junk):
    path = tmp_path_factory.getbasetemp() / "junk"
    path.write_bytes(junk)
    for read in READERS:
        try:
            found = read(path)
        except ArtifactError:
            continue
        assert read is read_json
        assert found == json.loads(junk)


def test_a_column_is_read_again_and_again_and_only_as_far_as_asked(tmp_path):
    texts = [f"text {number}" for number in range(9000)]
    write_table(tmp_path / "texts.parquet", pd.DataFrame({"id": range(9000), "text": texts}))
    column = Column(tmp_path / "texts.parquet", "text")
    assert list(column) == list(column) == texts
    assert list(Column(tmp_path / "texts.parquet", "text", 5000)) == texts[:5000]
    with pytest.raises(ArtifactError, match="is missing"):
        list(Column(tmp_path / "nothing.parquet", "text"))
