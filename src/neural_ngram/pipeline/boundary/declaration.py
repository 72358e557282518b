"""What dvc.yaml declares that a stage reads and writes: the one source of the boundary's rules."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from neural_ngram.errors import BoundaryError

__all__ = [
    "Declaration",
    "declaration",
    "declarations",
    "locked",
    "lookup",
    "named",
    "parameters_of",
    "plain_yaml",
]

_TEMPLATE = re.compile(r"\$\{([\w.]+)\}")
_WRITTEN = ("outs", "metrics", "plots")
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Declaration:
    """One stage of dvc.yaml: what it depends on and what it makes, relative to the project."""

    stage: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]


def plain_yaml(text: bytes | str) -> Any:
    """Plain values only; the loader in C, since a stage waits for it."""
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def declaration(root: Path, stage: str, parameters: Mapping[str, Any]) -> Declaration:
    """The deps and outs of `stage` in `root`/dvc.yaml, its templates filled from `parameters`.

    Raises BoundaryError when the file or stage does not exist, or a template has no parameter.
    """
    return named(declarations(root, parameters), stage, root)


def named(stages: Iterable[Declaration], stage: str, root: Path) -> Declaration:
    """The one of the stages of `root`/dvc.yaml that is called `stage`.

    Raises BoundaryError when there is none.
    """
    found = next((each for each in stages if each.stage == stage), None)
    if found is None:
        raise BoundaryError(
            f"{root / 'dvc.yaml'} declares no plain stage {stage!r}, so it is unknown what it may "
            "read; add it there with its deps and outs (foreach and matrix are not read)"
        )
    return found


def declarations(root: Path, parameters: Mapping[str, Any]) -> list[Declaration]:
    """All stages of `root`/dvc.yaml, except those that `foreach` or `matrix` multiplies.

    Raises BoundaryError when there is no such file, or a template has no parameter.
    """
    file = root / "dvc.yaml"
    try:
        stages = dict(plain_yaml(file.read_bytes())["stages"])
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError) as problem:
        raise BoundaryError(
            f"{file} declares no stages ({problem}), so it is unknown what a stage may read; "
            "run from the project's root"
        ) from problem
    return [
        Declaration(
            name,
            tuple(_paths(content.get("deps"), parameters)),
            tuple(path for kind in _WRITTEN for path in _paths(content.get(kind), parameters)),
        )
        for name, content in stages.items()
        if isinstance(content, dict) and {"deps", *_WRITTEN} & content.keys()
    ]


def locked(root: Path) -> list[Declaration]:
    """What the stages read and wrote when they last ran, from dvc.lock; none before the first run.

    Raises BoundaryError when the file cannot be read.
    """
    file = root / "dvc.lock"
    if not file.exists():
        return []
    try:
        stages = plain_yaml(file.read_bytes())["stages"]
        return [
            Declaration(
                name,
                tuple(dep["path"] for dep in stage.get("deps", ())),
                tuple(out["path"] for out in stage.get("outs", ())),
            )
            for name, stage in stages.items()
        ]
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError) as problem:
        raise BoundaryError(
            f"{file} cannot be read ({problem}); restore it with git, or run `dvc repro`"
        ) from problem


def parameters_of(root: Path, overrides: list[str]) -> dict[str, Any]:
    """params.yaml with overrides such as `corpus.path=my.txt`, not checked: Hydra does that later.

    Raises BoundaryError when the file cannot be read.
    """
    file = root / "params.yaml"
    try:
        parameters: dict[str, Any] = plain_yaml(file.read_bytes())
        for name, _, value in (word.lstrip("+").partition("=") for word in overrides):
            *groups, key = name.split(".")
            node = parameters
            for group in groups:
                node = node.setdefault(group, {})
            node[key] = _value(value, node.get(key))
    except (OSError, yaml.YAMLError, AttributeError, TypeError) as problem:
        raise BoundaryError(
            f"{file} with {overrides} cannot be read ({problem}); run from the project's root, or "
            "run `neural-ngram compose`"
        ) from problem
    return parameters


def _value(text: str, before: Any) -> Any:
    """What an override sets in place of `before`; a text that is not YAML is taken literally.

    In place of a text it is text as typed, as in Hydra: YAML would read `off` as false.
    """
    quoted = text[:1] in ("'", '"') and text.endswith(text[:1])
    if isinstance(before, str) and text != "null" and not quoted:
        return text
    try:
        return plain_yaml(text)
    except yaml.YAMLError:
        return text


def lookup(parameters: Mapping[str, Any], name: str) -> Any:
    """The parameter of a dotted name, None when there is none."""
    value: Any = parameters
    for key in name.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _paths(entries: Any, parameters: Mapping[str, Any]) -> Iterator[str]:
    """Entries are paths, or one-key mappings from a path to its flags."""
    for entry in entries or ():
        path = next(iter(entry)) if isinstance(entry, dict) else str(entry)
        yield _TEMPLATE.sub(lambda found: _filled(found[1], parameters), path)


def _filled(name: str, parameters: Mapping[str, Any]) -> str:
    value = lookup(parameters, name)
    if not isinstance(value, str):
        raise BoundaryError(
            f"dvc.yaml asks for ${{{name}}}, but params.yaml has {value!r} there; "
            "run `neural-ngram compose`"
        )
    return value
