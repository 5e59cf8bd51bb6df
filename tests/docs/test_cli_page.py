"""docs/cli.md is what `--help` prints, and its exit codes are those of the code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from job_runner.diagnosis.exit_codes import Exit
from jupyter_to_job.api.errors import error_response
from jupyter_to_job.cli import exits
from jupyter_to_job.domain.errors import BY_CODE, WrongOffset
from jupyter_to_job.server.handlers import CODES

from .commands import COLUMNS, PROGRAM
from .generate import regenerate
from .pages import PAGES, Page, page

CLI = page("docs/cli.md")


@pytest.mark.parametrize("source", PAGES, ids=str)
def test_generated_parts_are_fresh(source: Page) -> None:
    assert source.text == regenerate(source), "run scripts/docs"


@pytest.mark.parametrize("words", [(), ("submit",), ("flavors", "check")], ids=" ".join)
def test_it_is_what_help_prints(words: tuple[str, ...]) -> None:
    """Seen from outside, so that a wrong generator does not agree with itself."""
    ran = subprocess.run(
        [Path(sys.executable).with_name(PROGRAM), *words, "--help"],
        capture_output=True,
        check=True,
        text=True,
        env={"COLUMNS": str(COLUMNS), "LC_ALL": "C.UTF-8"},
    )
    heading = "### " + (" ".join(words) or PROGRAM)
    section = CLI.text.split(f"{heading}\n", 1)[1]
    assert re.search(r"```text\n(.*?)```", section, re.DOTALL)[1] == ran.stdout  # type: ignore[index]


def test_every_exit_code() -> None:
    documented = {int(row[0]) for row in CLI.table("## Exit codes")}
    codes = {value for name, value in vars(exits).items() if name.isupper() and type(value) is int}
    assert documented == codes


def test_every_error() -> None:
    """Each error's exit code and HTTP status are those that the edges give it."""
    for code, exit_code, status, meaning in CLI.table("### Errors"):
        error = BY_CODE[code.strip("`")]("")
        assert (int(exit_code), int(status)) == (
            exits.code_of_error(error),
            error_response(error).status,
        ), code
        assert len(meaning) > 15
    assert set(CLI.first_names("### Errors")) == set(BY_CODE)


def test_every_code_that_only_rest_has() -> None:
    """What Jupyter Server refuses by itself has codes that no error of ours has."""
    section = CLI.text.split("### Errors\n")[1].split("\n## ")[0]
    codes = [*CODES.items(), (403, "forbidden"), (409, WrongOffset.code)]
    for status, code in codes:
        assert code in BY_CODE or f"`{code}` ({status})" in section


def test_exit_codes_of_the_runner() -> None:
    named = {int(row[0]) for row in page("docs/backends.md").table("### How a runner ends")}
    assert named == {code.value for code in Exit}
