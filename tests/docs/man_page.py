"""The man page: all commands on one page, made from the command line itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable

import click

from jupyter_to_job.cli.main import SECTIONS
from jupyter_to_job.cli.main import main as command_line

from .commands import PROGRAM, walk
from .pages import ROOT

PATH = ROOT / "docs" / "man" / f"{PROGRAM}.1"
_VERBATIM = "\b\n"
"""What click takes a paragraph behind as it is."""
_FILES = (
    ("flavors.yaml", "The catalog: what users may ask for."),
    ("jupyter_to_job_config.py, jupyter_to_job_config.json", "Settings."),
    ("jupyter_to_job_hooks.yaml", "Receivers of notifications."),
)
_EXITS = (
    ("0", "Succeeded."),
    ("1", "A job failed."),
    ("2", "The call is wrong."),
    ("3", "No such job."),
    ("4", "Refused."),
    ("5", "The backend or the exchange cannot be reached."),
    ("130", "Interrupted; the jobs go on."),
)


def man_page() -> str:
    """Return the page in man's own language."""
    lines = [
        f'.TH {PROGRAM.upper()} 1 "" "Jupyter to Job" "User Commands"',
        ".SH NAME",
        f"{_text(PROGRAM)} \\- run notebooks as jobs",
        ".SH SYNOPSIS",
        f".B {_text(PROGRAM)}",
        ".I COMMAND",
        "[OPTIONS] [ARGUMENTS]",
        ".SH DESCRIPTION",
        *_paragraphs(command_line.help or ""),
    ]
    lines += ["The commands are:"]
    for section in SECTIONS.values():
        for name, text in section.items():
            lines += [".TP", f".B {_text(name)}", _text(text)]
    lines.append(".SH COMMANDS")
    for path, command, context in walk(command_line, PROGRAM):
        if path != PROGRAM:
            lines += _command(path.removeprefix(f"{PROGRAM} "), command, context)
    lines += [".SH EXIT STATUS", *_definitions(_EXITS)]
    lines += [
        ".SH ENVIRONMENT",
        "Each setting is a variable that begins with JUPYTER_TO_JOB_. NO_COLOR leaves colours out.",
        ".SH FILES",
        "All of them are in the folders of Jupyter's config path, which",
        ".B jupyter \\-\\-paths",
        "lists.",
        *_definitions(_FILES),
        ".SH SEE ALSO",
        ".BR jupyter (1)",
    ]
    return "\n".join(lines) + "\n"


def _command(name: str, command: click.Command, context: click.Context) -> list[str]:
    """Return the part of one command: its usage, its help and its options."""
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f".SS {_text(name)}", f".B {_text(name)}", _text(usage), ".PP"]
    lines += _paragraphs(command.help or "")
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    return lines + _definitions(record for record in records if record is not None and record[1])


def _definitions(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return a list of terms, each with its text."""
    lines = []
    for term, text in pairs:
        lines += [".TP", f".B {_text(term)}", _text(" ".join(text.split()))]
    return lines


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a help text; those that are marked keep their lines."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if paragraph.startswith(_VERBATIM):
            verbatim = paragraph.removeprefix(_VERBATIM).splitlines()
            lines += [".nf", *map(_text, verbatim), ".fi", ".PP"]
        else:
            lines += [_text(" ".join(paragraph.split())), ".PP"]
    return lines


def _text(text: str) -> str:
    """Return a line of text of which nothing is taken for a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text
