"""The group of commands. A command's module is imported when that command is used, not before."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

import click

from ..domain.errors import JobsError
from . import exits
from .display import output


class CommandEntry(NamedTuple):
    """A command: the module of `commands` that has it under its name, and its line of help."""

    module: str
    help: str


SECTIONS: dict[str, dict[str, CommandEntry]] = {
    "Run notebooks": {
        "submit": CommandEntry("submit", "Submit notebooks as jobs and print the jobs' names."),
        "rerun": CommandEntry("rerun", "Submit a job's notebook again, as it was then."),
    },
    "Look": {
        "list": CommandEntry("list", "List jobs, newest first."),
        "show": CommandEntry("list", "Show all about one job."),
        "logs": CommandEntry("logs", "Print a job's text output and tracebacks."),
        "wait": CommandEntry("rerun", "Wait until the results of jobs are delivered."),
    },
    "Act": {
        "cancel": CommandEntry("manage", "End jobs; what they have printed so far is delivered."),
        "deliver": CommandEntry("manage", "Publish results that could not be published before."),
        "delete": CommandEntry(
            "manage", "Forget jobs, ending those that run. Delivered notebooks stay."
        ),
    },
    "Set up": {
        "flavors": CommandEntry("flavors", "Show what can be asked for."),
        "doctor": CommandEntry(
            "doctor", "Check this installation, and say how to mend what is wrong."
        ),
    },
}
"""All commands by name, in the order in which `--help` shows them."""


def _entries() -> Iterator[tuple[str, CommandEntry]]:
    for section in SECTIONS.values():
        yield from section.items()


class Commands(click.Group):
    """Imports commands late, and turns errors of our tree into a line on stderr and a code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        """Return the names of all commands, without importing one."""
        return [name for name, _ in _entries()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one command."""
        entry = dict(_entries()).get(cmd_name)
        if entry is None:
            return None
        found = getattr(
            import_module(f"{__package__}.commands.{entry.module}"), f"{cmd_name}_command"
        )
        assert isinstance(found, click.Command)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; for one that does not exist say which may have been meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            near = get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not near:
                raise
            raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx) from error

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's interface
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the sections of commands."""
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, entry.help) for name, entry in section.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Return the commands and options that begin so; only a shell's Tab comes here."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=entry.help)
            for name, entry in _entries()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; every way in which it can end leads to one of `exits`."""
        output.make_safe()
        try:
            try:
                return super().invoke(ctx)
            finally:
                output.flush()
        except JobsError as error:
            output.problem(error)
            ctx.exit(exits.code_of(error))
        except KeyboardInterrupt:
            ctx.exit(exits.INTERRUPTED)
        except BrokenPipeError:
            output.drop()
            ctx.exit(exits.BROKEN_PIPE)
        except OSError as error:  # the exchange's disk is full, or not ours; or that of stdout
            try:
                output.flush()
            except OSError:
                output.drop()
            where = f": {error.filename}" if error.filename else ""
            output.note(f"Error: {error.strerror or error}{where}")
            output.note("`jupyter-to-job doctor` checks what is needed, and says how to mend it.")
            ctx.exit(exits.UNREACHABLE)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
    Tab completion, for bash in ~/.bashrc (zsh_source, fish_source likewise):
      eval "$(_JUPYTER_TO_JOB_COMPLETE=bash_source jupyter-to-job)"
    """,
)
@click.version_option(package_name="jupyter-to-job")
def main() -> None:
    """Run notebooks as jobs: freeze a copy, pick how much and which kind of machine it gets, and
    find it executed beside the source."""
