"""A document: the unit in which a corpus is read and divided."""

from dataclasses import dataclass

__all__ = ["Document"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """The unit of splitting: its text is never divided between partitions unless asked."""

    id: str
    text: str
    language: str | None = None
    provenance_group: str | None = None
    source: str = ""
