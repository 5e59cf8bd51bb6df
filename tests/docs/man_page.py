"""The man page, made from the command line's parser, docs/cli.md and the table of settings."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator

import click

from jupyter_to_job import __version__
from jupyter_to_job.cli.main import main as command_line
from jupyter_to_job.wiring.settings import PREFIX, Settings

from .commands import PROGRAM, walk
from .pages import ROOT, page

PATH = ROOT / "docs" / "man" / "jupyter-to-job.1"
_EXAMPLES = (
    ("Run a notebook with a parameter, and print the result's path:",
     "jupyter-to-job submit train.ipynb -f small -p epochs 5 --wait"),
    ("Run it for each combination of two parameters, and compare the runs:",
     "jupyter-to-job submit train.ipynb -p lr '[0.1, 0.01]' -p depth '[2, 4]' --grid --group lrs\n"
     "jupyter-to-job results --group lrs --best max:accuracy"),
    ("Follow a job's output:", "jupyter-to-job logs train-mttakh5m --follow"),
)  # fmt: skip
_ENVIRONMENT = """\
Each variable of a setting (`JUPYTER_TO_JOB_`) wins over its line in `jupyter_to_job_config.py` or
`jupyter_to_job_config.json`, in a folder of Jupyter's config path."""
_FILES = {
    "flavors.yaml": "The catalog: what users may ask for.",
    "jupyter_to_job_config.py, jupyter_to_job_config.json": "Settings.",
    "jupyter_to_job_hooks.yaml": "Receivers of notifications.",
}
_VARIABLES = {
    "NO_COLOR": "Not empty: no colours and no bold text.",
    "FORCE_COLOR": "Not empty: colours also where the output is no terminal, a pager for instance.",
}
_ESCAPES = str.maketrans(
    {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}
)


def escape(text: str) -> str:
    """Return a text as roff shows it: each character as it is, and no line taken for a request."""
    return re.sub(r"^(?=\.)", r"\\&", text.translate(_ESCAPES), flags=re.MULTILINE)


def prose(text: str) -> str:
    """Return a paragraph of prose, in which backticks mark code."""
    parts = re.split(r"`([^`]+)`", " ".join(text.split()))
    escaped = [part.translate(_ESCAPES) for part in parts]
    code = [rf"\fB{part}\fR" if position % 2 else part for position, part in enumerate(escaped)]
    lines = textwrap.fill("".join(code), 78, break_long_words=False, break_on_hyphens=False)
    return re.sub(r"^(?=\.)", r"\\&", lines, flags=re.MULTILINE)


def man_page() -> str:
    """Return the whole page."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (home,) = re.findall('^Homepage = "(.+)"$', project, re.MULTILINE)
    (_, _, context), *below = walk(command_line, PROGRAM)
    lines = [
        '.\\" Made by scripts/docs.',
        f'.TH JUPYTER\\-TO\\-JOB 1 "" "Jupyter to Job {__version__}" "User Commands"',
        ".ad l",  # no word is stretched or cut
        ".nh",
        ".SH NAME",
        rf"jupyter\-to\-job \- {escape('submit notebooks as jobs and get them back executed')}",
        ".SH SYNOPSIS",
        r"\fBjupyter\-to\-job\fR \fICOMMAND\fR [\fIOPTION\fR...] [\fIARGUMENT\fR...]",
        ".SH DESCRIPTION",
        prose(command_line.help or ""),
        *_paragraphs(page("docs/cli.md").prose.split("\n\n")[1].rpartition(" `man ")[0]),
        ".SH OPTIONS",
        *_options(command_line, context),
        ".SH COMMANDS",
        *(line for item in below for line in _command(*item)),
        ".SH EXIT STATUS",
        *_entries((code, text) for code, text in page("docs/cli.md").table("## Exit codes")),
        ".SH ENVIRONMENT",
        prose(_ENVIRONMENT),
        *_entries([*_VARIABLES.items(), *_settings()]),
        ".SH FILES",
        prose("They are in the folders of Jupyter's config path (`jupyter --paths`)."),
        *_entries(_FILES.items()),
        ".SH EXAMPLES",
        *(line for text, code in _EXAMPLES for line in (".PP", prose(text), *_code(code))),
        ".SH TAB COMPLETION",
        *_paragraphs(inspect.cleandoc(command_line.epilog or "")),
        ".SH SEE ALSO",
        escape(home),
    ]
    return re.sub(r"^(\.SH .*\n)\.PP\n", r"\1", "\n".join(lines) + "\n", flags=re.MULTILINE)


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a command's help; `\\b` begins one whose lines stay as they are."""
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        yield ".PP"
        if paragraph.startswith("\b"):
            yield from _code(paragraph.removeprefix("\b").strip("\n"))
        else:
            yield prose(paragraph)


def _code(text: str) -> Iterator[str]:
    yield from (".RS 4", ".nf", escape(text), ".fi", ".RE")


def _command(path: str, command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the section of a command."""
    usage = " ".join(command.collect_usage_pieces(context))
    yield rf'.SS "{escape(path.removeprefix(f"{PROGRAM} "))}"'
    yield rf"\fB{escape(path)}\fR {escape(usage)}"
    yield from _paragraphs(command.help or "")
    yield from _options(command, context)


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the options of a command; `--help` is told once, of the whole."""
    for option in command.get_params(context):
        record = option.get_help_record(context)
        is_repeated = "--help" in option.opts and context.parent is not None
        if isinstance(option, click.Option) and record is not None and not is_repeated:
            yield from _entries([record])


def _settings() -> Iterator[tuple[str, str]]:
    """Yield the variables of all settings but the controller's."""
    for name, trait in sorted(Settings.class_traits().items()):
        if not (trait.help or "").startswith("Controller:"):
            yield f"{PREFIX}{name.upper()}", trait.help or ""


def _entries(entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, text in entries:
        yield from (".TP", rf"\fB{escape(term)}\fR", prose(text))
