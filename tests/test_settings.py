import math
from dataclasses import fields, is_dataclass, make_dataclass, replace

import pytest

from neural_ngram.errors import ConfigurationError
from neural_ngram.settings import (
    Settings,
    SplitSettings,
    _range_complaint,
    check,
    flatten,
    nearest,
    setting,
    settings_of,
)

LEAVES = {name: (value, limits) for name, value, limits in flatten(Settings())}
LIMITS = {"least": "at least", "above": "above", "most": "at most", "below": "below"}


def changed(settings, name, value):
    """The same settings with one leaf, given by its dotted name, replaced."""
    first, _, rest = name.partition(".")
    inner = changed(getattr(settings, first), rest, value) if rest else value
    return replace(settings, **{first: inner})


def complaint(name, value):
    with pytest.raises(ConfigurationError) as caught:
        check(changed(Settings(), name, value))
    return str(caught.value)


def outside():
    """(name, value, allowed range) for each limit of each leaf, just beyond it."""
    for name, (default, limits) in LEAVES.items():
        bounds = {kind: limits[kind] for kind in LIMITS if kind in limits}
        allowed = " and ".join(f"{LIMITS[kind]} {limit}" for kind, limit in bounds.items())
        step = 1 if isinstance(default, int) else 0.001
        for kind, limit in bounds.items():
            beyond = {"least": limit - step, "most": limit + step}
            yield name, beyond.get(kind, limit), allowed
        if isinstance(default, float):
            yield from ((name, value, "a finite number") for value in (math.nan, math.inf))
        if "choices" in limits:
            yield name, "unheard-of", "one of " + ", ".join(limits["choices"])


def leaves_by_hand(settings):
    for field in fields(settings):
        value = getattr(settings, field.name)
        if is_dataclass(value):
            yield from (f"{field.name}.{leaf}" for leaf in leaves_by_hand(value))
        else:
            yield field.name


def test_flatten_covers_every_leaf_once():
    assert [name for name, _, _ in flatten(Settings())] == list(leaves_by_hand(Settings()))


@pytest.mark.parametrize(
    "name",
    [
        "corpus.path",
        "corpus.url",
        "corpus.sha256",
        "corpus.split.seed",
        "tokenizer.vocabulary_size",
        "windows.context_length",
        "model.embedding_width",
        "model.hidden_width",
        "optimizer.learning_rate",
        "training.batch_size",
        "training.max_steps",
        "training.seed",
        "training.dtype",
        "generation.prompt",
        "generation.temperature",
        "generation.max_new_tokens",
    ],
)
def test_a_name_that_users_type_is_there(name):
    assert name in LEAVES


@pytest.mark.parametrize("name", LEAVES)
def test_every_setting_says_what_it_means_and_has_only_limits_that_are_checked(name):
    limits = LEAVES[name][1]
    assert limits["meaning"]
    assert set(limits) <= {"meaning", "choices", *LIMITS}


def test_the_defaults_pass():
    settings = Settings()
    assert check(settings) is settings


@pytest.mark.parametrize(("name", "value", "allowed"), list(outside()))
def test_a_setting_beyond_its_limit_is_named_with_the_allowed_range(name, value, allowed):
    meaning = LEAVES[name][1]["meaning"]
    assert complaint(name, value) == f"{name} is {value!r}, but must be {allowed} ({meaning})"


def allowed_values():
    """(name, value) on each limit that is allowed itself, and for each choice."""
    for name, (_, limits) in LEAVES.items():
        at_limit = [limits[kind] for kind in ("least", "most") if kind in limits]
        yield from ((name, value) for value in (*at_limit, *limits.get("choices", ())))


@pytest.mark.parametrize(("name", "value"), list(allowed_values()))
def test_the_limits_themselves_and_every_choice_are_in_range(name, value):
    assert _range_complaint(value, LEAVES[name][1]) is None


@pytest.mark.parametrize("value", [0, 7])
def test_all_four_bounds_are_kept_and_told(value):
    meant = setting(3, "between", least=1, above=0, most=6, below=7)
    group = make_dataclass("Group", [("size", int, meant)])
    settings = make_dataclass("All", [("group", object, None)])(group(size=value))
    with pytest.raises(ConfigurationError, match=r"^group\.size is [07], .*at least 1 and above 0"):
        check(settings)
    with pytest.raises(ConfigurationError, match=r"and at most 6 and below 7 \(between\)$"):
        check(settings)


@pytest.mark.parametrize(("train", "validation"), [(0.9, 0.1), (0.7, 0.4), (0.8, 0.2)])
def test_ratios_must_leave_a_share_for_test(train, validation):
    settings = changed(Settings(), "corpus.split.train", train)
    with pytest.raises(
        ConfigurationError, match=r"^corpus\.split\.train \+ corpus\.split\.valid.*1"
    ):
        check(changed(settings, "corpus.split.validation", validation))


def test_shares_do_not_matter_to_another_method():
    settings = changed(
        changed(Settings(), "corpus.split.train", 0.95), "corpus.split.method", "whole"
    )
    check(settings)


def test_left_padding_needs_a_marker():
    settings = changed(Settings(), "tokenizer.markers", "none")
    with pytest.raises(ConfigurationError) as caught:
        check(changed(settings, "windows.padding", "left"))
    for name in ("windows.padding=left", "tokenizer.markers=none", "windows.padding=none"):
        assert name in str(caught.value)
    prompted = changed(settings, "generation.prompt", "four")
    check(changed(prompted, "windows.padding", "none"))


@pytest.mark.parametrize(
    ("kind", "prompt", "most"),
    [("bpe", "", 0), ("bpe", "ёa", 3), ("character", "ёab", 3), ("word", "no cat here", 3)],
)
def test_without_bos_a_prompt_must_fill_the_context(kind, prompt, most):
    settings = changed(Settings(), "tokenizer.markers", "none")
    for name, value in (("windows.padding", "none"), ("tokenizer.kind", kind)):
        settings = changed(settings, name, value)
    for name in ("generation.prompt", "training.probe"):
        enough = changed(settings, "generation.prompt", "one two three four")
        with pytest.raises(ConfigurationError, match=rf"^{name} is ") as caught:
            check(changed(enough, name, prompt or ("" if name == "generation.prompt" else "a")))
        assert f"give a longer {name}" in str(caught.value)
        assert f"at most {most if prompt or 'probe' not in name else 1} tokens" in str(caught.value)
    check(changed(enough, "windows.context_length", 4))


@pytest.mark.parametrize(
    ("method", "given", "missing"),
    [
        ("contiguous", {"train_tokens": 9}, "validation_tokens"),
        ("contiguous", {"validation_tokens": 9}, "train_tokens"),
        ("named", {"train_names": ["a"]}, "validation_names"),
        ("named", {"validation_names": ["a"]}, "train_names"),
    ],
)
def test_a_partition_that_must_be_empty_is_refused(method, given, missing):
    settings = changed(Settings(), "corpus.split.method", method)
    for name, value in given.items():
        settings = changed(settings, f"corpus.split.{name}", value)
    with pytest.raises(ConfigurationError, match=rf"corpus\.split\.{missing} is .* empty"):
        check(settings)
    whole = changed(settings, f"corpus.split.{missing}", next(iter(given.values())))
    check(whole)


def test_lists_name_what_no_pattern_does():
    settings = changed(Settings(), "corpus.split.method", "named")
    check(changed(settings, "corpus.split.lists", "lists.json"))


def tree(settings):
    return {
        leaf.name: tree(value) if is_dataclass(value) else value
        for leaf in fields(settings)
        for value in (getattr(settings, leaf.name),)
    }


def test_a_tree_of_plain_values_is_read_as_settings():
    values = tree(Settings())
    assert settings_of(values) == Settings()
    values["optimizer"]["learning_rate"] = 1
    read = settings_of(values).optimizer.learning_rate
    assert (type(read), read) == (float, 1.0)


@pytest.mark.parametrize(
    ("group", "name", "value", "said"),
    [
        ("generation", "prompt", 1000.0, "generation.prompt is 1000.0, but must be text"),
        ("generation", "prompt", True, "generation.prompt is true, but must be text"),
        ("generation", "prompt", None, "generation.prompt is null, but must be text"),
        ("generation", "prompt", [1, 2], "generation.prompt is [1, 2], but must be text"),
        ("generation", "prompt", {"x": None}, 'generation.prompt is {"x": null}, but must be text'),
        ("corpus", "path", 7, "corpus.path is 7, but must be text"),
        ("training", "max_steps", True, "training.max_steps is true, but must be an integer"),
        ("training", "max_steps", 3.0, "training.max_steps is 3.0, but must be an integer"),
        ("training", "threads", "2", 'training.threads is "2", but must be an integer'),
        ("training", "replay", 1, "training.replay is 1, but must be true or false"),
        ("optimizer", "learning_rate", "x", 'optimizer.learning_rate is "x", but must be a number'),
        ("model", "hiden", 3, "there is no setting model.hiden; did you mean model.hidden?"),
    ],
)
def test_a_value_of_another_type_is_refused_and_never_retyped(group, name, value, said):
    values = tree(Settings())
    values[group][name] = value
    with pytest.raises(ConfigurationError) as caught:
        settings_of(values)
    assert str(caught.value).startswith(said)
    if "must be text" in said:
        assert str(caught.value).endswith(f"\"{group}.{name}='…'\"")


def test_numbers_in_a_list_of_texts_are_refused():
    values = tree(Settings())
    values["corpus"]["split"]["train_names"] = ["a", 1000.0]
    with pytest.raises(ConfigurationError, match=r"must be a list of texts .*train_names=\['…'\]"):
        settings_of(values)


@pytest.mark.parametrize("value", [None, 3, "bengio"])
def test_a_group_is_not_a_value(value):
    with pytest.raises(ConfigurationError, match=r"^model is .* group of settings"):
        settings_of(tree(Settings()) | {"model": value})


def test_a_setting_that_is_missing_is_named():
    values = tree(Settings())
    del values["training"]["seed"]
    with pytest.raises(ConfigurationError, match=r"^training\.seed is missing"):
        settings_of(values)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("optimizer.learnin_rate", "optimizer.learning_rate"),
        ("learning_rate", "optimizer.learning_rate"),
        ("trainng.max_steps", "training.max_steps"),
        ("corpus.split.sed", "corpus.split.seed"),
    ],
)
def test_the_nearest_name_is_offered(wrong, right):
    assert nearest(wrong, LEAVES) == f"; did you mean {right}?"


def test_nothing_is_offered_where_nothing_is_near():
    assert nearest("xyzzy", LEAVES) == ""


def test_patience_needs_a_validation_that_is_held_out():
    settings = changed(Settings(), "corpus.split.method", "whole")
    with pytest.raises(ConfigurationError, match=r"training\.patience=3 .*equals train"):
        check(changed(settings, "training.patience", 3))


def test_the_rival_reads_no_more_than_a_window_holds():
    settings = changed(Settings(), "windows.context_length", 4)
    check(changed(settings, "oracle.order", 5))
    with pytest.raises(ConfigurationError, match=r"oracle\.order is 6, but a window holds 5"):
        check(changed(settings, "oracle.order", 6))


def test_settings_cannot_be_changed_in_place():
    with pytest.raises(AttributeError):
        Settings().windows.context_length = 7
    with pytest.raises(TypeError):
        Settings("positional")


@pytest.mark.parametrize("name", ["hex", "rot13", "nosuch", "", "utf-8\0", "undefined", "é"])
def test_an_encoding_that_python_cannot_read_text_in_is_refused(name):
    told = complaint("corpus.encoding", name)
    assert told.startswith(f"corpus.encoding is {name!r}, which is not a text encoding")


def test_fractions_by_position_may_leave_no_test_and_never_less():
    split = SplitSettings(method="position", train=0.9, validation=0.1)
    settings = changed(Settings(), "corpus.split", split)
    assert not check(settings).corpus.split.has_test
    assert replace(split, train=0.8).has_test
    assert SplitSettings().has_test
    assert not SplitSettings(method="whole").has_test
    beyond = changed(settings, "corpus.split.validation", 0.2)
    with pytest.raises(ConfigurationError, match=r"is 1\.1; it must be at most 1"):
        check(beyond)


@pytest.mark.parametrize("method", ["position", "whole"])
def test_a_test_partition_that_does_not_exist_is_not_unsealed(method):
    settings = changed(Settings(), "corpus.split.method", method)
    settings = changed(settings, "corpus.split.train", 0.9)
    evaluation = replace(
        settings.evaluation, unseal_test=True, test_documents="data/splits/test.parquet"
    )
    with pytest.raises(ConfigurationError) as caught:
        check(changed(settings, "evaluation", evaluation))
    assert str(caught.value) == (
        f"evaluation.unseal_test=true, but corpus.split.method={method} leaves no test partition; "
        "set evaluation.unseal_test=false, or another split"
    )


def test_sentences_hold_no_paragraphs():
    settings = changed(Settings(), "corpus.unit", "sentence")
    with pytest.raises(ConfigurationError, match="no document has paragraphs"):
        check(changed(settings, "corpus.paragraph_mark", "<p>"))
