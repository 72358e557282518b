"""Packages that a test takes away."""

from collections.abc import Sequence
from importlib.machinery import ModuleSpec


class Missing:
    """A finder in front of all others that finds none of some modules."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = frozenset(names)

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None
