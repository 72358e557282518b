"""Write docs/settings.md: every setting, its values and its meaning."""

import argparse
import json
from itertools import groupby
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from neural_ngram.artifacts import write_text
from neural_ngram.pipeline.configuration import composed, typed
from neural_ngram.settings import BOUNDS, flatten

__all__ = ["add", "reference", "run"]

PAGE = Path("docs/settings.md")
HEAD = """# Every setting

Written by `neural-ngram settings` from [the schema](../src/neural_ngram/settings.py) and from
`conf/`; the value is what `conf/` gives without overrides. Override any with
`neural-ngram run -S name=value`, choose a preset of a group with `-S group=preset`, and an
experiment, which overrides several, with `-S experiment=preset`. A name, a type or a range that
does not fit ends in one line that names it, before anything runs. `dvc exp run` takes the same, but
needs quotation marks of its own around text: `-S "generation.prompt='At night, she'"`.
"""


def add(parser: argparse.ArgumentParser) -> None:
    """No arguments."""
    parser.epilog = "examples:\n  neural-ngram settings"


def run(_: argparse.Namespace) -> None:
    """Write docs/settings.md."""
    write_text(PAGE, reference(Path.cwd()))
    print(f"{PAGE} written")


def reference(root: Path) -> str:
    """The page, in Markdown, for the project at `root`."""
    settings = typed(OmegaConf.create(composed(root, [])), root)  # type: ignore[arg-type]
    leaves = [leaf for leaf in flatten(settings) if "." in leaf[0]]
    parts = [HEAD]
    for group, rows in groupby(leaves, key=lambda leaf: leaf[0].partition(".")[0]):
        meaning = " ".join((getattr(settings, group).__doc__ or "").split())
        parts.append(f"## {group}\n\n{meaning}{_presets(root / 'conf' / group)}\n")
        parts.append("| setting | value | range | meaning |\n| --- | --- | --- | --- |")
        parts += [_row(*row) for row in rows]
        parts.append("")
    presets = _presets(root / "conf/experiment")
    return "\n".join([*parts, f"## experiment\n\nSeveral settings at once.{presets}\n"])


def _presets(folder: Path) -> str:
    names = ", ".join(f"`{path.stem}`" for path in sorted(folder.glob("*.yaml")))
    return f" Presets: {names}."


def _row(name: str, value: Any, limits: dict[str, Any]) -> str:
    if "choices" in limits:
        allowed = ", ".join(f"`{choice}`" for choice in limits["choices"])
    elif isinstance(value, bool):
        allowed = "`true`, `false`"
    else:
        bounds = [(words, limits[limit]) for limit, (_, words) in BOUNDS.items() if limit in limits]
        allowed = ", ".join(f"{words} {bound:,}" for words, bound in bounds)
    shown = f"`{json.dumps(value)}`"
    return f"| `{name}` | {shown} | {allowed} | {limits['meaning'].replace('<', '&lt;')} |"
