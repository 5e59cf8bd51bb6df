"""docs/settings.md and the one table of settings are the same; so are variables anywhere."""

from __future__ import annotations

import re

from traitlets import Bool

from jupyter_to_job.wiring.settings import PREFIX, Settings

from .pages import PAGES, ROOT, page

TRAITS = Settings.class_traits()
_VARIABLE = re.compile(rf"(?<!_){PREFIX}[A-Z_]*[A-Z]")


def rows() -> dict[str, list[str]]:
    """Return the page's tables by the setting's name: setting, variable, default, meaning."""
    settings = page("docs/settings.md")
    tables = settings.table("## On this machine") + settings.table("## With a controller")
    tables += settings.table("## Of the controller itself")
    return {row[0].strip("`"): row for row in tables}


def test_every_setting_and_no_other() -> None:
    assert set(rows()) == set(TRAITS)


def test_names_of_the_variables() -> None:
    assert {n: row[1].strip("`") for n, row in rows().items()} == {
        n: PREFIX + n.upper() for n in TRAITS
    }


def test_defaults() -> None:
    wrong = {}
    for name, row in rows().items():
        trait = TRAITS[name]
        default = trait.default()
        text = str(default).lower() if isinstance(trait, Bool) else str(default)
        documented = re.findall(r"`([^`]+)`", row[2])
        # An empty default is told in words: what is taken then.
        if (documented[:1] != [text]) if text else not row[2]:
            wrong[name] = (row[2], text)
    assert wrong == {}


def test_every_meaning_is_told() -> None:
    assert [name for name, row in rows().items() if len(row[3]) < 20] == []


def variables_in(*patterns: str) -> set[str]:
    """Return the variables that files of ours name."""
    files = (path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file())
    return {variable for path in files for variable in _VARIABLE.findall(path.read_text())}


SETTINGS = {PREFIX + name.upper() for name in TRAITS}
PRODUCT = variables_in("jupyter_to_job/**/*.py", "job_runner/**/*.py")
TOOLS = variables_in("scripts/*", "Makefile", "tests/**/*.py", "benchmarks/**/*.py")


def test_pages_name_no_variable_that_nothing_reads() -> None:
    named = {name for p in PAGES for name in _VARIABLE.findall(p.text)}
    assert named - SETTINGS - PRODUCT - TOOLS == set()


def test_every_variable_of_the_product_is_on_a_page() -> None:
    named = {name for p in PAGES for name in _VARIABLE.findall(p.text)}
    assert (PRODUCT | SETTINGS) - named == set()


def test_every_help_text_says_something() -> None:
    assert [name for name, trait in TRAITS.items() if not trait.help] == []
