"""Prove from dvc.yaml and dvc.lock that test data reaches neither model nor tokenizer.

Prints what may flow where, and checks the ledger of test evaluations.
"""

import argparse
import os
from pathlib import Path

from dvc.exceptions import DvcException
from dvc.repo import Repo

from neural_ngram.errors import BoundaryError
from neural_ngram.pipeline.boundary.declaration import Declaration, locked, parameters_of
from neural_ngram.pipeline.boundary.graph import SCORER, prove, render, require_seal
from neural_ngram.pipeline.boundary.rules import require_readable
from neural_ngram.pipeline.project import LEDGER, dvc_root
from neural_ngram.pipeline.recorded import lines, require_recorded

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """No arguments."""
    parser.epilog = "examples:\n  neural-ngram boundary"


def run(_: argparse.Namespace) -> None:
    """Prove it, print the proof, count the test evaluations."""
    root = Path.cwd()
    stages, cached = _declared(root)
    ran = locked(root)
    prove(ran, root=root)
    proof = prove(stages, root=root)
    require_readable([*stages, *ran], (root, dvc_root()), parameters_of(root, []))
    require_seal([*stages, *ran])
    print("\n".join(render(proof)))
    if cached:
        raise BoundaryError(
            f"{cached[0]} of {SCORER} would enter DVC's cache, and a figure on test come back from "
            "there without its line in the ledger; give it `cache: false` and `persist: true`"
        )
    require_recorded(root)
    known = lines()
    splits = {line["corpus_sha256"] for line in known}
    print(
        f"{LEDGER}: {len(known)} test evaluations on the test partitions of {len(splits)} splits, "
        "unbroken"
    )
    print(f"proved for dvc.yaml ({len(stages)} stages) and dvc.lock ({len(ran)} that ran)")


def _declared(root: Path) -> tuple[list[Declaration], list[str]]:
    """The stages of dvc.yaml, and which outputs of the one that scores test DVC would cache.

    DVC itself reads its files: templates, `foreach`, and those of folders below.
    """
    try:
        with Repo(str(root)) as repository:
            stages = [
                Declaration(
                    stage.addressing,
                    tuple(os.path.relpath(dep.fs_path, root) for dep in stage.deps),
                    tuple(os.path.relpath(out.fs_path, root) for out in stage.outs),
                )
                for stage in repository.index.stages
            ]
            scorers = [stage for stage in repository.index.stages if stage.addressing == SCORER]
            outs = [out for stage in scorers for out in stage.outs]
            return stages, [out.def_path for out in outs if out.use_cache or not out.persist]
    except DvcException as problem:
        raise BoundaryError(f"dvc.yaml cannot be read: {problem}; fix it") from problem
