"""The settings of `params.yaml`, read without composing anything, and whether they are current."""

import hashlib
import os
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from neural_ngram.errors import ArtifactError, ConfigurationError
from neural_ngram.settings import Settings, settings_of

__all__ = ["checked", "committed", "digest", "read", "require"]

PARAMS = "params.yaml"


def read(root: Path) -> Settings:
    """The settings of params.yaml; raises ArtifactError without it, and what `checked` raises."""
    from omegaconf import OmegaConf  # noqa: PLC0415 - reads numbers as Hydra does, but is slow
    from yaml import YAMLError  # noqa: PLC0415

    require(root)
    try:
        values = OmegaConf.to_container(OmegaConf.load(root / PARAMS))
    except (YAMLError, UnicodeDecodeError) as problem:
        raise ConfigurationError(
            f"{PARAMS} cannot be read ({' '.join(str(problem).split())}); run `neural-ngram "
            "compose` to write it anew"
        ) from problem
    if not isinstance(values, dict):
        raise ConfigurationError(
            f"{PARAMS} holds no settings; run `neural-ngram compose` to write it anew"
        )
    return checked({str(name): value for name, value in values.items()}, root)


def require(root: Path) -> None:
    """Raise ArtifactError when there is no params.yaml."""
    if not (root / PARAMS).exists():
        raise ArtifactError(f"there is no {PARAMS} in {root}; run from the project's root")


def checked(values: Mapping[str, Any], root: Path) -> Settings:
    """Settings from plain values of which each is checked.

    Raises ConfigurationError naming the key that is unknown, of the wrong type or out of range, or
    when they were composed from another conf/ or schema.
    """
    settings = settings_of(values)
    if settings.configuration_sha256 != digest(root):
        raise ConfigurationError(
            "params.yaml is stale: conf/ or the schema changed since it was composed; run "
            "`neural-ngram compose` (or `dvc exp run`, which composes) and then `dvc repro`; a new "
            "file of conf/ must be added to git before a queued experiment sees it"
        )
    return settings


def digest(root: Path) -> str:
    """Hexadecimal SHA-256 of the schema and of `conf/`, names and contents, as far as committed.

    A preset that is not committed reaches no queued or temporary run and must not make one stale.
    """
    total = hashlib.sha256()
    files = committed(root) or sorted((root / "conf").rglob("*.yaml"))
    for file in (*filter(Path.exists, files), root / "src/neural_ngram/settings.py"):
        name, content = file.relative_to(root).as_posix(), file.read_bytes()
        total.update(f"{name}\n{len(content)}\n".encode() + content)
    return total.hexdigest()


@cache
def committed(root: Path) -> list[Path]:
    """The YAML files of `conf/` in git's last commit; none where there is no commit.

    A stage asks before it enters the sandbox, which closes git's objects, and remembers.
    """
    command = ["git", "ls-tree", "-r", "-z", "--name-only", "HEAD", "--", "conf/"]
    try:
        listed = subprocess.run(command, cwd=root, capture_output=True, check=False).stdout
    except FileNotFoundError:  # no git here
        listed = b""
    names = [os.fsdecode(name) for name in listed.split(b"\0") if name.endswith(b".yaml")]
    return sorted(root / name for name in names)
