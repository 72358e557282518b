"""Metrics that do not belong to the current settings are marked while a run is under way.

Before a stage does anything, it marks the metrics that it and the stages after it are to write: a
run that fails or is killed leaves the mark, never an old figure beside new settings. The stages
that follow replace it; DVC's run cache does where they need not run.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from neural_ngram.pipeline.boundary.declaration import lookup, plain_yaml

__all__ = ["mark", "pending"]

_TEMPLATE = re.compile(r"\$\{([\w.]+)\}")
_WRITTEN = ("outs", "metrics", "plots")


def mark(root: Path, stage: str, parameters: Mapping[str, Any]) -> None:
    """Replace the metrics of `stage`, and of all stages after it, by the name of the stage."""
    stages = plain_yaml((root / "dvc.yaml").read_bytes())["stages"]
    for name in pending(stages, stage, parameters):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
        temporary.write_text(json.dumps({"unfinished": stage}) + "\n", encoding="utf-8")
        temporary.replace(file)


def pending(
    stages: Mapping[str, Any], stage: str, parameters: Mapping[str, Any]
) -> Iterator[PurePosixPath]:
    """The metrics of `stage`, and of all stages that read, directly or not, what it writes.

    stages: as dvc.yaml has them.
    """
    waiting, known = [stage], {stage}
    while waiting:
        content = stages[waiting.pop()]
        yield from _paths(content.get("metrics"), parameters)
        made = [p for key in _WRITTEN for p in _paths(content.get(key), parameters)]
        for other, its in stages.items():
            reads = _paths(its.get("deps"), parameters)
            if other not in known and any(_touch(read, m) for read in reads for m in made):
                known.add(other)
                waiting.append(other)


def _paths(entries: Any, parameters: Mapping[str, Any]) -> Iterator[PurePosixPath]:
    """Entries are paths, or one-key mappings from a path to its flags."""
    for entry in entries or ():
        path = next(iter(entry)) if isinstance(entry, dict) else str(entry)
        yield PurePosixPath(_TEMPLATE.sub(lambda name: str(lookup(parameters, name[1])), path))


def _touch(one: PurePosixPath, other: PurePosixPath) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)
