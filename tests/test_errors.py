import inspect

import pytest

from neural_ngram import errors

CLASSES = {
    name: found
    for name, found in vars(errors).items()
    if inspect.isclass(found) and not name.startswith("_")
}


def test_all_is_the_public_face():
    assert sorted(errors.__all__) == sorted(CLASSES)


@pytest.mark.parametrize("error", CLASSES.values())
def test_every_error_is_one_that_stages_print_in_one_line(error):
    assert issubclass(error, errors.NeuralNgramError)


@pytest.mark.parametrize("name", CLASSES)
def test_the_tree_in_the_docstring_names_every_error(name):
    tree = [line.lstrip("├└─ ").split()[:1] for line in errors.__doc__.splitlines()]
    assert tree.count([name]) == 1
