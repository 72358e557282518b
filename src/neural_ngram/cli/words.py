"""What commands have in common: how their help is laid out, types of arguments, tables."""

import argparse
import math
import sys

__all__ = ["Help", "fill", "natural", "seconds", "table", "tell"]


class Help(argparse.HelpFormatter):
    """Paragraphs are wrapped to the terminal; indented lines, which are examples, stay."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = text.splitlines()
        return "\n".join(
            line if line.startswith(" ") else super(Help, self)._fill_text(line, width, indent)
            for line in lines
        )


def fill(text: str) -> str:
    """A docstring with each paragraph on one line; a blank line parts paragraphs."""
    paragraphs = text.strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def natural(text: str) -> int:
    """A non-negative integer, or argparse says that it is not."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a non-negative integer")
    return int(text)


def seconds(text: str) -> float:
    """A finite, non-negative number of seconds, or argparse says that it is not."""
    try:
        time = float(text)
    except ValueError:
        time = math.nan
    if not 0 <= time < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a non-negative number of seconds")
    return time


def tell(line: str) -> None:
    """A line beside the output proper."""
    print(f"neural-ngram: {line}", file=sys.stderr, flush=True)


def table(header: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    """Aligned columns: the first to the left, the others to the right."""
    cells = [header, *(tuple(map(str, row)) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )
