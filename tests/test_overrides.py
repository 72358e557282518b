"""What is typed as name=value, and what Hydra and DVC then read."""

import shlex
from pathlib import Path

import pytest
import yaml
from dvc.cli import parse_args
from dvc.utils.cli_parse import to_path_overrides
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf
from ruamel.yaml import YAML

from neural_ngram.errors import ConfigurationError
from neural_ngram.pipeline.configuration import composed
from neural_ngram.pipeline.overrides import for_dvc, for_hydra

ROOT = Path(__file__).parents[1]
CONF = ROOT / "conf"
TEXTS = (
    *("Ночью", "At night, she", "it's", "a=b", "(twice)", "[1, 2]", "{x}", "1e3", "true", "1_000"),
    *("1.50", "007", "null", " leading", "trailing ", "back\\slash", "end\\", "~", "@here", "a\nb"),
    *(
        "",
        "???",
        'say "it\'s"',
        "'",
        '"',
        "it's \\' \"b",
        "#c",
        "- a",
        "k: v",
        "nan",
        "$5",
        "%",
        "🎲",
    ),
    *("choice(a,b)", "range(3)", "*", "a:b", "1:30", "0x1f", "yes", "2024-01-01", "C:\\new"),
)


def refusal(*words: str, conf: Path | None = CONF) -> str:
    with pytest.raises(ConfigurationError) as caught:
        for_hydra(words, conf)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.promise("reliability")
@pytest.mark.parametrize("text", TEXTS)
def test_a_text_arrives_as_typed_in_params(text: str):
    params = composed(ROOT, for_hydra([f"generation.prompt={text}"], CONF))
    for read in (yaml.safe_load, YAML(typ="safe").load, OmegaConf.create):
        tree = OmegaConf.to_container(OmegaConf.create(read(params)))
        assert tree["generation"]["prompt"] == text


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12))
@settings(max_examples=60)
def test_any_text_is_read_back_by_the_grammar(text: str):
    assume("${" not in text and text.strip()[:1] not in ("'", '"'))
    (override,) = for_hydra([f"training.probe={text}"], CONF)
    assert OmegaConf.create(composed(ROOT, [override])).training.probe == text


@pytest.mark.parametrize(
    ("typed", "read"), [("'At night, she'", "At night, she"), ('"quoted"', "quoted"), ("''", "")]
)
def test_a_quoted_text_loses_its_quotation_marks_and_says_how_to_keep_them(typed: str, read: str):
    lines: list[str] = []
    (override,) = for_hydra([f"generation.prompt={typed}"], CONF, tell=lines.append)
    assert yaml.safe_load(composed(ROOT, [override]))["generation"]["prompt"] == read
    (line,) = lines
    assert line.startswith(f"generation.prompt is {read}, without its quotation marks; to keep")


def test_the_advice_on_keeping_quotation_marks_keeps_them():
    lines: list[str] = []
    for_hydra(['generation.prompt="quoted"'], CONF, tell=lines.append)
    (advice,) = shlex.split(lines[0].partition("write ")[2])
    (override,) = for_hydra([advice], CONF)
    assert yaml.safe_load(composed(ROOT, [override]))["generation"]["prompt"] == '"quoted"'


def test_null_is_no_text_only_where_there_may_be_none():
    params = yaml.safe_load(composed(ROOT, for_hydra(["corpus.path=null"])))
    assert params["corpus"]["path"] is None


def test_numbers_choices_and_sweeps_pass_as_they_are():
    words = ["training.max_steps=3,5", "model.hidden=tanh,relu", "optimizer.learning_rate=1e-3"]
    assert for_hydra(words, CONF) == words
    prompts = ["generation.prompt=a,b"]
    assert for_hydra(prompts, CONF, sweeps=True) == prompts
    assert for_hydra(["hydra.run.dir=${now:%H}"], CONF) == ["hydra.run.dir=${now:%H}"]


@pytest.mark.promise("reliability")
@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("optimizer.learnin_rate=1", "did you mean optimizer.learning_rate?"),
        (
            "+training.max_step=1",
            "there is no setting training.max_step; did you mean",
        ),
        ("++training.max_step=1", "did you mean training.max_steps?"),
        ("learning_rate=1", "did you mean optimizer.learning_rate?"),
        ("modle=bengio", "there is no setting modle; did you mean model?"),
        ("model=bengo", "there is no preset 'bengo'; did you mean bengio?"),
        ("model=bengio,linaer", "there is no preset 'linaer'; did you mean linear?"),
        ("experiment=makemor", "did you mean makemore?"),
        ("~training.max_steps", "'~training.max_steps' sets nothing; write name=value"),
        ("training.max_steps", "sets nothing; write name=value"),
        ("generation.prompt=${oc.env:HOME}", "refers to something else by ${"),
        ("generation.prompt='${oc.env:HOME}'", "refers to something else by ${"),
        ("training.seed=${training.max_steps}", "refers to something else by ${"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(word: str, said: str):
    assert said in refusal("training.max_steps=3", word)


def test_a_preset_cannot_be_given_to_a_single_stage():
    assert "run `neural-ngram compose model=bengio` first" in refusal("model=bengio", conf=None)


@pytest.mark.parametrize(
    "typed",
    [
        ["-S", "generation.prompt=At night, she"],
        ["--set-param", "generation.prompt=At night, she"],
        ["--set-param=generation.prompt=At night, she"],
        ["-Sgeneration.prompt=At night, she"],
        ["-S", "params.yaml:generation.prompt=At night, she"],
    ],
)
def test_dvc_is_given_the_text_in_every_form_of_the_option(typed: list[str]):
    passed, settings = for_dvc(["--queue", *typed, "-n", "name", "train"], CONF, print)
    asked = parse_args(["exp", "run", *passed])
    assert (asked.queue, asked.name, asked.targets) == (True, "name", ["train"])
    assert to_path_overrides(asked.set_param) == {"params.yaml": settings}
    assert yaml.safe_load(composed(ROOT, settings))["generation"]["prompt"] == "At night, she"


def test_settings_of_other_files_and_other_options_pass_as_they_are():
    words = ["-S", "other.yaml:a=b, c", "--temp", "-C", "notes.txt", "-S"]
    assert for_dvc(words, CONF, print) == (words, [])
