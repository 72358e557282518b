"""How large tables of counts would be."""

__all__ = ["table_sizes"]


def table_sizes(vocabulary_size: int, context_length: int) -> dict[str, int]:
    """How many cells a table of counts has that is keyed by the last k tokens: V^(k + 1)."""
    names = {0: "unigram", 1: "bigram"}
    return {
        names.get(k, f"context_{k}"): vocabulary_size ** (k + 1) for k in range(context_length + 1)
    }
