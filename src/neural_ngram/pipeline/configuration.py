"""From `conf/` to `params.yaml` to typed settings.

`conf/` is the source. Composing it writes `params.yaml`, which DVC tracks and stages run from.
The digest of `conf/` and of the schema is composed in as well, so that a stage notices at once when
`conf/` was edited and `params.yaml` was not recomposed. Whatever composes, DVC or
`neural-ngram compose`, resolves that digest first, and with it every setting is checked: an
invalid setting never reaches `params.yaml`.
"""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path, PurePosixPath
from typing import Any, get_args, get_type_hints
from urllib.parse import urlsplit

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import AnyNode, BooleanNode, DictConfig, FloatNode, IntegerNode, Node, OmegaConf
from omegaconf.errors import InterpolationResolutionError, OmegaConfBaseException

from neural_ngram.corpus.formats import READERS
from neural_ngram.errors import ConfigurationError
from neural_ngram.pipeline.params import checked, digest
from neural_ngram.settings import Settings, settings_of

__all__ = ["composed", "register", "typed"]

DIGEST = "configuration_sha256"


def register(root: Path) -> None:
    """Make the schema and the resolvers of `conf/` known to Hydra, for the project at `root`."""

    def checked_digest(*, _root_: DictConfig) -> str:
        try:
            _require_recorded(_root_, root)
            settings_of(_values(_root_))
        except ConfigurationError as problem:
            raise _RefusalError(str(problem)) from None  # DVC prints causes too
        return digest(root)

    ConfigStore.instance().store(name="schema", node=_schema())
    OmegaConf.register_new_resolver("first_given", _first_given, replace=True)
    OmegaConf.register_new_resolver("when", _when, replace=True)
    OmegaConf.register_new_resolver("named_after", _named_after, replace=True)
    OmegaConf.register_new_resolver(DIGEST, checked_digest, replace=True)


class _RefusalError(InterpolationResolutionError):
    """A complete message; the library passes on only errors of this kind."""


def composed(root: Path, overrides: list[str]) -> str:
    """The YAML of `params.yaml`: the composition of `conf/` with Hydra overrides.

    Raises ConfigurationError, in one line, for whatever is wrong with it.
    """
    register(root)
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(root / "conf"), version_base="1.3"):
            configuration = compose("config", overrides)
        OmegaConf.resolve(configuration)
    except (HydraException, OmegaConfBaseException) as problem:
        raise ConfigurationError(_told(problem)) from problem
    return OmegaConf.to_yaml(configuration)


def typed(configuration: DictConfig, root: Path) -> Settings:
    """Checked settings from a composed configuration, whose texts are taken literally.

    Raises ConfigurationError naming the key that is unknown, of the wrong type or out of range, or
    when the composition is stale.
    """
    return checked(OmegaConf.to_container(configuration), root)  # type: ignore[arg-type]


def _told(problem: Exception) -> str:
    """The first line of a refusal, and of what caused it."""
    lines = [str(each).splitlines()[0] for each in (problem, problem.__cause__) if each]
    return lines[0] if isinstance(problem, _RefusalError) else ": ".join(lines) + "; correct it"


def _values(root: DictConfig) -> dict[str, Any]:
    """All settings but the digest, which waits for them, as plain values."""
    return {DIGEST: ""} | {
        str(key): OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node
        for key, node in root.items_ex(resolve=False)
        if key not in (DIGEST, "hydra")
    }


def _require_recorded(root: DictConfig, project: Path) -> None:
    """Raise ConfigurationError for an interpolation that no file of conf/ holds.

    Its value depends on the machine or on other settings, and would be recorded in git.
    """
    known = "".join(file.read_text("utf-8") for file in sorted(project.rglob("conf/**/*.yaml")))
    for name, value in _leaves(OmegaConf.to_container(root, resolve=False)):
        if "${" in str(value) and str(value) not in known:
            raise ConfigurationError(
                f"{name} is {value}, but a setting is recorded as it is given and refers to "
                "nothing; write the value itself, without ${"
            )


def _leaves(tree: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if not isinstance(tree, dict | list):
        yield name[1:], tree
        return
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        yield from _leaves(value, f"{name}.{key}")


def _schema(kind: type[Any] = Settings) -> DictConfig:
    """A tree of settings in which numbers are typed.

    A text takes what it is given, so that `settings_of` can refuse 1000.0 for 1e3; a typed node
    would turn it into text in silence.
    """
    nodes: dict[str, Any] = {}
    defaults, types = kind(), get_type_hints(kind)
    for leaf in fields(kind):
        value, wanted = getattr(defaults, leaf.name), types[leaf.name]
        if is_dataclass(value):
            nodes[leaf.name] = _schema(type(value))
        elif isinstance(value, list):
            nodes[leaf.name] = value
        else:
            optional = type(None) in get_args(wanted)
            nodes[leaf.name] = _node(get_args(wanted)[0] if optional else wanted, value, optional)
    return OmegaConf.create(nodes)


def _node(kind: type[Any], value: Any, optional: bool) -> Node:
    if kind is int:
        return IntegerNode(value, is_optional=optional)
    if kind is float:
        return FloatNode(value, is_optional=optional)
    return BooleanNode(value, is_optional=optional) if kind is bool else AnyNode(value)


def _when(condition: bool, then: Any, otherwise: Any) -> Any:
    return then if condition else otherwise


def _first_given(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _named_after(path: str | None, url: str | None) -> str:
    """The name of a file or folder without its ending."""
    place = path if path is not None else urlsplit((url or "").split(" ")[0]).path
    name = PurePosixPath(place).name
    for ending in READERS:
        name = name.removesuffix(ending)
    return name
