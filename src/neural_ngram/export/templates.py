"""Pages rendered from a template file and values; values put into HTML are escaped."""

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

__all__ = ["fill"]


def fill(template: str, **values: object) -> str:
    """The page; raises what jinja2 raises for a name that no value is given for."""
    environment = Environment(
        loader=PackageLoader("neural_ngram.export", "pages"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(**values)
