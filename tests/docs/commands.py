"""The commands of the command line, for the pages that are made from them."""

from __future__ import annotations

from collections.abc import Iterator

import click

PROGRAM = "jupyter-to-job"
COLUMNS = 80


def walk(
    command: click.Command, name: str, parent: click.Context | None = None
) -> Iterator[tuple[str, click.Command, click.Context]]:
    """Yield a command and all below it, each with its full name and context."""
    context = click.Context(
        command,
        info_name=name,
        parent=parent,
        terminal_width=COLUMNS - 2,  # click leaves two columns free
        **command.context_settings,
    )
    yield context.command_path, command, context
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            child_command = command.get_command(context, child)
            assert child_command is not None
            yield from walk(child_command, child, context)
