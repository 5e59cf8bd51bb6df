"""Options and arguments that several commands share, with their Tab completion."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
WAIT = click.option("--wait", is_flag=True, help="Return when the result is delivered.")


def _complete(kind: str) -> Callable[[Any, Any, str], list[CompletionItem]]:
    """Return the function that completes a job, group, flavor or device when Tab is pressed."""

    def complete(_ctx: Any, _param: Any, incomplete: str) -> list[CompletionItem]:
        from .completion import find_candidates

        return find_candidates(kind, incomplete)

    return complete


JOB = click.argument("job", shell_complete=_complete("job"))
JOBS = click.argument("jobs", metavar="[JOB...]", nargs=-1, shell_complete=_complete("job"))
"""Names and patterns: `selection` finds the jobs, and complains if neither a group was named."""
GROUP = click.option("--group", metavar="GROUP", shell_complete=_complete("group"),
                     help="All jobs of this group, or those of it that are named.")  # fmt: skip
YES = click.option("-y", "--yes", is_flag=True, help="Do not ask, however many there are.")
FLAVOR = click.option("-f", "--flavor", metavar="FLAVOR", shell_complete=_complete("flavor"),
                      help="How much; `jupyter-to-job flavors` has them.")  # fmt: skip
DEVICE = click.option("-d", "--device", metavar="DEVICE", shell_complete=_complete("device"),
                      help="Which kind of machine.")  # fmt: skip
FLAVORS = click.option("-f", "--flavor", metavar="FLAVOR", multiple=True,
                       shell_complete=_complete("flavor"),
                       help="How much; `jupyter-to-job flavors` has them. Several: a sweep."
                       )  # fmt: skip
DEVICES = click.option("-d", "--device", metavar="DEVICE", multiple=True,
                       shell_complete=_complete("device"),
                       help="Which kind of machine. Several: a sweep.")  # fmt: skip
PARAMETERS: tuple[Callable[[Any], Any], ...] = (
    click.option("-p", "--parameter", "parsed_parameters", nargs=2, multiple=True,
                 metavar="NAME VALUE",
                 help="A parameter. The value is JSON if it reads as JSON, else text."),
    click.option("-r", "--raw", "text_parameters", nargs=2, multiple=True, metavar="NAME TEXT",
                 help="A parameter that is text, whatever it looks like."),
    click.option("--params-file", type=click.Path(path_type=Path),
                 help="Parameters in a file of YAML or JSON; -p and -r win over it."),
)  # fmt: skip
LIMITS: tuple[Callable[[Any], Any], ...] = (
    click.option("--max-runtime", metavar="TIME", help="Limit: 90s, 45m, 1h30m or 1d."),
    click.option("--priority", type=click.IntRange(-100, 100), help="Higher goes first."),
)


COMBINATIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--sweep", "combination", flag_value="sweep",
                 help="A job for each value of the one thing that has several."),
    click.option("--grid", "combination", flag_value="grid",
                 help="A job for each combination of all values."),
    click.option("--zip", "combination", flag_value="zip",
                 help="A job of all first values, one of all second values, and so on."),
)  # fmt: skip


def with_options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds options, in the order in which `--help` shows them."""

    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add
