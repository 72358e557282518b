"""check-configuration: refuse to go on when conf/ was edited but params.yaml was not composed."""

from neural_ngram.pipeline.frame import enter

if __name__ == "__main__":
    enter()

from neural_ngram.pipeline.console import say
from neural_ngram.pipeline.frame import run
from neural_ngram.settings import Settings


def main(settings: Settings) -> None:
    """Reading the settings is the check."""
    say(f"params.yaml fits conf/ ({settings.configuration_sha256[:12]})")


if __name__ == "__main__":
    run(main)
