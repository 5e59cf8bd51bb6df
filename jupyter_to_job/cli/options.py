"""Options and arguments that several commands share, with their Tab completion."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
WAIT = click.option("--wait", is_flag=True, help="Return when the result is delivered.")


class _Candidate(click.types.StringParamType):
    """Text that Tab completes. The candidates are looked up only when Tab is pressed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's interface
        param: click.Parameter,  # noqa: ARG002 - click's interface
        incomplete: str,
    ) -> list[Any]:
        """Return the candidates that begin with `incomplete`, the best first. Never fails."""
        from .completion import find_candidates

        return find_candidates(self.name, incomplete)


JOB = click.argument("job", type=_Candidate("job"))
JOBS = click.argument("jobs", metavar="JOB...", nargs=-1, required=True, type=_Candidate("job"))
FLAVOR = click.option(
    "-f",
    "--flavor",
    type=_Candidate("flavor"),
    help="How much; `jupyter-to-job flavors` has them.",
)
DEVICE = click.option("-d", "--device", type=_Candidate("device"), help="Which kind of machine.")
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


def with_options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds options, in the order in which `--help` shows them."""

    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add
