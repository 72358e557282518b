"""The `neural-ngram` command."""

import argparse
import math
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from hydra.errors import HydraException

from neural_ngram.artifacts import write_text
from neural_ngram.errors import BoundaryError, ConfigurationError, NeuralNgramError
from neural_ngram.export.arpa import export_arpa
from neural_ngram.ngram.storage import load_kneser_ney
from neural_ngram.pipeline.boundary.declaration import Declaration, locked, parameters_of
from neural_ngram.pipeline.boundary.graph import SCORER, prove, render, require_seal
from neural_ngram.pipeline.boundary.rules import require_readable
from neural_ngram.pipeline.configuration import composed
from neural_ngram.pipeline.console import escape, require_text
from neural_ngram.pipeline.overrides import for_dvc, for_hydra
from neural_ngram.pipeline.project import LEDGER, ORACLE, STORE, TOKENIZER, dvc_root
from neural_ngram.pipeline.recorded import lines, require_recorded
from neural_ngram.tokens import tokenizer as tokenizers
from neural_ngram.tracking.relocation import relocate
from neural_ngram.tracking.spool import entries

__all__ = ["main"]

PARTS = ("dvc.yaml", "params.yaml", "conf", ".dvc")
FORMATS = ("safetensors", "onnx", "tokenizer", "word2vec", "toy_gpt")


def main(arguments: list[str] | None = None) -> int:
    """Run one subcommand; returns the exit code."""
    parser = argparse.ArgumentParser(prog="neural-ngram", description=__doc__)
    commands = parser.add_subparsers(required=True)
    compose = commands.add_parser(
        "compose", help="write params.yaml from conf/ and Hydra overrides (model=bengio …)"
    )
    compose.add_argument("overrides", nargs="*", metavar="key=value")
    compose.set_defaults(run=lambda chosen: _compose(chosen.overrides))
    dvc = "dvc exp run, once the settings (-S name=value) are checked and texts quoted for it"
    # No character begins an option, so that all of them are passed on.
    run = commands.add_parser("run", help=dvc, prefix_chars="\0", add_help=False)
    run.add_argument("words", nargs="*", metavar="-S name=value")
    run.epilog = "`dvc exp run --help` lists the options that are passed on"
    run.set_defaults(run=lambda chosen: _run(chosen.words, run))
    arpa = commands.add_parser("arpa", help="write the count model of the last run in ARPA format")
    arpa.description = (
        "Write the count model of the last run in ARPA format. Spaces separate tokens in an ARPA "
        "file, so white space within a token is written by its code point: <U+0020> is a space, "
        "<U+000A> a line feed, <U+0009> a tab. Tokens of a byte-level BPE are written as in "
        "tokenizer.json, each byte as one visible character: Ġ is a space, Ċ a line feed, ĉ a tab. "
        "Other control characters of the corpus stay as they are. <s>, </s> and <unk> are the "
        "special tokens."
    )
    arpa.add_argument("file", type=Path)
    arpa.set_defaults(run=lambda chosen: _arpa(chosen.file))
    proof = commands.add_parser("boundary", help="prove what may flow where, by dvc.yaml, dvc.lock")
    proof.set_defaults(run=lambda _: _boundary(Path.cwd()))
    _add_commands(commands)
    sync = commands.add_parser("sync", help="send to MLflow what it could not take at the time")
    sync.set_defaults(run=lambda _: _sync())
    repair = commands.add_parser("repair", help="delete what a kill left half-written of DVC's own")
    repair.set_defaults(run=lambda _: _repair(Path.cwd()))
    chosen = parser.parse_args(arguments)
    escape()
    try:
        require_text(sys.argv if arguments is None else arguments)
        if not getattr(chosen, "vocabulary", None):
            _require_project(Path.cwd())
        chosen.run(chosen)
    except (NeuralNgramError, HydraException, OSError) as problem:
        print(f"neural-ngram: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("neural-ngram: interrupted", file=sys.stderr)
        return 130
    return 0


def _add_commands(commands: Any) -> None:
    """The commands that look at the last run; their modules import torch, so only when they run."""
    count = {"type": _natural, "default": 10, "help": "how many (10)"}
    generate = commands.add_parser("generate", help="continue a prompt, token by token")
    generate.description = (
        "Continue a prompt with the model of the last run. Settings are Hydra overrides: "
        "generation.temperature=0.5 (0: greedy), generation.top_k=40, generation.top_p=0.9, "
        "generation.samples=1, generation.max_new_tokens=200, generation.seed=1."
    )
    generate.add_argument("prompt")
    generate.add_argument("overrides", nargs="*", metavar="key=value")
    generate.add_argument(
        "--typewriter", type=_seconds, default=0.0, metavar="SECONDS", help="wait after each token"
    )
    generate.set_defaults(
        run=lambda chosen: import_module("neural_ngram.cli.generate").show_continuations(
            chosen.prompt, chosen.overrides, chosen.typewriter
        )
    )
    playground = commands.add_parser("play", help="open a page to play with trained models")
    playground.add_argument("--port", type=int, default=8080, help="of 127.0.0.1 (8080)")
    playground.add_argument("--no-browser", action="store_true", help="serve, but open nothing")
    playground.set_defaults(
        run=lambda chosen: import_module("neural_ngram.cli.playground.play").play(
            chosen.port, browser=not chosen.no_browser
        )
    )
    following = commands.add_parser("next", help="the most probable next tokens after a prompt")
    following.add_argument("prompt")
    following.add_argument("--count", **count)
    following.set_defaults(run=lambda chosen: _inspection().show_next(chosen.prompt, chosen.count))
    near = commands.add_parser("neighbours", help="the tokens nearest to one in embedding space")
    near.add_argument("token", help="its text, or its ID as #12")
    near.add_argument("--count", **count)
    near.set_defaults(run=lambda chosen: _inspection().show_neighbours(chosen.token, chosen.count))
    sizes = commands.add_parser("parameters", help="how large tables of counts would be")
    sizes.add_argument("--vocabulary", type=_natural, help="for so many tokens, without a model")
    sizes.set_defaults(run=lambda chosen: _inspection().show_parameters(chosen.vocabulary))
    picture = commands.add_parser("embedding", help="draw the embedding table into a PNG file")
    picture.add_argument("file", type=Path)
    picture.set_defaults(run=lambda chosen: _inspection().draw_embedding(chosen.file))
    export = commands.add_parser("export", help="write the model for other programs")
    export.add_argument("format", choices=FORMATS)
    export.add_argument("folder", type=Path)
    export.set_defaults(
        run=lambda chosen: import_module("neural_ngram.cli.export").export(
            chosen.format, chosen.folder
        )
    )
    rates = commands.add_parser("range", help="learning-rate range test of the current settings")
    rates.add_argument("--low", type=float, default=1e-4)
    rates.add_argument("--high", type=float, default=10.0)
    rates.add_argument("--steps", type=int, default=500)
    rates.set_defaults(
        run=lambda chosen: import_module("neural_ngram.cli.learning_rate").sweep_learning_rates(
            chosen.low, chosen.high, chosen.steps
        )
    )
    page = commands.add_parser("report", help="write a page of what the last run measured")
    page.set_defaults(run=lambda _: import_module("neural_ngram.cli.report").write_report())
    reference = commands.add_parser("settings", help="write docs/settings.md: every setting")
    reference.set_defaults(
        run=lambda _: import_module("neural_ngram.cli.settings").write_reference()
    )
    results = commands.add_parser("results", help="write docs/results.md from the runs in MLflow")
    results.set_defaults(run=lambda _: import_module("neural_ngram.cli.results").write_results())


def _natural(text: str) -> int:
    """A whole number that is not negative, or argparse tells so."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 on")
    return int(text)


def _seconds(text: str) -> float:
    """A finite time that is not negative, or argparse tells so."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0 on")
    return seconds


def _inspection() -> Any:
    return import_module("neural_ngram.cli.inspection")


def _boundary(root: Path) -> None:
    """DVC itself reads its files here: templates, `foreach`, and those of folders below."""
    from dvc.exceptions import DvcException  # noqa: PLC0415 (takes a second)
    from dvc.repo import Repo  # noqa: PLC0415

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
            cached = [out.def_path for out in outs if out.use_cache or not out.persist]
    except DvcException as problem:
        raise BoundaryError(f"dvc.yaml cannot be read: {problem}; mend it") from problem
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


def _require_project(folder: Path) -> None:
    """Raise ConfigurationError when nothing of a project lies in a folder."""
    if _is_project(folder):
        return
    root = next(filter(_is_project, folder.parents), None)
    hint = f"its root is {root}" if root else "change to the folder that holds dvc.yaml"
    raise ConfigurationError(f"{folder} is no root of a project ({', '.join(PARTS)}); {hint}")


def _is_project(folder: Path) -> bool:
    return any((folder / part).exists() for part in PARTS)


def _tell(line: str) -> None:
    print(f"neural-ngram: {line}", file=sys.stderr, flush=True)


def _run(words: list[str], parser: argparse.ArgumentParser) -> None:
    """Check what is asked for, and become `dvc exp run`."""
    if words[:1] in (["-h"], ["--help"]):
        parser.print_help()
        parser.exit()
    passed, given = for_dvc(words, Path.cwd() / "conf", _tell)
    if "--no-hydra" not in words:
        for overrides in _each(given):
            composed(Path.cwd(), overrides)
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "dvc", "exp", "run", *passed])


def _each(given: list[str]) -> list[list[str]]:
    """The overrides of each experiment, of which DVC queues several where a setting sweeps."""
    from dvc.utils.hydra import get_hydra_sweeps, to_hydra_overrides  # noqa: PLC0415 (slow)

    if not any(override.is_sweep_override() for override in to_hydra_overrides(given)):
        return [given]
    return [each["params.yaml"] for each in get_hydra_sweeps({"params.yaml": given})]


def _compose(words: list[str]) -> None:
    overrides = for_hydra(words, Path.cwd() / "conf", tell=_tell)
    write_text(Path("params.yaml"), composed(Path.cwd(), overrides))
    print("params.yaml composed; `dvc repro` runs what changed")


def _sync() -> None:
    moved = relocate(dvc_root())
    if moved:
        print(f"{STORE / 'mlflow.db'} came here with the project: {moved} addresses corrected")
    sent = 0
    if entries():
        from neural_ngram.tracking.sending import synchronise  # noqa: PLC0415 - imports MLflow

        sent = synchronise(print)
    print(f"{sent} entries sent")


def _repair(root: Path) -> None:
    from neural_ngram.pipeline.repair import repair  # noqa: PLC0415 - importing DVC takes its time

    for path in (broken := repair(root)):
        print(f"{os.path.relpath(path, root)}: half-written, deleted; run the same command again")
    if not broken:
        print("DVC's own files are whole")


def _arpa(file: Path) -> None:
    model = load_kneser_ney(ORACLE / "kneser_ney.safetensors")
    export_arpa(model, file, tokens=_arpa_names(tokenizers.load(TOKENIZER)))
    print(
        f"{file}: a model of order {model.order}, for KenLM and others to read; "
        "`neural-ngram arpa --help` explains how spaces and control characters are written"
    )


def _arpa_names(tokenizer: tokenizers.Tokenizer) -> list[str]:
    """How ARPA writes each token: markers by its own names, white space by its code point."""
    names = list(tokenizer.names)
    for marker, name in ((tokenizer.bos, "<s>"), (tokenizer.eos, "</s>")):
        if marker is not None:
            names[marker] = name
    return names
