"""What is typed as `name=value`, before Hydra reads it.

Hydra's grammar gives commas, brackets, quotation marks and words such as `true` or `1e3` a meaning
of their own. Here every name is checked, and a text that the grammar would change is quoted, so
that it arrives as it was typed. A value within quotation marks is quoted already.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from neural_ngram.errors import ConfigurationError
from neural_ngram.settings import Settings, flatten, nearest

__all__ = ["for_dvc", "for_hydra"]

FLAGS = ("-S", "--set-param")
_SETTINGS = {name: (value, limits) for name, value, limits in flatten(Settings())}
_GROUPS = [leaf.name for leaf in fields(Settings) if is_dataclass(getattr(Settings(), leaf.name))]
_PRESETS = (*_GROUPS, "experiment")


def for_hydra(
    words: Iterable[str],
    conf: Path | None = None,
    *,
    sweeps: bool = False,
    tell: Callable[[str], object] = lambda line: None,
) -> list[str]:
    """Overrides that give each setting what was typed.

    conf: the folder of presets; None where params.yaml is already composed. sweeps: whether a comma
    separates several values of a text as well. tell: called about quotation marks Hydra removes.

    Raises ConfigurationError, in one line, for what is not an override, a name or preset that does
    not exist (with the nearest that does), and a value that refers to something else.
    """
    return [_override(word, conf, sweeps, tell) for word in words]


def for_dvc(
    words: Sequence[str], conf: Path, tell: Callable[[str], object]
) -> tuple[list[str], list[str]]:
    """The words of `dvc exp run` with their settings (`-S`) quoted; and these settings alone.

    Settings of a file other than params.yaml pass as they are. Raises what `for_hydra` raises.
    """
    passed, given, rest = list[str](), list[str](), iter(words)
    for word in rest:
        flag, typed = _setting_of(word, rest)
        place, colon, override = typed.partition(":") if typed else ("", "", "")
        if not colon or "=" in place:
            place, override = "params.yaml", typed or ""
        if not typed or place != "params.yaml":
            passed += [flag, typed] if typed else [word]
            continue
        given += for_hydra([override], conf, tell=tell)
        passed += ["-S", given[-1]]
    return passed, given


def _setting_of(word: str, rest: Iterator[str]) -> tuple[str, str | None]:
    """The flag and the setting of a word such as `-S`, which takes the next, or `-Sname=value`."""
    if word in FLAGS:
        return word, next(rest, None)
    if word.startswith("--set-param="):
        return FLAGS[1], word.partition("=")[2]
    if word.startswith("-S"):
        return FLAGS[0], word[2:]
    return word, None


def _override(word: str, conf: Path | None, sweeps: bool, tell: Callable[[str], object]) -> str:
    name, equals, value = word.partition("=")
    bare = name.lstrip("+")
    if bare.startswith("hydra"):
        return word
    if not equals or bare.startswith("~"):
        raise ConfigurationError(f"{word!r} sets nothing; write name=value")
    if "${" in value:
        raise ConfigurationError(
            f"{word} refers to something else by ${{, but a setting is recorded as it is given; "
            "write the value itself"
        )
    if bare in _PRESETS:
        _require_preset(bare, value, conf)
    elif bare not in _SETTINGS:
        if any(known.startswith(f"{bare}.") for known in _SETTINGS):
            return word
        raise ConfigurationError(
            f"there is no setting {bare}{nearest(bare, (*_SETTINGS, *_PRESETS))} "
            "(docs/settings.md lists them all)"
        )
    elif _is_free_text(*_SETTINGS[bare]) and not sweeps:
        return f"{name}={_as_text(bare, value, tell)}"
    return word


def _require_preset(group: str, value: str, conf: Path | None) -> None:
    if conf is None and not value.startswith("{"):
        raise ConfigurationError(
            f"{group}={value} chooses a preset, but a stage runs from params.yaml, which is "
            f"composed already; run `neural-ngram compose {group}={value}` first, or "
            f"`neural-ngram run -S {group}={value}`"
        )
    known = sorted(file.stem for file in (conf / group).glob("*.yaml")) if conf else []
    chosen = value.split(",") if value.replace(",", "").isidentifier() else []
    for name in chosen:
        if name not in (*known, "null"):
            raise ConfigurationError(
                f"{group}={value}: there is no preset {name!r}{nearest(name, known)} "
                f"(choose from {', '.join(known)})"
            )


def _is_free_text(default: Any, limits: dict[str, Any]) -> bool:
    return limits.keys() == {"meaning"} and isinstance(default, str | None)


def _as_text(name: str, value: str, tell: Callable[[str], object]) -> str:
    """The value quoted so that Hydra reads it as text."""
    if value == "null" and _SETTINGS[name][0] is None:
        return value
    read = _read(name, value)
    if read == value:
        return value
    marks = value.strip()[:1] + value.strip()[-1:]
    if marks in ("''", '""') and isinstance(read, str):
        kept = quote(f"{name}={_quoted(value)}")
        tell(f"{name} is {read}, without its quotation marks; to keep them, write {kept}")
        return value
    return _quoted(value)


def _quoted(text: str) -> str:
    from hydra.core.override_parser.types import Quote, QuotedString  # noqa: PLC0415 - slow

    return str(QuotedString(text=text, quote=Quote.single).with_quotes())


def _read(name: str, value: str) -> Any:
    """What Hydra reads; None for what it cannot read as one value."""
    from hydra.core.override_parser.overrides_parser import OverridesParser  # noqa: PLC0415 - slow
    from hydra.errors import HydraException  # noqa: PLC0415

    try:
        override = OverridesParser.create().parse_override(f"{name}={value}")
        return None if override.is_sweep_override() else override.value()
    except HydraException:
        return None
