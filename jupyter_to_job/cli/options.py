"""Options and arguments that several commands share, with their Tab completion."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..domain.errors import BadInput

if TYPE_CHECKING:
    import os

    from click.shell_completion import CompletionItem

WORDS = "jupyter_to_job.words"
"""Key of a context's `meta` during Tab completion: the words before the one that is typed."""

AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
WAIT = click.option("--wait", is_flag=True, help="Return when the result is delivered.")


def require_path(text: str | os.PathLike[str]) -> None:
    """Raise BadInput for an empty text: as a path it would mean the current folder."""
    if text == "":
        raise BadInput("An empty text is no path.", "Name a file or a folder.")


@contextlib.contextmanager
def translate_path_errors(action: str, path: object, hint: str) -> Iterator[None]:
    """Turn an OSError of a path that the user has named into BadInput.

    `action` is what is done to it. That a path is too long says `main`, without the path.
    """
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise
        raise BadInput(f"Cannot {action} {path}: {error.strerror or error}.", hint) from error


class FilePath(click.Path):
    """A path that is not empty."""

    def __init__(self, *, allow_dash: bool = False) -> None:
        super().__init__(path_type=Path, allow_dash=allow_dash)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Return the value as a Path. Raises BadInput."""
        require_path(value)
        return super().convert(value, param, ctx)


def complete_names(kind: str) -> Callable[[Any, Any, str], list[CompletionItem]]:
    """Return the function that completes a job, group, flavor or device when Tab is pressed."""

    def complete(_ctx: Any, _param: Any, incomplete: str) -> list[CompletionItem]:
        from .completion import find_candidates

        return find_candidates(kind, incomplete)

    return complete


def _complete_parameter(context: Any, option: Any, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a parameter when Tab is pressed behind `-p`, and no value."""
    if context.meta[WORDS][-1] not in option.opts:
        return []
    from .completion import find_parameters

    return find_parameters(context, incomplete, of_job_only=option.nargs == 1)


JOB = click.argument("job", shell_complete=complete_names("job"))
JOBS = click.argument("jobs", metavar="[JOB...]", nargs=-1, shell_complete=complete_names("job"))
"""Names and patterns: `selection` finds the jobs, and complains if neither a group was named."""
GROUP = click.option("--group", metavar="GROUP", shell_complete=complete_names("group"),
                     help="All jobs of this group, or those of it that are named.")  # fmt: skip
YES = click.option("-y", "--yes", is_flag=True, help="Do not ask, however many there are.")
FLAVOR = click.option("-f", "--flavor", metavar="FLAVOR", shell_complete=complete_names("flavor"),
                      help="How much; `jupyter-to-job flavors` has them.")  # fmt: skip
DEVICE = click.option("-d", "--device", metavar="DEVICE", shell_complete=complete_names("device"),
                      help="Which kind of machine.")  # fmt: skip
FLAVORS = click.option("-f", "--flavor", metavar="FLAVOR", multiple=True,
                       shell_complete=complete_names("flavor"),
                       help="How much; `jupyter-to-job flavors` has them. Several: a sweep."
                       )  # fmt: skip
DEVICES = click.option("-d", "--device", metavar="DEVICE", multiple=True,
                       shell_complete=complete_names("device"),
                       help="Which kind of machine. Several: a sweep.")  # fmt: skip
PARAMETERS: tuple[Callable[[Any], Any], ...] = (
    click.option("-p", "--parameter", "parsed_parameters", nargs=2, multiple=True,
                 metavar="NAME VALUE", shell_complete=_complete_parameter,
                 help="A parameter. The value is JSON if it reads as JSON, else text."),
    click.option("-r", "--raw", "text_parameters", nargs=2, multiple=True, metavar="NAME TEXT",
                 shell_complete=_complete_parameter,
                 help="A parameter that is text, whatever it looks like."),
    click.option("--params-file", metavar="FILE", type=FilePath(),
                 help="Parameters in a file of YAML or JSON; -p and -r win over it."),
)  # fmt: skip
UNSET = click.option("--unset", multiple=True, metavar="NAME", shell_complete=_complete_parameter,
                     help="A parameter of the earlier job that this one does not get."
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
