"""From `conf/` to `params.yaml` to typed settings.

`conf/` is the source. Composing it writes `params.yaml`, which DVC tracks and stages run from.
The digest of `conf/` and of the schema is composed in as well, so that a stage notices at once when
`conf/` was edited and `params.yaml` was not composed anew.
"""

import hashlib
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from neural_ngram.errors import ConfigurationError
from neural_ngram.settings import Settings, check, flatten

__all__ = ["composed", "digest", "register", "typed"]


def register(root: Path) -> None:
    """Make the schema and the resolvers of `conf/` known to Hydra, for the project at `root`."""
    ConfigStore.instance().store(name="schema", node=_schema())
    OmegaConf.register_new_resolver("first_given", _first_given, replace=True)
    OmegaConf.register_new_resolver("when", _when, replace=True)
    OmegaConf.register_new_resolver("configuration_sha256", lambda: digest(root), replace=True)


def digest(root: Path) -> str:
    """Hexadecimal SHA-256 of the names and contents of `conf/` and of the schema."""
    package = Path("src/neural_ngram")
    files = sorted((root / "conf").rglob("*.yaml"))
    files += [root / package / name for name in ("settings.py", "configuration.py")]
    total = hashlib.sha256()
    for file in files:
        name, content = file.relative_to(root).as_posix(), file.read_bytes()
        total.update(f"{name}\n{len(content)}\n".encode() + content)
    return total.hexdigest()


def composed(root: Path, overrides: list[str]) -> str:
    """The YAML of `params.yaml`: the composition of `conf/` with Hydra overrides.

    Raises ConfigurationError for one that refers to nothing, and what Hydra raises for others.
    """
    register(root)
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(root / "conf"), version_base="1.3"):
        configuration = compose("config", overrides)
    try:
        OmegaConf.resolve(configuration)
    except OmegaConfBaseException as problem:
        raise ConfigurationError(f"{str(problem).splitlines()[0]}; correct it") from problem
    return OmegaConf.to_yaml(configuration)


def typed(configuration: DictConfig, root: Path) -> Settings:
    """Checked settings from a composed configuration.

    Raises ConfigurationError naming the key that is unknown, of the wrong type or out of range, or
    when the composition is stale.
    """
    schema = _schema()
    for key, value in configuration.items():
        name = str(key)
        if OmegaConf.is_dict(schema.get(name)) and not OmegaConf.is_dict(value):
            raise ConfigurationError(
                f"{name}={value} chooses a preset, but a stage runs from params.yaml, which is "
                f"composed already; run `neural-ngram compose {name}={value}` first, or "
                f"`dvc exp run -S {name}={value}`"
            )
    try:
        merged = OmegaConf.merge(schema, configuration)
        settings = OmegaConf.to_object(merged)
    except OmegaConfBaseException as problem:
        reason = str(problem.msg or problem).splitlines()[0]
        key = problem.full_key or _misfit(configuration)
        raise ConfigurationError(f"{key}: {reason}; correct params.yaml") from problem
    assert isinstance(settings, Settings)
    if settings.configuration_sha256 != digest(root):
        raise ConfigurationError(
            "params.yaml is stale: conf/ or the schema changed since it was composed; run "
            "`neural-ngram compose` (or `dvc exp run`, which composes) and then `dvc repro`; a new "
            "file of conf/ must be added to git before a queued experiment sees it"
        )
    return check(settings)


def _misfit(configuration: DictConfig) -> str:
    """The first setting whose value alone does not fit the schema, where the library names none."""
    for name, _, _ in flatten(Settings()):
        alone = OmegaConf.create()
        OmegaConf.update(alone, name, OmegaConf.select(configuration, name))
        try:
            OmegaConf.merge(_schema(), alone)
        except OmegaConfBaseException:
            return name
    return "params.yaml"


def _schema() -> DictConfig:
    """The settings as a typed configuration that can be written to, although they are frozen."""
    schema = OmegaConf.structured(Settings)
    _thaw(schema, Settings())
    return schema  # type: ignore[no-any-return]


def _thaw(node: DictConfig, settings: Any) -> None:
    OmegaConf.set_readonly(node, False)
    for leaf in fields(settings):
        value = getattr(settings, leaf.name)
        if is_dataclass(value):
            _thaw(node[leaf.name], value)


def _when(condition: bool, then: Any, otherwise: Any) -> Any:
    return then if condition else otherwise


def _first_given(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)
