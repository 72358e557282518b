"""docs/settings.md says what the schema says."""

from pathlib import Path

from neural_ngram.cli.settings import reference
from neural_ngram.settings import Settings, flatten

ROOT = Path(__file__).parents[1]


def test_the_page_of_settings_is_current():
    page = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    assert page == reference(ROOT), "run `neural-ngram settings`"


def test_every_setting_has_a_row_with_its_meaning():
    rows = reference(ROOT).splitlines()
    for name, _, limits in flatten(Settings()):
        if name != "configuration_sha256":
            (row,) = [row for row in rows if row.startswith(f"| `{name}` |")]
            assert limits["meaning"].replace("<", "&lt;") in row
