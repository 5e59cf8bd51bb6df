"""Every command in the pages exists, with the options that it is shown with. None is run."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator

import click
import papermill.cli
import pytest
from click.testing import CliRunner

from job_runner.cli import _parser as runner_parser
from jupyter_to_job.cli.main import main

from .pages import PAGES, ROOT, Page
from .shell import ShownCommand, shown_commands, split

COMMANDS = list(shown_commands())


def ours() -> Iterator[ShownCommand]:
    """Yield the calls of our command line, as its arguments."""
    for command_line in COMMANDS:
        match command_line.words:
            case ("jupyter-to-job", *remaining) | ("jupyter", "to-job", *remaining):
                yield ShownCommand(command_line.page, tuple(remaining))


def check(
    command: click.Command, words: tuple[str, ...], parent: click.Context | None = None
) -> None:
    """Parse a command's words with click; raises UsageError for what does not exist."""
    command = _without_paths(command)
    context = click.Context(command, parent, info_name=command.name, **command.context_settings)
    if not isinstance(command, click.Group):
        values, remaining, _ = command.make_parser(context).parse_args(list(words))
        assert not remaining, f"left over: {remaining}"
        for param in command.params:
            value = values.get(param.name or "")
            if isinstance(value, (str, list, tuple)):
                param.type_cast_value(context, value)
        return
    if words and not words[0].startswith("-"):
        if words[0] in ("COMMAND", "..."):
            return
        _, subcommand, remaining = command.resolve_command(context, list(words))
        assert subcommand is not None
        check(subcommand, tuple(remaining), context)
        return
    command.make_parser(context).parse_args(list(words))


def _without_paths(command: click.Command) -> click.Command:
    """Return a copy of a command whose paths are any text: an example's files need not be here.

    click keeps the help option on the command that parses, so the real one must not parse.
    """
    copied = copy.copy(command)
    copied.params = [copy.copy(param) for param in command.params]
    for param in copied.params:
        if isinstance(param.type, click.Path):
            param.type = click.STRING
    return copied


@pytest.mark.parametrize("command_line", list(ours()), ids=str)
def test_of_our_command_line(command_line: ShownCommand) -> None:
    check(main, command_line.words)


@pytest.mark.parametrize("line", ["sbumit a.ipynb", "submit a.ipynb --flavour x", "list --state x"])
def test_a_wrong_one_is_found(line: str) -> None:
    (words,) = split(line)
    with pytest.raises(click.UsageError):
        check(main, words)


def test_a_check_leaves_the_command_alone() -> None:
    command = main.get_command(click.Context(main), "submit")
    assert command is not None
    before = {param.name: param.type for param in command.params}
    check(main, ("submit", "-h"))
    check(main, ("submit", "missing.ipynb", "--params-file", "missing.yaml"))
    assert {param.name: param.type for param in command.params} == before
    assert "-h" in CliRunner().invoke(main, ["submit", "-h"]).output


@pytest.mark.parametrize("command_line", COMMANDS, ids=str)
def test_of_the_runner(command_line: ShownCommand) -> None:
    words = list(command_line.words)
    if "job_runner" in words and words[words.index("job_runner") - 1] == "-m":
        remaining = words[words.index("job_runner") + 1 :]
        if remaining:
            runner_parser().parse_args(["1" if word == "N" else word for word in remaining])


def _options(command: click.Command) -> Iterator[str]:
    for param in command.params:
        yield from (*param.opts, *param.secondary_opts)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            assert subcommand is not None
            yield from _options(subcommand)


USERS = [p for p in PAGES if p.path.parent == ROOT / "docs" or p.path == ROOT / "README.md"]


@pytest.mark.parametrize("source", USERS, ids=str)
def test_options_in_the_text(source: Page) -> None:
    """An option named alone is one of ours, the runner's, or stands on a page of developers."""
    defined = {*_options(main), "--help", "-h", *_runner_options()}
    if source.path.name == "papermill.md":  # test_papermill_page holds it to papermill's own
        defined |= {option for p in papermill.cli.papermill.params for option in p.opts}
    named = {
        word
        for span in source.spans
        if span.startswith("-")
        for word in re.findall(r"(?<!\S)--?[a-z][\w-]*", span)
    }
    assert named - defined == set()


def _runner_options() -> set[str]:
    return set(re.findall(r'"(--?[a-z][a-z-]*)"', (ROOT / "job_runner" / "cli.py").read_text()))


def test_make_targets() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {s.words[1] for s in COMMANDS if s.words[0] == "make" and len(s.words) > 1}
    assert named, "no page names make"
    assert named - targets == set()


def test_scripts() -> None:
    named = {s.words[0] for s in COMMANDS if s.words[0].startswith("scripts/")}
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
