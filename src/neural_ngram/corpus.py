"""Bytes to documents: formats, encodings, and what was dropped and why.

The format follows from the file's ending; a folder is read as all its files of known endings, in
order of their names.

    .txt                one document a line; in a folder, one document a file
    .jsonl .json        one object a document: `text`, optional `id`, `language`,
                        `provenance_group`
    .conllu             one document a `# newdoc id`, or with unit="sentence" one a sentence,
                        its `# text = ` line; the document is the provenance group

With unit="corpus" everything is one document, a line break between the parts. Marks are words put
in front of documents and paragraphs. A minimum frequency merges rare words of the whole corpus into
<unk>; some published corpora are defined so, and since that looks beyond train it is done here, in
the open, and not by the tokenizer.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from neural_ngram.errors import CorpusError

__all__ = ["Corpus", "Document", "merge_rare_words", "read_corpus"]

UNKNOWN = "<unk>"

_ENDINGS = (".txt", ".jsonl", ".json", ".conllu")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """The unit of splitting: its text is never divided between partitions unless asked."""

    id: str
    text: str
    language: str | None = None
    provenance_group: str | None = None
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """The documents read, and what the reading found.

    counts: files, documents, utf8_bytes, empty_documents_dropped, files_with_bom,
    files_with_crlf.
    """

    documents: list[Document]
    counts: dict[str, int] = field(default_factory=dict)


def read_corpus(
    path: Path, *, unit: str = "document", document_mark: str = "", paragraph_mark: str = ""
) -> Corpus:
    """Read a file or a folder of files.

    Raises CorpusError when it is missing, empty, of an unknown format, not UTF-8 (with the byte
    offset), malformed (with the line), or holds an ID twice.
    """
    counts: Counter[str] = Counter(dict.fromkeys(("empty_documents_dropped", "files_with_bom"), 0))
    counts.update(files=0, files_with_crlf=0)
    documents: list[Document] = []
    for file in _files(path):
        text = _text(file, counts)
        counts["files"] += 1
        for document in _parse(file, text, folder=path if path.is_dir() else None, unit=unit):
            if document.text.strip():
                documents.append(replace(document, source=file.name))
            else:
                counts["empty_documents_dropped"] += 1
    if not documents:
        raise CorpusError(f"{path} holds no text; every document in it is empty")
    _refuse_repeated_ids(documents, path)
    if document_mark or paragraph_mark:
        documents = [_mark(document, document_mark, paragraph_mark) for document in documents]
    if unit == "corpus":
        joined = "\n".join(document.text for document in documents)
        documents = [Document(id=path.stem, text=joined, source=path.name)]
    counts["documents"] = len(documents)
    counts["utf8_bytes"] = sum(len(document.text.encode("utf-8")) for document in documents)
    return Corpus(documents=documents, counts=dict(sorted(counts.items())))


def _mark(document: Document, document_mark: str, paragraph_mark: str) -> Document:
    """Marks as words on lines of their own; paragraphs are set apart by blank lines."""
    for mark in {document_mark, paragraph_mark} & set(document.text.split()):
        raise CorpusError(
            f"document {document.id!r} of {document.source} holds the word {mark!r} itself; "
            "choose another corpus.document_mark or corpus.paragraph_mark"
        )
    paragraphs = [part for part in re.split(r"\n[^\S\n]*\n", document.text) if part.strip()]
    lines = [document_mark] if document_mark else []
    for paragraph in paragraphs:
        lines += [paragraph_mark, paragraph] if paragraph_mark else [paragraph]
    return replace(document, text="\n".join(lines))


def merge_rare_words(corpus: Corpus, minimum_frequency: int) -> Corpus:
    """The same corpus with whitespace-separated words seen less often than that read as <unk>.

    Counts gain `rare_words_merged` and `rare_types_merged`.
    """
    words = Counter(word for document in corpus.documents for word in document.text.split())
    rare = {word for word, count in words.items() if count < minimum_frequency}
    documents = [
        replace(
            document,
            text=re.sub(
                r"\S+", lambda word: UNKNOWN if word[0] in rare else word[0], document.text
            ),
        )
        for document in corpus.documents
    ]
    merged = sum(words[word] for word in rare)
    counts = {**corpus.counts, "rare_words_merged": merged, "rare_types_merged": len(rare)}
    return Corpus(documents=documents, counts=dict(sorted(counts.items())))


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise CorpusError(f"there is no corpus at {path}; check corpus.path")
    if path.is_file():
        found = [path] if path.suffix in _ENDINGS else []
    else:
        found = sorted(p for p in path.rglob("*") if p.is_file() and p.suffix in _ENDINGS)
    if not found:
        raise CorpusError(
            f"{path} is of no known format; the endings read are {' '.join(_ENDINGS)}"
        )
    return found


def _text(file: Path, counts: Counter[str]) -> str:
    try:
        raw = file.read_bytes()
    except OSError as problem:
        raise CorpusError(
            f"{file} cannot be read: {problem.strerror}; check its permissions"
        ) from problem
    bom = len(_BOM) if raw.startswith(_BOM) else 0
    counts["files_with_bom"] += bool(bom)
    counts["files_with_crlf"] += b"\r\n" in raw
    try:
        text = raw[bom:].decode("utf-8")
    except UnicodeDecodeError as problem:
        offset = bom + problem.start
        line = raw.count(b"\n", 0, offset) + 1
        raise CorpusError(
            f"{file} is not UTF-8: byte 0x{raw[offset]:02x} on line {line}, byte offset {offset} "
            f"({problem.reason}); convert the file to UTF-8"
        ) from None
    return text.replace("\r\n", "\n")


def _parse(file: Path, text: str, *, folder: Path | None, unit: str) -> Iterator[Document]:
    if unit == "sentence" and file.suffix != ".conllu":
        raise CorpusError(
            f"corpus.unit=sentence needs CoNLL-U, but {file} is {file.suffix}; "
            "use corpus.unit=document"
        )
    if file.suffix == ".conllu":
        return _parse_conllu(file, text, sentences=unit == "sentence")
    if file.suffix != ".txt":
        return _parse_json(file, text)
    if folder is None:
        return _parse_lines(file, text)
    name = file.relative_to(folder).with_suffix("").as_posix()
    return iter([Document(id=name, text=text)])


def _parse_lines(file: Path, text: str) -> Iterator[Document]:
    lines = text.removesuffix("\n").split("\n") if text else []
    for number, line in enumerate(lines, start=1):
        yield Document(id=f"{file.stem}:{number}", text=line)


def _parse_json(file: Path, text: str) -> Iterator[Document]:
    if file.suffix == ".jsonl":
        numbered = [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
        records = [(f"line {n}", _json(line, f"{file} line {n}")) for n, line in numbered]
    else:
        content = _json(text, str(file)) if text.strip() else []
        if not isinstance(content, list):
            raise CorpusError(f"{file} must hold a JSON array of documents; use .jsonl for lines")
        records = [(f"record {n}", record) for n, record in enumerate(content, start=1)]
    for place, record in records:
        yield _document(record, place, file)


def _json(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise CorpusError(f"{place} is not JSON: {problem}; mend it") from None


def _document(record: Any, place: str, file: Path) -> Document:
    if not isinstance(record, dict):
        raise CorpusError(
            f"{file} {place} is {type(record).__name__}, not an object with a `text` key"
        )
    if "text" not in record:
        raise CorpusError(f"{file} {place} has no `text` key; it has {sorted(record)}")
    for key in ("id", "text", "language", "provenance_group"):
        value = record.get(key)
        if value is None:
            continue
        if not isinstance(value, str):
            raise CorpusError(
                f"{file} {place}: `{key}` is {type(value).__name__}, but must be a string"
            )
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as problem:
            raise CorpusError(
                f"{file} {place}: `{key}` holds the lone surrogate {value[problem.start]!r} at "
                f"character {problem.start}, which is no text; mend the escape"
            ) from None
    return Document(
        id=record.get("id") or f"{file.stem}:{place.rsplit(maxsplit=1)[-1]}",
        text=record["text"] or "",
        language=record.get("language"),
        provenance_group=record.get("provenance_group"),
    )


def _parse_conllu(file: Path, text: str, *, sentences: bool) -> Iterator[Document]:
    group, number, gathered, has_text = file.stem, 0, list[str](), False
    for place, line in enumerate([*text.split("\n"), "# newdoc id = "], start=1):
        value = line.removeprefix("# ").partition(" = ")[2]
        if line.startswith("# newdoc"):
            if gathered and not sentences:
                yield Document(id=group, text="\n".join(gathered), provenance_group=group)
            gathered, group, number = [], value.strip() or f"{file.stem}:{place}", 0
        elif line.startswith("# text = "):
            number, has_text = number + 1, True
            gathered.append(value)
            if sentences:
                yield Document(id=f"{group}#{number}", text=value, provenance_group=group)
        elif not line:
            has_text = False
        elif not line.startswith("#"):
            _check_conllu_token(line, f"{file} line {place}", has_text=has_text)


def _check_conllu_token(line: str, place: str, *, has_text: bool) -> None:
    if line.count("\t") != 9:
        raise CorpusError(
            f"{place} has {line.count(chr(9)) + 1} columns, but CoNLL-U has 10; "
            "the file is damaged or cut short, so fetch it again"
        )
    if not has_text:
        raise CorpusError(
            f"{place} is a token of a sentence without a `# text = ` line, which alone is read; "
            "add the line"
        )


def _refuse_repeated_ids(documents: list[Document], path: Path) -> None:
    seen = Counter(document.id for document in documents)
    identifier, times = seen.most_common(1)[0]
    if times > 1:
        sources = sorted({document.source for document in documents if document.id == identifier})
        raise CorpusError(
            f"{path} holds the document ID {identifier!r} {times} times, in {', '.join(sources)}; "
            "make IDs unique"
        )
