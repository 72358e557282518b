"""Files to a corpus of documents, with counts of what was read, dropped and left out.

With unit="corpus" everything is one document, with a line break between the parts. Marks are words
inserted before documents and paragraphs. A minimum frequency merges rare words of the whole corpus
into <unk>; some published corpora are defined this way, and since it uses more than train it is
done explicitly here and not by the tokenizer.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from neural_ngram.corpus.document import Document
from neural_ngram.corpus.files import decode, find_files, read_bytes
from neural_ngram.corpus.formats import READERS, Source, parse
from neural_ngram.errors import CorpusError

__all__ = ["Corpus", "Document", "merge_rare_words", "read_corpus"]

UNKNOWN = "<unk>"
_ALWAYS_COUNTED = ("empty_documents_dropped", "files", "files_with_bom", "files_with_crlf")
_MOST_NAMED = 100  # bad files


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """The documents read, and counts of what was found.

    counts: files, documents, utf8_bytes, empty_documents_dropped, files_with_bom,
    files_with_crlf; and, where there are any, files that were left out, by reason, and
    irregularities in the text: old line ends, NUL, byte order marks within it.
    entropies_nats: of a synthetic source only, H(next | last k characters) for k = 0 … its order.
    """

    documents: list[Document]
    counts: dict[str, int] = field(default_factory=dict)
    entropies_nats: list[float] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class _Manner:
    """How files are read, as the user asks."""

    unit: str
    encoding: str
    document_mark: str
    paragraph_mark: str

    @property
    def marks(self) -> set[str]:
        return {self.document_mark, self.paragraph_mark} - {""}


def read_corpus(  # noqa: PLR0913 - what a user may ask
    path: Path,
    *,
    unit: str = "document",
    encoding: str = "utf-8",
    files: Collection[str] = (),
    document_mark: str = "",
    paragraph_mark: str = "",
) -> Corpus:
    """Read a file or a folder of files.

    files: patterns of the names to read in a folder; empty: all, which must be of one format.

    Raises CorpusError when it is missing, empty or of an unknown format, when files are not in
    that encoding (with the byte offset) or malformed (with the line), each of them named, and when
    an ID occurs twice.
    """
    manner = _Manner(
        unit=unit,
        encoding=encoding,
        document_mark=document_mark,
        paragraph_mark=paragraph_mark,
    )
    found, left_out = find_files(path, endings=READERS, patterns=files)
    counts: Counter[str] = Counter()
    documents, problems = list[Document](), list[str]()
    for file in found:
        try:
            source = _source(file, path if path.is_dir() else None, manner, counts)
            documents += [replace(each, source=file.name) for each in parse(source)]
        except CorpusError as problem:
            problems.append(str(problem))
    if problems:
        raise CorpusError(_all_of(problems, len(found)))
    kept = [document for document in documents if document.text.strip()]
    counts.update(files=len(found), empty_documents_dropped=len(documents) - len(kept))
    return _corpus(path, kept, manner, counts + left_out)


def _source(file: Path, folder: Path | None, manner: _Manner, counts: Counter[str]) -> Source:
    verbatim = READERS[file.suffix.lower()].verbatim
    exact = manner.unit == "corpus" and verbatim and not manner.marks
    text, seen = decode(file, read_bytes(file), manner.encoding, exact=exact)
    counts.update(seen)
    return Source(
        file=file,
        text=text,
        folder=folder,
        unit=manner.unit,
        paragraphs=bool(manner.paragraph_mark),
    )


def _all_of(problems: list[str], files: int) -> str:
    """One message for all bad files; advice that several share is given once."""
    if len(problems) == 1:
        return problems[0]
    by_advice: defaultdict[str, list[str]] = defaultdict(list)
    for problem in problems[:_MOST_NAMED]:
        told, _, advice = problem.partition("; ")
        by_advice[advice].append(told)
    told = "; ".join(f"{', '.join(each)}; {advice}" for advice, each in by_advice.items())
    more = len(problems) - _MOST_NAMED
    rest = f"; and {more} more" if more > 0 else ""
    return f"{len(problems)} of {files} files cannot be read: {told}{rest}"


def _corpus(path: Path, documents: list[Document], manner: _Manner, counts: Counter[str]) -> Corpus:
    if not documents:
        raise CorpusError(f"{path} contains no text; every document in it is empty")
    _refuse_repeated_ids(documents, path)
    if manner.marks:
        documents = [_mark(document, manner) for document in documents]
    if manner.unit == "corpus":
        joined = "\n".join(document.text for document in documents)
        documents = [Document(id=path.stem, text=joined, source=path.name)]
    bytes_of = sum(len(document.text.encode("utf-8")) for document in documents)
    told = {name: counts[name] for name in _ALWAYS_COUNTED} | {k: n for k, n in counts.items() if n}
    told |= {"documents": len(documents), "utf8_bytes": bytes_of}
    return Corpus(documents=documents, counts=dict(sorted(told.items())))


def _mark(document: Document, manner: _Manner) -> Document:
    """Marks as words on lines of their own; paragraphs are separated by blank lines."""
    for mark in manner.marks & set(document.text.split()):
        raise CorpusError(
            f"document {document.id!r} of {document.source} contains the word {mark!r} itself; "
            "choose another corpus.document_mark or corpus.paragraph_mark"
        )
    return replace(document, text="\n".join(_marked_lines(document.text, manner)))


def _marked_lines(text: str, manner: _Manner) -> Iterator[str]:
    if manner.document_mark:
        yield manner.document_mark
    for paragraph in re.split(r"\n(?:[^\S\n]*\n)+", text):
        if paragraph.strip():
            if manner.paragraph_mark:
                yield manner.paragraph_mark
            yield paragraph


def merge_rare_words(corpus: Corpus, minimum_frequency: int) -> Corpus:
    """The same corpus with whitespace-separated words that occur less often replaced by <unk>.

    Counts gain `rare_words_merged` and `rare_types_merged`, unless a word may occur once.
    """
    if minimum_frequency <= 1:
        return corpus
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


def _refuse_repeated_ids(documents: list[Document], path: Path) -> None:
    seen = Counter(document.id for document in documents)
    identifier, times = seen.most_common(1)[0]
    if times > 1:
        sources = sorted({document.source for document in documents if document.id == identifier})
        raise CorpusError(
            f"{path} has the document ID {identifier!r} {times} times, in {', '.join(sources)}; "
            "make IDs unique"
        )
