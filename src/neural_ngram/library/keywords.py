"""Settings from keyword arguments.

A setting goes by its last name where only one has it (`context_length`), and otherwise by as much
of its dotted name as tells it apart, with two underscores for each dot: `training__seed`,
`corpus__minimum_frequency`. Defaults are those of `settings.py`, not those of `conf/`.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from neural_ngram.errors import ConfigurationError
from neural_ngram.settings import Settings, flatten, nearest, settings_of

__all__ = ["settings_from"]

# What says where the pipeline finds or keeps its files, or what only its stages do.
_PIPELINE = (
    *("configuration_sha256", "boundary.", "evaluation.unseal_test", "evaluation.test_documents"),
    *("corpus.name", "corpus.path", "corpus.url", "corpus.sha256", "corpus.dependency"),
    *("corpus.most_bytes", "corpus.source.", "corpus.split.lists"),
    *("training.vectors_dependency", "training.checkpoint_every", "training.determinism"),
    *("training.probe", "training.replay"),
)


def settings_from(given: Mapping[str, Any]) -> Settings:
    """Checked settings: the defaults with those that are given.

    Raises ConfigurationError for a name that is unknown, ambiguous, given twice or of the pipeline
    alone, and what `settings_of` raises for values.
    """
    tree, known = asdict(Settings()), [name for name, _, _ in flatten(Settings())]
    resolved: dict[str, str] = {}
    for keyword, value in given.items():
        name = _resolve(keyword, known)
        if name in resolved:
            raise ConfigurationError(
                f"{keyword} and {resolved[name]} are both {name}; give one of them"
            )
        resolved[name] = keyword
        *groups, leaf = name.split(".")
        place = tree
        for group in groups:
            place = place[group]
        place[leaf] = value
    return settings_of(tree)


def _resolve(keyword: str, known: list[str]) -> str:
    """The full dotted name that a keyword means."""
    wanted = keyword.replace("__", ".")
    ends = [name for name in known if f".{name}".endswith(f".{wanted}")]
    found = [name for name in ends if not name.startswith(_PIPELINE)]
    if wanted in found:
        return wanted
    if len(found) == 1:
        return found[0]
    if found:
        choices = ", ".join(name.replace(".", "__") for name in found)
        raise ConfigurationError(f"several settings are called {keyword}; write one of {choices}")
    if ends:
        raise ConfigurationError(
            f"{ends[0]} is a setting of the pipeline and its files, which fit does not use; leave "
            "it out"
        )
    usable = [name for name in known if not name.startswith(_PIPELINE)]
    hint = nearest(wanted, usable).replace(".", "__")
    raise ConfigurationError(
        f"there is no setting {keyword}{hint} (docs/settings.md lists them all)"
    )
