"""conf/ to params.yaml to typed settings."""

import shutil
from pathlib import Path

import pytest
import yaml
from dvc.utils.hydra import compose_and_dump
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from neural_ngram.errors import ConfigurationError
from neural_ngram.pipeline.configuration import composed, typed
from neural_ngram.pipeline.params import digest
from neural_ngram.pipeline.project import run_name
from neural_ngram.settings import Settings, flatten

ROOT = Path(__file__).parents[1]


def settings_of(*overrides: str) -> Settings:
    return typed(OmegaConf.create(composed(ROOT, list(overrides))), ROOT)


def test_the_committed_params_are_the_composition_of_conf():
    assert (ROOT / "params.yaml").read_text() == composed(ROOT, [])


def test_a_group_and_a_value_can_be_overridden():
    settings = settings_of("model=bengio", "optimizer.learning_rate=0.3")
    assert settings.model.hidden == "tanh"
    assert settings.optimizer.learning_rate == 0.3


def test_an_override_wins_over_an_experiment():
    settings = settings_of("experiment=ch23", "model.hidden_width=9")
    assert (settings.windows.context_length, settings.model.hidden_width) == (2, 9)


def presets(group: str) -> list[str]:
    return sorted(path.stem for path in (ROOT / "conf" / group).glob("*.yaml"))


@pytest.mark.parametrize(
    "choice",
    [
        f"{folder.name}={name}"
        for folder in sorted((ROOT / "conf").iterdir())
        if folder.is_dir()
        for name in presets(folder.name)
    ],
)
def test_every_preset_composes_to_valid_settings(choice: str):
    padding = ["windows=complete"] if "none" in choice else []
    assert isinstance(settings_of(choice, *padding), Settings)


def test_a_local_copy_replaces_the_address_of_a_preset():
    assert settings_of("corpus=names").corpus.dependency == "conf/corpus/names.yaml"
    assert settings_of("corpus=names", "corpus.path=my.txt").corpus.dependency == "my.txt"


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("optimizer.learning_rate=abc", "optimizer.learning_rate"),
        ("optimizer.learningrate=1", "optimizer.learningrate"),
        ("model=nothing", "model/nothing"),
    ],
)
def test_a_wrong_type_key_or_preset_fails_at_composition(override: str, told: str):
    with pytest.raises(ConfigurationError, match=told) as caught:
        composed(ROOT, [override])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("windows.context_length", 0, "windows.context_length is 0, but must be at least 1"),
        ("model.hidden_width", -3, "model.hidden_width is -3"),
        ("optimizer.learning_rate", "abc", "optimizer.learning_rate"),
        ("optimizer.learning_rate", float("nan"), "a finite number"),
        ("training.dtype", "float16", "one of float32, float64"),
        ("training.colour", "red", "training.colour"),
        ("model", "bengio", "run `neural-ngram compose model=bengio` first"),
    ],
)
def test_a_bad_value_in_params_is_refused_by_name(key: str, value: object, told: str):
    params = OmegaConf.create(composed(ROOT, []))
    OmegaConf.update(params, key, value, force_add=True)
    with pytest.raises(ConfigurationError, match=told):
        typed(params, ROOT)


@pytest.mark.promise("reliability")
@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("training.max_steps=-3", "training.max_steps is -3, but must be at least 1"),
        ("corpus.split.train=0.95", "corpus.split.train + corpus.split.validation is 1.05"),
        ("tokenizer.markers=none", "windows.padding=left pads with BOS"),
        ("generation.prompt=1e3", "generation.prompt is 1000.0, but must be text"),
        ("generation.prompt=true", "generation.prompt is true, but must be text"),
        ("corpus.split.train_names=[1e3]", "corpus.split.train_names is [1000.0], but must be"),
        ("corpus.name=${oc.env:HOME}", "corpus.name is ${oc.env:HOME}, but a setting is recorded"),
        ("corpus.name='${oc.env:HOME}'", "corpus.name is ${oc.env:HOME}, but a setting is"),
        ("corpus.split.train_names=['${oc.env:HOME}']", "corpus.split.train_names.0 is ${oc.env"),
        ("training.max_steps=${oc.env:STEPS}", "training.max_steps is ${oc.env:STEPS}, but a"),
        ("generation.prompt=${model.hidden}", "generation.prompt is ${model.hidden}, but a"),
    ],
)
def test_what_dvc_composes_is_checked_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, override: str, told: str
):
    monkeypatch.setenv("STEPS", "3")
    monkeypatch.setattr(GlobalHydra.instance(), "hydra", None)
    plugins, output = str(ROOT), tmp_path / "params.yaml"
    with pytest.raises(OmegaConfBaseException) as caught:
        compose_and_dump(output, str(ROOT / "conf"), None, "config", plugins, [override])
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)
    assert not output.exists()


def test_a_file_of_conf_is_held_to_the_same(tmp_path: Path):
    (tmp_path / "src").symlink_to(ROOT / "src")
    shutil.copytree(ROOT / "conf", tmp_path / "conf")
    file = tmp_path / "conf/generation/default.yaml"
    plain = file.read_text()
    file.write_text(plain.replace('prompt: ""', "prompt: 1e3"))
    with pytest.raises(ConfigurationError, match=r"^generation\.prompt is 1000\.0, but"):
        composed(tmp_path, [])
    file.write_text(plain + "temprature: 1\n")
    with pytest.raises(ConfigurationError, match=r"mean generation\.temperature\?"):
        composed(tmp_path, [])


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        ([], "embedded"),
        (["corpus.path=texts/my.book.txt"], "my.book"),
        (["corpus.path=my_folder/"], "my_folder"),
        (["corpus.path=null", "corpus.url=https://example.org/a/tales.jsonl"], "tales"),
        (["corpus.path=my.txt", "corpus.name=mine"], "mine"),
        (["corpus=names", "corpus.path=copy.txt"], "names"),
    ],
)
def test_a_corpus_is_called_after_its_file_unless_it_has_a_name(overrides: list[str], name: str):
    settings = settings_of(*overrides)
    assert settings.corpus.name == name
    assert run_name(settings).startswith(f"{name} swiglu")


def test_params_of_an_edited_conf_are_stale(tmp_path: Path):
    for name in ("conf", "src/neural_ngram"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).symlink_to(ROOT / name)
    assert digest(tmp_path) == digest(ROOT)
    (tmp_path / "conf").unlink()
    (tmp_path / "conf").mkdir()
    with pytest.raises(ConfigurationError, match="neural-ngram compose"):
        typed(OmegaConf.create(composed(ROOT, [])), tmp_path)


def test_every_setting_stands_in_params_and_nothing_else():
    def leaves(tree: dict, prefix: str = "") -> set[str]:
        return {
            name
            for key, value in tree.items()
            for name in (
                leaves(value, f"{prefix}{key}.") if isinstance(value, dict) else [prefix + key]
            )
        }

    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    assert leaves(params) == {name for name, _, _ in flatten(Settings())}


def test_dvc_watches_the_files_that_settings_name():
    plain = settings_of()
    assert plain.corpus.split.lists_dependency == "conf/config.yaml"
    assert plain.training.vectors_dependency == "conf/config.yaml"
    named = settings_of("corpus.split.lists=l.json", "model.pretrained_embedding=v.txt")
    assert named.corpus.split.lists_dependency == "l.json"
    assert named.training.vectors_dependency == "v.txt"


@pytest.mark.promise("boundary")
@pytest.mark.parametrize(
    ("follower", "followed"),
    [
        ("training.vectors_dependency", "model.pretrained_embedding"),
        ("corpus.split.lists_dependency", "corpus.split.lists"),
    ],
)
@pytest.mark.parametrize("file", ["data/splits/test.parquet", "notes.txt"])
def test_what_dvc_watches_cannot_be_set_apart_from_what_it_follows(
    follower: str, followed: str, file: str
):
    with pytest.raises(ConfigurationError, match=f"{follower} is '{file}', .* follows {followed}"):
        settings_of(f"{follower}={file}")
    with pytest.raises(ConfigurationError, match=f"{follower} is '{file}', .* follows {followed}"):
        settings_of(f"{followed}=other.txt", f"{follower}={file}")
