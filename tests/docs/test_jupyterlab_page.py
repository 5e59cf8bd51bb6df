"""docs/jupyterlab.md names the commands that the front end has, and no other."""

from __future__ import annotations

import re

from .pages import ROOT, page

PAGE = page("docs/jupyterlab.md")
HEADING = "## From other extensions and from commands"
COMMAND = re.compile(r"\bjupyter-to-job:[a-z-]+")
CONSTANT = re.compile(
    r"^(?:export )?const (?:[A-Z_]+|\w*CommandIDs) = (?:'|\{).*?;$", re.MULTILINE | re.DOTALL
)
ADDS = re.compile(
    r"\.addCommand\(|^export const (?:\w*CommandIDs|SUBMIT|USE_PARAMETERS|ViewCommandIDs)",
    re.MULTILINE,
)
KEPT = {"jupyter-to-job:panel-grouped"}
"""Names of what is remembered."""


def test_every_command_and_no_other() -> None:
    defined: set[str] = set()
    for source in ROOT.glob("labextension/src/**/*.ts*"):
        if ADDS.search(text := source.read_text()):
            for constant in CONSTANT.findall(text):
                defined |= set(COMMAND.findall(constant))
    documented = {name for row in PAGE.table(HEADING) for name in COMMAND.findall(row[0])}
    assert defined - KEPT == documented
