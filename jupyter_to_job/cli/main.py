"""The group of commands. The module of a command is imported only when that command is used."""

from __future__ import annotations

import errno
from importlib import import_module
from typing import Any

import click

from ..domain.errors import JobsError
from . import exits
from .display import output
from .options import WORDS

SECTIONS = {
    "Run notebooks": {
        "submit": "Submit notebooks as jobs and print the jobs' names.",
        "rerun": "Submit a job's notebook again, as it was then.",
    },
    "Look": {
        "list": "List jobs, newest first.",
        "show": "Show all about one job.",
        "results": "Compare jobs: parameters, metrics, time and what they used.",
        "logs": "Print a job's text output and tracebacks.",
        "export": "Write results as HTML, PDF or another format.",
        "wait": "Wait until the results of jobs are delivered.",
    },
    "Act": {
        "cancel": "End jobs; what they have printed so far is delivered.",
        "deliver": "Publish results that could not be published before.",
        "delete": "Forget jobs, ending those that run. Delivered notebooks stay.",
        "clean": "Remove old results from the workspace, after a question.",
    },
    "Set up": {
        "flavors": "Show what can be asked for.",
        "doctor": "Check this installation, and say how to fix what is wrong.",
    },
}
"""The help of all commands by section and name, in the order in which `--help` shows them."""
_HELP = {name: text for section in SECTIONS.values() for name, text in section.items()}
_MODULES = dict.fromkeys(("cancel", "deliver", "delete"), "manage")
"""By command: the module of `commands` that defines it, where it is not called the same."""


class Commands(click.Group):
    """Imports commands lazily, and turns our errors into a line on stderr and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        """Return the names of all commands, without importing any."""
        return list(_HELP)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one command."""
        if cmd_name not in _HELP:
            return None
        module = import_module(f"{__package__}.commands.{_MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command. The error for an unknown name suggests a similar one."""
        if ctx.resilient_parsing:  # Tab was pressed
            ctx.meta[WORDS] = tuple(args)
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from ..domain.suggestions import nearest_name

            nearest = nearest_name(args[0], _HELP)
            if nearest is None:
                raise
            raise click.UsageError(f"{error.message} Did you mean {nearest!r}?", ctx) from error

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's interface
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the sections of commands."""
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(section.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Return the commands and options that begin with `incomplete`, for Tab completion."""
        from click.shell_completion import CompletionItem

        commands = [
            CompletionItem(name, help=text)
            for name, text in _HELP.items()
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
        except (KeyboardInterrupt, click.Abort):  # the latter: Ctrl-C or Ctrl-D at a question
            ctx.exit(exits.INTERRUPTED)
        except BrokenPipeError:
            output.discard_stdout()
            ctx.exit(exits.BROKEN_PIPE)
        except OSError as error:  # of the exchange or of stdout: a full disk, missing rights
            try:
                output.flush()
            except OSError:
                output.discard_stdout()
            if error.errno == errno.ENAMETOOLONG:
                output.print_note("Error: A path is too long for the file system. Shorten it.")
                ctx.exit(exits.USAGE)
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
    Tab completion, for bash in ~/.bashrc (zsh in ~/.zshrc: zsh_source):
      eval "$(_JUPYTER_TO_JOB_COMPLETE=bash_source jupyter-to-job)"
    and for fish in ~/.config/fish/completions/jupyter-to-job.fish:
      _JUPYTER_TO_JOB_COMPLETE=fish_source jupyter-to-job | source
    """,
)
@click.version_option(package_name="jupyter-to-job")
def main() -> None:
    """Run notebooks as jobs: freeze a copy, pick how much and which kind of machine it gets, and
    find it executed beside the source."""
