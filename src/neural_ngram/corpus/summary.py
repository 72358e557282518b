"""Sentences about a divided corpus: counts and fractions, no text of a document."""

from collections.abc import Iterator, Mapping

from neural_ngram.corpus.division import Division

__all__ = ["sentences"]

ODD = {
    "nul_characters": "NUL characters",
    "byte_order_marks_within_text": "byte order marks (U+FEFF) within the text",
}
FOUND = {  # one, several
    "files_with_bom": ("file with a byte order mark", "files with a byte order mark"),
    "files_with_crlf": ("file with CRLF line ends", "files with CRLF line ends"),
    "files_with_cr_line_ends": ("file with CR line ends", "files with CR line ends"),
    "files_not_chosen": ("file not in corpus.files", "files not in corpus.files"),
    "hidden_files_left_out": ("hidden file skipped", "hidden files skipped"),
    "dangling_links_left_out": ("dangling link skipped", "dangling links skipped"),
    "linked_folders_left_out": ("linked folder skipped", "linked folders skipped"),
    "special_files_left_out": ("special file skipped", "special files skipped"),
    "files_of_other_endings_left_out": (
        "file of another format skipped",
        "files of other formats skipped",
    ),
    "rare_words_merged": ("rare word replaced by <unk>", "rare words replaced by <unk>"),
}


def sentences(division: Division) -> Iterator[str]:
    """What was read, its irregularities, and how it was divided."""
    counts, split = division.corpus.counts, division.settings.split
    yield _read(counts)
    for name, what in ODD.items():
        if counts.get(name):
            yield (
                f"warning: the text contains {counts[name]:,} {what}, which are kept; remove them "
                "from the corpus if they are not intended"
            )
    sizes = ", ".join(f"{size:,} {name}" for name, size in division.sizes.items())
    yield f"divided into {sizes}"
    if split.method == "whole":
        yield "no held-out text: validation repeats train, and test is empty"
    elif not split.has_test:
        yield "no test partition: train and validation use all of the text"
    for name, found in division.leakage.items():
        yield (
            f"{name}: {found['same_text_in_train']:.1%} of documents also occur in train, "
            f"{found['near_duplicate_in_train']:.1%} have a near duplicate there"
        )


def _read(counts: Mapping[str, int]) -> str:
    documents = _numbered(counts["documents"], ("document", "documents"))
    if "files" not in counts:
        return f"{documents} drawn from the synthetic source"
    found = [f"{counts['empty_documents_dropped']:,} empty dropped"]
    found += [_numbered(counts[name], words) for name, words in FOUND.items() if counts.get(name)]
    return f"{documents} from {_numbered(counts['files'], ('file', 'files'))} ({', '.join(found)})"


def _numbered(count: int, words: tuple[str, str]) -> str:
    return f"{count:,} {words[count != 1]}"
