"""The man page is what the parser says, and the readers of man pages have nothing to say of it."""

from __future__ import annotations

import re
import shutil
import subprocess

import click
import pytest

from jupyter_to_job.cli.main import main as command_line

from .commands import PROGRAM, walk
from .man_page import PATH, escape, man_page, prose
from .pages import page

READERS = [
    ["mandoc", "-T", "lint", "-W", "style", str(PATH)],
    ["groff", "-man", "-ww", "-T", "utf8", "-z", str(PATH)],
]


def needs(program: str) -> pytest.MarkDecorator:
    missing = shutil.which(program) is None
    reason = f"{program} is missing: apt-get install mandoc groff-base (packages.txt)"
    return pytest.mark.skipif(missing, reason=reason)


def test_it_is_fresh() -> None:
    assert PATH.read_text(encoding="utf-8") == man_page(), "run scripts/docs"


@pytest.mark.parametrize(
    "command", [pytest.param(command, marks=needs(command[0])) for command in READERS]
)
def test_readers_find_no_fault(command: list[str]) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    # It has no date: the page belongs to a version.
    faults = [x for x in (ran.stdout + ran.stderr).splitlines() if "missing date" not in x]
    assert faults == []


@needs("mandoc")
def test_a_reader_sees_every_command_and_option_as_it_is_typed() -> None:
    shown = subprocess.run(
        ["mandoc", "-T", "ascii", "-O", "width=200", str(PATH)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    text = " ".join(re.sub(".\b", "", shown).split())  # bold is written by overstriking
    for path, command, context in walk(command_line, PROGRAM):
        assert path in text
        for option in command.get_params(context):
            record = option.get_help_record(context)
            if isinstance(option, click.Option) and record is not None:
                assert record[0] in text
                assert " ".join(record[1].replace("`", "").split()) in text
    for code, _ in page("docs/cli.md").table("## Exit codes"):
        assert re.search(rf" {code} [A-Z]", text)
    assert "'*/train-*.ipynb'" in text and "JUPYTER_TO_JOB_GATEWAY" in text
    assert "JUPYTER_TO_JOB_AGENT_IMAGE" not in text  # the controller's


def test_nothing_in_a_text_is_a_request_of_roff() -> None:
    assert escape(".TH\n'a' \\- b") == "\\&.TH\n\\(aqa\\(aq \\e\\- b"
    assert "\n." not in prose("x " * 38 + ".ipynb")
