"""The group of commands. The module of a command is imported only when that command is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import click

from ..domain.errors import JobsError
from . import exits
from .display import output


class CommandEntry(NamedTuple):
    """A command: the module of `commands` that defines it, and its line of help."""

    module: str
    help: str


SECTIONS: dict[str, dict[str, CommandEntry]] = {
    "Run notebooks": {
        "submit": CommandEntry("submit", "Submit notebooks as jobs and print the jobs' names."),
        "rerun": CommandEntry("rerun", "Submit a job's notebook again, as it was then."),
    },
    "Look": {
        "list": CommandEntry("list", "List jobs, newest first."),
        "show": CommandEntry("show", "Show all about one job."),
        "logs": CommandEntry("logs", "Print a job's text output and tracebacks."),
        "wait": CommandEntry("wait", "Wait until the results of jobs are delivered."),
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
            "doctor", "Check this installation, and say how to fix what is wrong."
        ),
    },
}
"""All commands by section and name, in the order in which `--help` shows them."""
_ENTRIES = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class Commands(click.Group):
    """Imports commands lazily, and turns our errors into a line on stderr and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        """Return the names of all commands, without importing any."""
        return list(_ENTRIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one command."""
        entry = _ENTRIES.get(cmd_name)
        if entry is None:
            return None
        module = import_module(f"{__package__}.commands.{entry.module}")
        command = getattr(module, f"{cmd_name}_command")
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command. The error for an unknown name suggests a similar one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            matches = get_close_matches(args[0], _ENTRIES, n=1)
            if not matches:
                raise
            raise click.UsageError(f"{error.message} Did you mean {matches[0]!r}?", ctx) from error

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
        """Return the commands and options that begin with `incomplete`, for Tab completion."""
        from click.shell_completion import CompletionItem

        commands = [
            CompletionItem(name, help=entry.help)
            for name, entry in _ENTRIES.items()
            if name.startswith(incomplete)
        ]
        return commands + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and exit with a code of `exits` however it ends."""
        output.make_safe()
        try:
            try:
                return super().invoke(ctx)
            finally:
                output.flush()
        except JobsError as error:
            output.print_error(error)
            ctx.exit(exits.code_of_error(error))
        except KeyboardInterrupt:
            ctx.exit(exits.INTERRUPTED)
        except BrokenPipeError:
            output.discard_stdout()
            ctx.exit(exits.BROKEN_PIPE)
        except OSError as error:  # of the exchange or of stdout: a full disk, missing rights
            try:
                output.flush()
            except OSError:
                output.discard_stdout()
            place = f": {error.filename}" if error.filename else ""
            output.print_note(f"Error: {error.strerror or error}{place}")
            output.print_note(
                "`jupyter-to-job doctor` checks what jobs need, and says how to fix it."
            )
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
