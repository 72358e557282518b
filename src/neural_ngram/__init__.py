"""Small fixed-context neural language models, in a reproducible pipeline.

    import neural_ngram

    model = neural_ngram.fit("names.txt", kind="character", context_length=3)
    model.score("emma").bits_per_byte
    neural_ngram.load("artifacts").sample(3)

The two functions are imported when they are first used, since the tensor library takes seconds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neural_ngram.library.fit import fit
    from neural_ngram.library.folder import load

__all__ = ["fit", "load"]

_HOMES = {"fit": "neural_ngram.library.fit", "load": "neural_ngram.library.folder"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
