"""Text to documents: one reader per format, found by the file's extension.

    .txt                one document per line; in a folder, one document per file
    .jsonl .json        one object per document: `text`, optional `id`, `language`,
                        `provenance_group`
    .conllu             one document per `# newdoc id`, or with unit="sentence" per sentence,
                        its `# text = ` line; the document is the provenance group

With unit="corpus" a text file is one document, which keeps every character.

No numpy here: the configuration reads the endings from this table, and must do without.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from neural_ngram.corpus.document import Document
from neural_ngram.errors import CorpusError

__all__ = ["READERS", "Reader", "Source", "parse"]


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file to be parsed.

    folder: the folder that is read, None when the corpus is a single file.
    unit: what becomes a document, as in `corpus.unit`.
    paragraphs: separate the paragraphs that a format marks by blank lines.
    """

    file: Path
    text: str
    folder: Path | None
    unit: str
    paragraphs: bool

    @property
    def name(self) -> str:
        """The file's path below the folder, without its ending."""
        below = self.file.relative_to(self.folder or self.file.parent)
        return below.with_suffix("").as_posix()


class Reader(NamedTuple):
    """How files of one format are read.

    read: a file's documents in order, empty ones included; raises CorpusError, naming the place.
    sentences: whether the format marks sentences, which unit="sentence" then yields.
    verbatim: whether the file is its text, so that one document keeps each of its characters.
    """

    read: Callable[[Source], Iterator[Document]]
    sentences: bool = False
    verbatim: bool = False


def parse(source: Source) -> Iterator[Document]:
    """The documents of a file, empty ones included; raises CorpusError, naming file and line."""
    reader = READERS[source.file.suffix.lower()]
    if source.unit == "sentence" and not reader.sentences:
        known = " or ".join(ending for ending, each in READERS.items() if each.sentences)
        raise CorpusError(
            f"corpus.unit=sentence needs {known}, but {source.file} is {source.file.suffix}; "
            "use corpus.unit=document"
        )
    return reader.read(source)


def _read_text(source: Source) -> Iterator[Document]:
    if source.folder is not None or source.unit == "corpus":
        return iter([Document(id=source.name, text=source.text)])
    return _lines(source)


def _lines(source: Source) -> Iterator[Document]:
    lines = source.text.removesuffix("\n").split("\n") if source.text else []
    for number, line in enumerate(lines, start=1):
        yield Document(id=f"{source.file.stem}:{number}", text=line)


def _read_jsonl(source: Source) -> Iterator[Document]:
    for number, line in enumerate(source.text.split("\n"), start=1):
        if line.strip():
            record = _json(line, f"{source.file} line {number}")
            yield _document(record, f"line {number}", source.file)


def _read_json(source: Source) -> Iterator[Document]:
    content = _json(source.text, str(source.file)) if source.text.strip() else []
    if not isinstance(content, list):
        raise CorpusError(
            f"{source.file} must hold a JSON array of documents; use .jsonl for lines"
        )
    for number, record in enumerate(content, start=1):
        yield _document(record, f"record {number}", source.file)


def _json(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise CorpusError(f"{place} is not JSON: {problem}; fix it") from None


def _document(record: Any, place: str, file: Path) -> Document:
    if not isinstance(record, dict):
        raise CorpusError(
            f"{file} {place} is {type(record).__name__}, not an object with a `text` key"
        )
    if "text" not in record:
        raise CorpusError(f"{file} {place} has no `text` key; it has {sorted(record)}")
    for key in ("id", "text", "language", "provenance_group"):
        _require_string(record.get(key), f"{file} {place}: `{key}`")
    return Document(
        id=record.get("id") or f"{file.stem}:{place.rsplit(maxsplit=1)[-1]}",
        text=record["text"] or "",
        language=record.get("language"),
        provenance_group=record.get("provenance_group"),
    )


def _require_string(value: Any, place: str) -> None:
    if value is None:
        return
    if not isinstance(value, str):
        raise CorpusError(f"{place} is {type(value).__name__}, but must be a string")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as problem:
        raise CorpusError(
            f"{place} contains the lone surrogate {value[problem.start]!r} at "
            f"character {problem.start}, which is not text; fix the escape"
        ) from None


def _read_conllu(source: Source) -> Iterator[Document]:
    file, sentences = source.file, source.unit == "sentence"
    group, number, gathered, has_text = file.stem, 0, list[str](), False
    for place, line in enumerate([*source.text.split("\n"), "# newdoc id = "], start=1):
        value = line.removeprefix("# ").partition(" = ")[2]
        if line.startswith("# newdoc"):
            if gathered and not sentences:
                yield Document(id=group, text="\n".join(gathered), provenance_group=group)
            gathered, group, number = [], value.strip() or f"{file.stem}:{place}", 0
        elif line.startswith("# newpar"):
            if source.paragraphs and gathered:
                gathered.append("")
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
            "the file is damaged or truncated, so download it again"
        )
    if not has_text:
        raise CorpusError(
            f"{place} is a token of a sentence without a `# text = ` line, but only that line is "
            "read; add it"
        )


READERS = {
    ".txt": Reader(_read_text, verbatim=True),
    ".jsonl": Reader(_read_jsonl),
    ".json": Reader(_read_json),
    ".conllu": Reader(_read_conllu, sentences=True),
}
