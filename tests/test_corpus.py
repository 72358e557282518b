import hashlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural_ngram.corpus.document import Document
from neural_ngram.corpus.download import fetch
from neural_ngram.corpus.reading import merge_rare_words, read_corpus
from neural_ngram.errors import CorpusError

TOKEN = "1\ta\ta\tX\t_\t_\t0\troot\t_\t_\n"
CONLLU = (
    f"# newdoc id = d1\n# sent_id = s1\n# text = One = two.\n{TOKEN}\n"
    f"# text = Three.\n{TOKEN}\n# newdoc id = d2\n# text = Four.\n{TOKEN}\n"
)


@pytest.fixture
def write(tmp_path):
    def write_file(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def texts(path, **options):
    return [document.text for document in read_corpus(path, **options).documents]


def complaint(path, **options):
    with pytest.raises(CorpusError) as caught:
        read_corpus(path, **options)
    return str(caught.value)


def test_a_text_file_is_one_document_a_line(write):
    corpus = read_corpus(write("names.txt", "emma\nolivia \n"))
    assert corpus.documents == [
        Document(id="names:1", text="emma", source="names.txt"),
        Document(id="names:2", text="olivia ", source="names.txt"),
    ]
    assert corpus.counts == {
        "documents": 2,
        "empty_documents_dropped": 0,
        "files": 1,
        "files_with_bom": 0,
        "files_with_crlf": 0,
        "utf8_bytes": 11,
    }


def test_a_last_line_needs_no_line_break(write):
    assert texts(write("a.txt", "one\ntwo")) == ["one", "two"]


def test_empty_documents_are_dropped_and_counted_and_the_others_keep_their_numbers(write):
    corpus = read_corpus(write("a.txt", "one\n\n \t\nfour\n\n"))
    assert [document.id for document in corpus.documents] == ["a:1", "a:4"]
    assert corpus.counts["empty_documents_dropped"] == 3


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1e", "\r"])
def test_only_a_line_feed_breaks_a_line(write, mark):
    assert texts(write("a.txt", f"one{mark}two\n")) == [f"one{mark}two"]
    line = json.dumps({"text": f"one{mark}two"}, ensure_ascii=False)
    assert texts(write("a.jsonl", line + "\n")) == [f"one{mark}two"]
    conllu = f"# text = one{mark}two\n{TOKEN}\n"
    assert texts(write("a.conllu", conllu)) == [f"one{mark}two"]


def test_a_byte_order_mark_is_no_text(write):
    corpus = read_corpus(write("a.txt", b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n"))
    assert [document.text for document in corpus.documents] == ["one", "\ufefftwo"]
    assert corpus.counts["files_with_bom"] == 1
    assert texts(write("a.json", b'\xef\xbb\xbf[{"text": "one"}]')) == ["one"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "one\ntwo\n"),
        ("a.jsonl", '{"text": "one"}\n{"text": "two"}\n'),
        ("a.json", '[{"text": "one"},\n{"text": "two"}]\n'),
        ("a.conllu", f"# newdoc id = 1\n# text = one\n{TOKEN}\n# newdoc\n# text = two\n{TOKEN}\n"),
    ],
)
def test_windows_line_breaks_are_counted_and_change_nothing(write, name, content):
    unix = read_corpus(write(name, content))
    windows = read_corpus(write(name, content.replace("\n", "\r\n")))
    assert [document.text for document in unix.documents] == ["one", "two"]
    assert windows.documents == unix.documents
    assert (unix.counts["files_with_crlf"], windows.counts["files_with_crlf"]) == (0, 1)


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_json_documents_keep_what_they_say_of_themselves(write, name):
    records = [
        {"id": "x", "text": "река", "language": "ru", "provenance_group": "g", "other": 7},
        {"text": "two"},
        {"id": None, "text": None},
    ]
    lines = "\n\n".join(json.dumps(record) for record in records)
    corpus = read_corpus(write(name, lines if name == "a.jsonl" else json.dumps(records)))
    second = 3 if name == "a.jsonl" else 2
    assert corpus.documents == [
        Document(id="x", text="река", language="ru", provenance_group="g", source=name),
        Document(id=f"a:{second}", text="two", source=name),
    ]
    assert corpus.counts["empty_documents_dropped"] == 1
    assert corpus.counts["utf8_bytes"] == 11


def test_a_conllu_document_is_its_sentences_line_by_line(write):
    assert read_corpus(write("a.conllu", CONLLU)).documents == [
        Document(id="d1", text="One = two.\nThree.", provenance_group="d1", source="a.conllu"),
        Document(id="d2", text="Four.", provenance_group="d2", source="a.conllu"),
    ]


def test_a_conllu_sentence_belongs_to_the_group_of_its_document(write):
    found = read_corpus(write("a.conllu", CONLLU), unit="sentence").documents
    assert [(d.id, d.text, d.provenance_group) for d in found] == [
        ("d1#1", "One = two.", "d1"),
        ("d1#2", "Three.", "d1"),
        ("d2#1", "Four.", "d2"),
    ]


def test_conllu_documents_without_an_id_stay_apart(write):
    part = f"# newdoc\n# text = One.\n{TOKEN}\n"
    path = write("a.conllu", part * 3)
    assert [document.id for document in read_corpus(path).documents] == [
        "a:1",
        "a:5",
        "a:9",
    ]
    assert len({d.provenance_group for d in read_corpus(path, unit="sentence").documents}) == 3


def test_conllu_without_document_marks_is_one_document(write):
    path = write("a.conllu", CONLLU.replace("# newdoc", "# newpar"))
    assert [document.id for document in read_corpus(path).documents] == ["a"]


@pytest.mark.parametrize("kept", [1, 3, 9, 12])
def test_a_conllu_file_cut_within_a_token_is_named_with_the_line(write, kept):
    cut = CONLLU.rstrip("\n")[: -len(TOKEN)] + "\n" + TOKEN[:kept]
    path = write("a.conllu", cut)
    columns = TOKEN[:kept].count("\t") + 1
    assert complaint(path).startswith(f"{path} line 11 has {columns} columns, but CoNLL-U has 10")


def test_a_conllu_sentence_without_its_text_is_named_with_the_line(write):
    path = write("a.conllu", f"# text = One.\n{TOKEN}\n# sent_id = 2\n{TOKEN}\n")
    assert complaint(path).startswith(f"{path} line 5 is a token of a sentence without a `# text")


def test_a_folder_is_read_in_order_of_names_one_document_a_text_file(write):
    write("in/b.txt", "two\nlines\n")
    write("in/a.jsonl", '{"text": "first"}')
    write("in/notes.md", "not read")
    path = write("in/c/a.txt", "third").parent.parent
    found = read_corpus(path, files=["*"])
    assert [(d.id, d.text, d.source) for d in found.documents] == [
        ("a:1", "first", "a.jsonl"),
        ("b", "two\nlines\n", "b.txt"),
        ("c/a", "third", "a.txt"),
    ]
    assert found.counts["files"] == 3
    assert found.counts["files_of_other_endings_left_out"] == 1


@pytest.mark.parametrize("name", ["A.TXT", "a.JsonL", "a.JSON", "a.CoNLLU"])
def test_an_ending_may_be_in_capitals(write, name):
    contents = {
        ".txt": "one\n",
        ".jsonl": '{"text": "one"}',
        ".json": '[{"text": "one"}]',
        ".conllu": f"# text = one\n{TOKEN}\n",
    }
    assert texts(write(name, contents[Path(name).suffix.lower()])) == ["one"]


def test_files_of_several_formats_are_refused_until_some_are_chosen(write):
    write("in/LICENSE.txt", "All rights reserved.")
    write("in/README.TXT", "A treebank.")
    path = write("in/ud/a.conllu", f"# text = one\n{TOKEN}\n").parent.parent
    assert complaint(path) == (
        f"{path} mixes formats (1 .conllu, 2 .txt); choose the files of the corpus, for "
        "example corpus.files=['*.conllu'] (['*'] for all of them)"
    )
    found = read_corpus(path, files=["*.conllu"])
    assert [document.text for document in found.documents] == ["one"]
    assert found.counts["files_not_chosen"] == 2
    assert texts(path, files=["ud/*", "README*"]) == ["A treebank.", "one"]


def test_patterns_that_match_no_file_are_told(write):
    path = write("in/a.txt", "one").parent
    assert complaint(path, files=["*.json"]) == (
        f"corpus.files is ['*.json'], which matches none of the 1 files of {path}; "
        "correct the patterns"
    )


@pytest.mark.promise("reliability")
def test_what_is_left_out_of_a_folder_is_counted_by_its_reason(write):
    path = write("in/a.txt", "one").parent
    for name in (".DS_Store", "._a.txt", ".hidden.txt", ".ipynb_checkpoints/a.txt", ".git/x/y.txt"):
        write(f"in/{name}", b"\xff\0")
    write("in/b/notes.md", "x")
    write("in/b/old.txt.gz", b"\x1f\x8b")
    write("elsewhere/more.txt", "not read")
    (path / "lost.txt").symlink_to("nowhere.txt")
    (path / "linked").symlink_to("../elsewhere")
    (path / "here.txt").symlink_to("../elsewhere/more.txt")
    os.mkfifo(path / "pipe.txt")
    found = read_corpus(path)
    assert [document.id for document in found.documents] == ["a", "here"]
    assert {key: n for key, n in found.counts.items() if key.endswith("left_out")} == {
        "hidden_files_left_out": 5,
        "files_of_other_endings_left_out": 2,
        "dangling_links_left_out": 1,
        "linked_folders_left_out": 1,
        "special_files_left_out": 1,
    }


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    assert "is neither a file nor a folder" in complaint(tmp_path / "pipe.txt")


@pytest.mark.promise("reliability")
def test_file_names_that_are_not_utf8_are_all_named(write):
    path = write("in/fine.txt", "one").parent
    for name in (b"caf\xe9.txt", b"na\xefve.txt"):
        Path(os.fsdecode(os.fsencode(path) + b"/" + name)).write_text("two")
    assert complaint(path) == (
        f"2 of the 3 files of {path} have names that are not UTF-8: caf\\xe9.txt, na\\xefve.txt; "
        "rename them"
    )


@pytest.mark.promise("reliability")
def test_all_bad_files_are_named_and_what_to_do_is_said_once(write):
    for name in ("a", "c"):
        write(f"in/{name}.jsonl", b'{"text": "\xe9"}')
    write("in/d.jsonl", '{"body": "x"}')
    path = write("in/b.jsonl", '{"text": "fine"}').parent
    told = complaint(path)
    assert told.startswith("3 of 4 files cannot be read: ")
    assert "b.jsonl" not in told
    for name in (
        "a.jsonl is not UTF-8: byte 0xe9 on line 1",
        "c.jsonl is not",
        "d.jsonl line 1 ha",
    ):
        assert f"{path}/{name}" in told
    assert told.count("set corpus.encoding") == 1
    assert "\n" not in told


def test_a_folder_of_thousands_of_bad_files_is_told_in_one_line(write):
    for n in range(300):
        path = write(f"in/{n:03}.txt", b"\xff").parent
    told = complaint(path)
    assert told.startswith("300 of 300 files cannot be read: ")
    assert told.endswith("; and 200 more")
    assert told.count(".txt") == 100


OLD = "Der Bär\nfuhr weg.\n"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("latin-1", OLD),
        ("cp1252", OLD + "“€”\n"),
        ("cp1251", "Ночь\nи день\n"),
        ("koi8-r", "Ночь\nи день\n"),
        ("gb18030", "夜\n与昼\n"),
        ("utf-16", OLD + "\U0001f600\n"),
        ("utf-16-le", "Ночь\nи день\n"),
        ("utf-16-be", "Ночь\nи день\n"),
    ],
)
def test_old_encodings_are_read_when_they_are_named(write, encoding, text):
    path = write("a.txt", text.encode(encoding))
    found = read_corpus(path, encoding=encoding)
    assert [document.text for document in found.documents] == text.splitlines()
    assert found.counts["files_with_bom"] == (encoding == "utf-16")
    assert texts(path, encoding=encoding, unit="corpus") == [text]
    assert str(path) in complaint(path)


def test_what_does_not_fit_an_encoding_is_named_with_the_byte(write):
    path = write("a.txt", b"fine\n\x81\n")
    assert complaint(path, encoding="cp1252").startswith(
        f"{path} is not cp1252: byte 0x81 on line 2, byte offset 5 ("
    )
    path = write("b.txt", b"\xff\xfea")
    assert str(path) in complaint(path, encoding="utf-16")
    path = write("c.txt", b"+2AA-")  # a lone surrogate in UTF-7
    assert str(path) in complaint(path, encoding="utf-7")


def test_utf16_with_a_mark_is_advised(write):
    path = write("a.txt", "one\n".encode("utf-16"))
    assert complaint(path).endswith("; set corpus.encoding=utf-16")


@pytest.mark.promise("reliability")
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
@pytest.mark.parametrize("text", ["one two\n", "Ночь, улица, фонарь.\nАптека и день.\n"])
def test_text_full_of_nul_is_not_utf8(write, encoding, text):
    path = write("a.txt", text.encode(encoding))
    told = complaint(path)
    assert told.startswith(f"{path} has {text.encode(encoding).count(0)} NUL in ")
    assert "corpus.encoding" in told


def test_a_few_nul_and_marks_within_the_text_are_kept_and_counted(write):
    text = "abc " * 100 + "\0" + "\n\ufeffnext\n"
    found = read_corpus(write("a.txt", text))
    assert "\n".join(document.text for document in found.documents) + "\n" == text
    assert found.counts["nul_characters"] == found.counts["byte_order_marks_within_text"] == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "one\rtwo\r"),
        ("a.jsonl", '{"text": "one"}\r{"text": "two"}\r'),
        ("a.conllu", f"# newdoc\n# text = one\n{TOKEN}\n# newdoc\n# text = two\n{TOKEN}\n"),
    ],
)
def test_the_line_ends_of_old_systems_are_line_ends(write, name, content):
    found = read_corpus(write(name, content.replace("\n", "\r")))
    assert [document.text for document in found.documents] == ["one", "two"]
    assert found.counts["files_with_cr_line_ends"] == 1


def test_text_files_of_one_name_in_two_folders_are_two_documents(write):
    write("in/neg/1.txt", "bad")
    path = write("in/pos/1.txt", "good").parent.parent
    assert [document.id for document in read_corpus(path).documents] == ["neg/1", "pos/1"]


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.conllu"])
def test_the_corpus_can_be_one_document(write, name):
    content = {
        "a.json": '[{"text": "One."}, {"text": "Two."}]',
        "a.jsonl": '{"text": "One."}\n{"text": "Two."}',
        "a.conllu": f"# text = One.\n{TOKEN}\n# newdoc\n# text = Two.\n{TOKEN}\n",
    }
    corpus = read_corpus(write(name, content[name]), unit="corpus")
    assert corpus.documents == [Document(id="a", text="One.\nTwo.", source=name)]
    assert (corpus.counts["documents"], corpus.counts["utf8_bytes"]) == (1, 9)


@pytest.mark.parametrize("name", ["a.txt", "a.json", "a.jsonl"])
def test_only_conllu_has_sentences(write, name):
    path = write(name, "[]")
    assert complaint(path, unit="sentence") == (
        f"corpus.unit=sentence needs .conllu, but {path} is {path.suffix}; use corpus.unit=document"
    )


@pytest.mark.parametrize("name", ["a.txt", "a.json", "a.jsonl", "a.conllu"])
@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"one\ntw\xff\n", "byte 0xff on line 2, byte offset 6"),
        (b"\xef\xbb\xbfone\r\n\r\n\xe9t\xe9", "byte 0xe9 on line 3, byte offset 10"),
        (b"cut \xd1", "byte 0xd1 on line 1, byte offset 4"),
        (b"surrogate \xed\xa0\x80", "byte 0xed on line 1, byte offset 10"),
    ],
)
def test_what_is_not_utf8_is_named_with_line_and_byte(write, name, content, place):
    path = write(name, content)
    assert complaint(path).startswith(f"{path} is not UTF-8: {place} (")


def test_a_missing_corpus_is_named(tmp_path):
    path = tmp_path / "absent.txt"
    assert complaint(path) == f"there is no corpus at {path}; check corpus.path"


@pytest.mark.parametrize("name", ["a.pdf", "a", "a.txt.gz", "in/a.md"])
def test_an_unknown_format_lists_the_known_ones(write, name, tmp_path):
    path = write(name, "text")
    path = path.parent if path.parent != tmp_path else path
    assert complaint(path) == (
        f"{path} has no known format; known extensions are .txt .jsonl .json .conllu"
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", ""),
        ("a.txt", "\n \n\t\n"),
        ("a.json", ""),
        ("a.json", "[]"),
        ("a.jsonl", ""),
        ("a.jsonl", '{"text": " "}'),
        ("a.conllu", "# newdoc id = d\n"),
    ],
)
def test_a_corpus_without_text_is_refused(write, name, content):
    path = write(name, content)
    assert complaint(path) == f"{path} contains no text; every document in it is empty"


def test_an_unreadable_file_is_named(write, monkeypatch):
    def denied(_):
        raise PermissionError(13, "Permission denied")

    path = write("a.txt", "one")
    monkeypatch.setattr(Path, "read_bytes", denied)
    assert complaint(path).startswith(f"{path} cannot be read: Permission denied; ")


def test_an_id_that_stands_twice_is_named_with_its_files(write):
    write("in/a.jsonl", '{"id": "x", "text": "one"}\n{"id": "y", "text": "two"}')
    path = write("in/b.jsonl", '{"id": "x", "text": "three"}').parent
    assert complaint(path) == (
        f"{path} has the document ID 'x' 2 times, in a.jsonl, b.jsonl; make IDs unique"
    )


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ("[]", "line 2 is list, not an object with a `text` key"),
        ("null", "line 2 is NoneType, not an object with a `text` key"),
        ('{"body": "b", "alt": "a"}', "line 2 has no `text` key; it has ['alt', 'body']"),
        ('{"text": 7}', "line 2: `text` is int, but must be a string"),
        ('{"text": "a", "id": 7}', "line 2: `id` is int, but must be a string"),
        ('{"text": "a", "language": []}', "line 2: `language` is list, but must be a string"),
        ('{"text": "a", "provenance_group": true}', "line 2: `provenance_group` is bool"),
        (r'{"text": "ab\ud800"}', r"line 2: `text` contains the lone surrogate '\ud800' at charac"),
        (r'{"text": "a", "id": "\udfff"}', "line 2: `id` contains the lone surrogate"),
        ('{"text": "a"', "line 2 is not JSON: "),
        ("[" * 100_000, "line 2 is not JSON: "),
        ('{"text": "a", "n": 1' + "0" * 5000 + "}", "line 2 is not JSON: "),
    ],
)
def test_a_wrong_json_record_is_named_with_its_line(write, record, problem):
    path = write("a.jsonl", '{"text": "fine"}\n' + record)
    assert complaint(path).startswith(f"{path} {problem}")


def test_a_surrogate_pair_is_one_character(write):
    assert texts(write("a.jsonl", r'{"text": "\ud83d\ude00"}')) == ["\U0001f600"]


def test_a_json_file_holds_an_array(write):
    path = write("a.json", '{"text": "one"}')
    assert complaint(path).startswith(f"{path} must hold a JSON array of documents")
    path = write("a.json", '[{"text": "one"}, 7]')
    assert complaint(path).startswith(f"{path} record 2 is int")


PIECES = [b"# newdoc", b" id = ", b"# text = ", b"\n", b"\r\n", b"\t" * 9, b"a", b"\xff", b"\xd1"]
PIECES += [b'{"text": "a"}', b'{"id": ', b"[", b"]", b"{", b"}", b'"', b",", b"\\ud800", b" "]


@pytest.mark.parametrize("ending", ["txt", "json", "jsonl", "conllu"])
@given(content=st.binary(max_size=40) | st.lists(st.sampled_from(PIECES)).map(b"".join))
def test_random_bytes_are_a_corpus_error_or_documents_with_text(tmp_path_factory, ending, content):
    path = tmp_path_factory.getbasetemp() / f"random.{ending}"
    path.write_bytes(content)
    for unit in ("document", "corpus", "sentence"):
        try:
            found = read_corpus(path, unit=unit)
        except CorpusError:
            continue
        assert found.documents
        assert all(document.text.strip() for document in found.documents)


def served(path):
    return path.as_uri(), hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_file_is_fetched_once(write, tmp_path):
    url, sha256 = served(write("remote/names.txt", "emma\n"))
    found = fetch(url, sha256, tmp_path / "raw")
    assert (found, found.read_text()) == (tmp_path / "raw" / "names.txt", "emma\n")
    (tmp_path / "remote" / "names.txt").unlink()
    assert fetch(url, sha256.upper(), tmp_path / "raw") == found


def test_several_files_are_fetched_into_one_folder(write, tmp_path):
    one, two = served(write("remote/1.txt", "one")), served(write("remote/2.txt", "two"))
    urls, hashes = " ".join([one[0], two[0]]), f"{one[1]}\n{two[1]}"
    assert fetch(urls, hashes, tmp_path / "raw") == tmp_path / "raw"
    assert texts(tmp_path / "raw") == ["one", "two"]


def test_a_file_with_another_hash_is_not_kept(write, tmp_path):
    url, sha256 = served(write("remote/names.txt", "emma\n"))
    wrong = "0" * 64
    with pytest.raises(CorpusError) as caught:
        fetch(url, wrong, tmp_path / "raw")
    assert str(caught.value).startswith(f"{url} has SHA-256 {sha256}, but corpus.sha256 is {wrong}")
    assert list((tmp_path / "raw").iterdir()) == []


def test_a_damaged_copy_is_fetched_again(write, tmp_path):
    url, sha256 = served(write("remote/names.txt", "emma\n"))
    damaged = write("raw/names.txt", "em")
    assert fetch(url, sha256, tmp_path / "raw").read_text() == "emma\n"
    assert list(damaged.parent.iterdir()) == [damaged]


def test_a_download_that_fails_says_what_else_can_be_done(tmp_path):
    url = (tmp_path / "absent.txt").as_uri()
    with pytest.raises(CorpusError, match=r"cannot download .*absent\.txt: .*set corpus\.path"):
        fetch(url, "0" * 64, tmp_path / "raw")


@pytest.mark.parametrize("sha256", [None, "", "0" * 64 + " " + "0" * 64])
def test_each_address_needs_its_hash(sha256, tmp_path):
    with pytest.raises(CorpusError, match=r"names 1 files but corpus\.sha256 holds [02] hashes"):
        fetch("https://example.org/a.txt", sha256, tmp_path)


@pytest.mark.parametrize(
    "url",
    ["", "https://example.org/", "https://example.org/x/a.txt https://example.org/y/a.txt"],
)
def test_addresses_must_end_in_names_of_their_own(url, tmp_path):
    with pytest.raises(CorpusError, match="with distinct names"):
        fetch(url, " ".join("0" * 64 for _ in url.split()), tmp_path)


def test_the_names_are_32_033_of_which_29_494_are_distinct(real_data):
    found = texts(real_data("names/names.txt"))
    assert (len(found), len(set(found))) == (32_033, 29_494)
    assert sum(len(name) + 1 for name in found) == 228_146


@pytest.mark.parametrize(
    ("part", "sentences", "documents"),
    [("train", 12_544, 540), ("dev", 2_001, 318), ("test", 2_077, 316)],
)
def test_english_ewt_has_its_documents_and_sentences(real_data, part, sentences, documents):
    path = real_data(f"ewt/en_ewt-ud-{part}.conllu")
    found = read_corpus(path, unit="sentence").documents
    assert len(found) == sentences
    assert len({document.provenance_group for document in found}) == documents
    whole = read_corpus(path).documents
    assert len(whole) == documents
    assert sum(document.text.count("\n") + 1 for document in whole) == sentences


def test_brown_has_its_documents_paragraphs_sentences_and_tokens(real_data):
    found = texts(real_data("brown/brown.jsonl"))
    assert len(found) == 500
    assert sum(text.count("\n\n") + 1 for text in found) == 15_667
    assert sum(bool(line) for text in found for line in text.split("\n")) == 57_340
    assert sum(len(text.split()) for text in found) == 1_161_192


def test_marks_stand_before_documents_and_paragraphs(write):
    path = write("two.jsonl", '{"text": "a b\\nc\\n \\nd"}\n{"text": "e"}\n')
    both = texts(path, unit="corpus", document_mark="<d>", paragraph_mark="<p>")
    assert both == ["<d>\n<p>\na b\nc\n<p>\nd\n<d>\n<p>\ne"]
    assert texts(path, paragraph_mark="<p>") == ["<p>\na b\nc\n<p>\nd", "<p>\ne"]


@pytest.mark.parametrize(
    "content",
    ["One.\n\n\n  two\n\n", "\n\nOne.\r\n\r\nTwo.", "a\rb\r", "\u2028a\x0c\n \n", "x"],
)
def test_a_text_file_as_one_text_comes_through_byte_for_byte(write, content):
    path = write("a.txt", content)
    (document,) = read_corpus(path, unit="corpus").documents
    assert document.text.encode() == path.read_bytes()
    assert (document.id, document.source) == ("a", "a.txt")


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_paragraph_marks_stand_where_blank_lines_part_paragraphs(write, line_end):
    play = "ANNA:\nHello.\n\nBEN:\nHello\nyou.\n \t\n\nANNA:\nBye.\n"
    path = write("a.txt", play.replace("\n", line_end))
    assert texts(path, unit="corpus", document_mark="<d>", paragraph_mark="<p>") == [
        "<d>\n<p>\nANNA:\nHello.\n<p>\nBEN:\nHello\nyou.\n<p>\nANNA:\nBye.\n"
    ]


def test_a_well_known_play_file_keeps_every_character(real_data):
    path = real_data("shakespeare/input.txt")
    assert texts(path, unit="corpus") == [path.read_text(encoding="ascii")]
    (marked,) = texts(path, unit="corpus", paragraph_mark="<p>")
    speeches = path.read_text(encoding="ascii").strip().split("\n\n")
    assert marked.split().count("<p>") == len(speeches) == 7222


PARAGRAPHS = (
    f"# newdoc id = d1\n# newpar id = p1\n# text = One.\n{TOKEN}\n# text = Two.\n{TOKEN}\n"
    f"# newpar\n# text = Three.\n{TOKEN}\n# newdoc\n# newpar\n# text = Four.\n{TOKEN}\n"
)


def test_one_mark_stands_before_each_paragraph_of_conllu(write):
    path = write("a.conllu", PARAGRAPHS)
    assert texts(path) == ["One.\nTwo.\nThree.", "Four."]
    marked = ["<p>\nOne.\nTwo.\n<p>\nThree.", "<p>\nFour."]
    assert texts(path, paragraph_mark="<p>") == marked
    assert texts(path, paragraph_mark="<p>", unit="corpus") == ["\n".join(marked)]


def test_a_mark_that_the_text_holds_is_refused(write):
    told = complaint(write("one.txt", "a <p> b\n"), paragraph_mark="<p>")
    assert "contains the word '<p>' itself" in told
    assert "corpus.paragraph_mark" in told


def test_rare_words_of_the_whole_corpus_become_unknown(write):
    merged = merge_rare_words(read_corpus(write("lines.txt", "a b  a\nb a c\n")), 2)
    assert [document.text for document in merged.documents] == ["a b  a", "b a <unk>"]
    assert merged.counts["rare_words_merged"] == merged.counts["rare_types_merged"] == 1


def test_brown_with_marks_is_one_stream_of_1_177_359_tokens(real_data):
    path = real_data("brown/brown.jsonl")
    corpus = read_corpus(path, unit="corpus", document_mark="<d>", paragraph_mark="<p>")
    (document,) = merge_rare_words(corpus, 4).documents
    words = document.text.split()
    assert len(words) == 1_177_359
    assert len(set(words)) == 17_906 + 1
