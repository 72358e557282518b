"""docs/howto/extend.md: a corpus format and a tokenizer kind, added as printed, up to samples."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from neural_ngram.corpus.reading import read_corpus
from neural_ngram.errors import CorpusError

PAGE = (Path(__file__).parents[2] / "docs/howto/extend.md").read_text(encoding="utf-8")
SMALL = ("training.max_steps=30", "training.evaluate_every=15")
STAGES = ("split_corpus", "learn_bpe", "build_windows", "train", "generate")
FILMS = 20


def example(heading: str) -> tuple[str, list[str]]:
    """The commands that add the piece, and the overrides of the experiment after them."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    commands = "".join(re.findall(r"^```bash\n(.*?)^```", section, re.S | re.M))
    adding, running = re.split(r"^(?=dvc exp run )", commands, flags=re.M)
    return adding, re.findall(r"-S (\S+)", running)


def spoken(film: int) -> list[str]:
    verbs = ("sees", "hears", "leaves", "follows", "forgets")
    return [f"Number {film} {verb} number {film * n + n}." for n, verb in enumerate(verbs, start=1)]


def write_films(folder: Path) -> None:
    folder.mkdir()
    for film in range(FILMS):
        subtitles = (
            f"{n}\r\n00:00:0{n},000 --> 00:00:0{n},900\r\n{line}\r\n- Yes!\r\n\r\n"
            for n, line in enumerate(spoken(film), start=1)
        )
        (folder / f"film {film}.srt").write_bytes("".join(subtitles).encode())


@pytest.fixture(scope="module")
def extended(copied_project):
    """A project with both pieces, whose stages have run with them."""
    project = copied_project("extended")
    examples = [example(heading) for heading in ("A corpus format", "A tokenizer kind")]
    write_films(project.folder / "subtitles")
    for adding, _ in examples:
        assert project.run("bash", "-euc", adding).returncode == 0
    overrides = [override for _, several in examples for override in several]
    composed = project.run("neural-ngram", "compose", *overrides, *SMALL)
    assert composed.returncode == 0, composed.stderr
    for done in map(project.stage, STAGES):
        assert done.returncode == 0, done.stdout + done.stderr
    return project


def test_the_documents_of_a_format_of_one_entry_are_what_its_reader_yields(extended):
    found = {}
    for partition in ("train", "validation", "test"):
        documents = pd.read_parquet(extended.folder / f"data/splits/{partition}.parquet")
        assert len(documents)
        found |= dict(zip(documents["id"], documents["text"], strict=True))
    assert found == {
        f"film {film}": "\n".join(f"{line}\n- Yes!" for line in spoken(film))
        for film in range(FILMS)
    }


def test_a_tokenizer_kind_of_one_entry_is_learned_trained_with_and_sampled_from(extended):
    report = json.loads((extended.folder / "artifacts/tokenizer/report.json").read_text())
    assert report["kind"] == "wordpunct"
    samples = json.loads((extended.folder / "artifacts/generation/samples.json").read_text())
    texts = [each["text"] for each in samples["continuations"]]
    assert all(texts)
    assert " " in "".join(texts)
    assert (extended.folder / "artifacts/model/model.safetensors").exists()


def test_a_damaged_file_of_the_format_is_named_in_one_line(extended):
    file = extended.folder / "subtitles/film 3.srt"
    kept = file.read_bytes()
    file.write_bytes(b"1\r\nHello.\r\n")
    try:
        refused = extended.stage("split_corpus")
    finally:
        file.write_bytes(kept)
    assert refused.returncode != 0
    assert (
        "film 3.srt has no times in the second line of subtitle 1, but 'Hello.'" in refused.stderr
    )
    assert "Traceback" not in refused.stderr


def test_the_ending_of_the_format_is_left_out_of_the_name_of_a_corpus(extended):
    (extended.folder / "film.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nHello.\n")
    composed = extended.run("neural-ngram", "compose", "corpus.path=film.srt")
    assert composed.returncode == 0, composed.stderr
    assert "\n  name: film\n" in (extended.folder / "params.yaml").read_text()


def test_without_the_page_the_format_is_not_known(tmp_path):
    write_films(tmp_path / "subtitles")
    with pytest.raises(CorpusError, match=r"\.txt.*\.jsonl.*\.json.*\.conllu"):
        read_corpus(tmp_path / "subtitles")
