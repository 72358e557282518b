"""The files of a corpus, and their text.

In a folder, files with known extensions are read, in order of their names; every other file is
counted with the reason for leaving it out. Files of several formats are not mixed unless
`corpus.files` chooses them: a README.txt beside a treebank is not a document.
"""

import codecs
import os
from collections import Counter
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from neural_ngram.errors import CorpusError

__all__ = ["decode", "find_files", "read_bytes"]

BYTE_ORDER_MARK = "\ufeff"
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MOST_NUL = 0.01  # fraction of characters; UTF-16 read as UTF-8 has one for each space


def find_files(
    path: Path, *, endings: Collection[str], patterns: Collection[str] = ()
) -> tuple[list[Path], Counter[str]]:
    """The files to read, sorted, and how many others are left out, by reason.

    patterns: names, or paths below the folder, with `*`, `?` and `[]`; empty: all of one format.

    Raises CorpusError when there is no file to read, when the formats are mixed, when a folder
    cannot be listed and when names are not UTF-8.
    """
    if not path.exists():
        raise CorpusError(f"there is no corpus at {path}; check corpus.path")
    if not (path.is_file() or path.is_dir()):
        raise CorpusError(f"{path} is neither a file nor a folder; copy its text into a file")
    left_out: Counter[str] = Counter()
    chosen = list[Path]()
    for file in [path] if path.is_file() else _walk(path):
        reason = _reason_against(file, file.relative_to(path), endings, patterns)
        if reason:
            left_out[reason] += 1
        else:
            chosen.append(file)
    _require_files(path, chosen, left_out, endings, patterns)
    _require_one_ending(path, chosen, patterns)
    _require_utf8_names(path, chosen)
    return sorted(chosen), left_out


def _walk(folder: Path) -> Iterator[Path]:
    """Everything in a folder that is not itself a folder; links to folders are not followed."""

    def refuse(problem: OSError) -> None:
        raise CorpusError(
            f"{problem.filename} cannot be listed: {problem.strerror}; check its permissions"
        ) from problem

    for parent, folders, files in os.walk(folder, onerror=refuse):
        links = (Path(parent, name) for name in folders if Path(parent, name).is_symlink())
        yield from (*links, *(Path(parent, name) for name in files))


def _reason_against(
    file: Path, below: Path, endings: Collection[str], patterns: Collection[str]
) -> str | None:
    """Why a file is not read, as the name of a count; None when it is."""
    names = (file.name, below.as_posix())
    reasons = {
        "hidden_files_left_out": any(part.startswith(".") for part in below.parts),
        "dangling_links_left_out": not file.exists(),
        "linked_folders_left_out": file.is_dir(),
        "special_files_left_out": not file.is_file(),
        "files_of_other_endings_left_out": file.suffix.lower() not in endings,
        "files_not_chosen": patterns
        and not any(fnmatchcase(name, pattern) for name in names for pattern in patterns),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _require_files(
    path: Path,
    chosen: list[Path],
    left_out: Counter[str],
    endings: Collection[str],
    patterns: Collection[str],
) -> None:
    if chosen:
        return
    if left_out["files_not_chosen"]:
        raise CorpusError(
            f"corpus.files is {list(patterns)}, which matches none of the "
            f"{left_out['files_not_chosen']} files of {path}; correct the patterns"
        )
    raise CorpusError(f"{path} has no known format; known extensions are {' '.join(endings)}")


def _require_one_ending(path: Path, chosen: list[Path], patterns: Collection[str]) -> None:
    found = Counter(file.suffix.lower() for file in chosen)
    if len(found) > 1 and not patterns:
        counts = ", ".join(f"{count} {ending}" for ending, count in sorted(found.items()))
        raise CorpusError(
            f"{path} mixes formats ({counts}); choose the files of the corpus, for example "
            f"corpus.files=['*{min(found)}'] (['*'] for all of them)"
        )


def _require_utf8_names(path: Path, chosen: list[Path]) -> None:
    names = [os.fsencode(file.relative_to(path)) for file in chosen]
    shown = [name.decode("utf-8", "backslashreplace") for name in names if not _is_utf8(name)]
    if shown:
        raise CorpusError(
            f"{len(shown)} of the {len(names)} files of {path} have names that are not UTF-8: "
            f"{', '.join(sorted(shown))}; rename them"
        )


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def read_bytes(file: Path) -> bytes:
    """The content of a file; raises CorpusError when it cannot be read or memory cannot hold it."""
    try:
        return file.read_bytes()
    except OSError as problem:
        raise CorpusError(
            f"{file} cannot be read: {problem.strerror}; check its permissions"
        ) from problem
    except MemoryError:
        size = file.stat().st_size
        raise CorpusError(
            f"{file} has {size:,} bytes, more than memory can hold; set corpus.path to a part of it"
        ) from None


def decode(file: Path, raw: bytes, encoding: str, *, exact: bool) -> tuple[str, Counter[str]]:
    """The text of a file without its byte order mark, and counts of irregularities in it.

    exact: keep line ends as they are. Otherwise CRLF becomes LF, and so does CR, the line end of
    old systems, in a file without any LF.

    Raises CorpusError, naming line and byte, for content that is not text in that encoding.
    """
    try:
        text = raw.decode(encoding)
        if encoding != "utf-8":
            text.encode("utf-8")  # some encodings can spell a lone surrogate
    except UnicodeError as problem:
        raise CorpusError(_undecodable(file, raw, encoding, problem)) from None
    dropped = codecs.lookup(encoding).name == "utf-16" and raw.startswith(_UTF16_MARKS)
    marked = dropped or text.startswith(BYTE_ORDER_MARK)
    text = text.removeprefix(BYTE_ORDER_MARK)
    nul = text.count("\0")
    if nul > _MOST_NUL * len(text):
        raise CorpusError(
            f"{file} has {nul:,} NUL in {len(text):,} characters, so it is not {encoding} text; "
            "set corpus.encoding (utf-16-le or utf-16-be?), or leave the file out"
        )
    counts = Counter({"files_with_bom": int(marked), "files_with_crlf": int("\r\n" in text)})
    counts["nul_characters"] = nul
    counts["byte_order_marks_within_text"] = text.count(BYTE_ORDER_MARK)
    if not exact:
        text = text.replace("\r\n", "\n")
        if "\r" in text and "\n" not in text:
            counts["files_with_cr_line_ends"] = 1
            text = text.replace("\r", "\n")
    return text, counts


def _undecodable(file: Path, raw: bytes, encoding: str, problem: UnicodeError) -> str:
    name = "UTF-8" if encoding == "utf-8" else encoding
    advice = "convert the file to UTF-8, or set corpus.encoding to what it is (latin-1, cp1252, …)"
    if raw.startswith(_UTF16_MARKS):
        advice = "set corpus.encoding=utf-16"
    if not isinstance(problem, UnicodeDecodeError) or problem.start >= len(raw):
        return f"{file} is not {name} ({problem}); {advice}"
    line = raw.count(b"\n", 0, problem.start) + 1
    return (
        f"{file} is not {name}: byte 0x{raw[problem.start]:02x} on line {line}, byte offset "
        f"{problem.start} ({problem.reason}); {advice}"
    )
