"""`doctor`: looks at everything that jobs need, and says how to mend what is wrong."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator

import click

from ...domain.errors import BadInput
from .. import options, session
from ..checks import CheckResult, Level, examined
from ..checks.result import Check
from ..display import output
from ..display.tables import width_of

INDENT = 21
"""Columns of the level and the area, before what is said."""
_COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.PROBLEM: "red"}


@click.command("doctor")
@options.AS_JSON
@click.pass_context
def doctor_command(ctx: click.Context, /, *, as_json: bool) -> None:
    """Check kernels, catalog, exchange, file systems, GPUs, dispatcher and settings.

    Each line is ok, a warning or a problem; below the last two stands how to mend it. With a
    problem the exit code is 1.
    """
    found = []
    for finding in _findings():
        found.append(finding)
        if not as_json:
            _show(finding)
            output.flush()
    if as_json:
        output.document([{**one._asdict(), "level": one.level.value} for one in found])
    problems = sum(one.level is Level.PROBLEM for one in found)
    if problems and not as_json:
        output.note(f"{problems} to mend.")
    ctx.exit(1 if problems else 0)


def _findings() -> Iterator[CheckResult]:
    for area, check in _checks():
        yield from examined(area, check)


def _checks() -> Iterator[tuple[str, Check]]:
    """Yield what to look at; with settings that cannot be read there is nothing more to see."""
    from ..checks import catalog, gateway, kernels, machine, settings, storage

    yield "versions", settings.check_versions
    yield "settings", settings.check_settings
    try:
        behind_gateway = bool(session.settings().gateway)
    except BadInput:
        return
    if behind_gateway:
        yield "gateway", gateway.check
    else:
        yield "kernels", kernels.check
        yield "catalog", catalog.check
        yield "exchange", storage.check_exchange
    yield "workspace", storage.check_workspace
    if not behind_gateway:
        yield "slots", machine.check_slots
        yield "GPUs", machine.check_gpus
        yield "dispatcher", machine.check_dispatcher


def _show(finding: CheckResult) -> None:
    level = finding.level.value
    if sys.stdout.isatty():
        level = click.style(level, fg=_COLOURS[finding.level])
    level += " " * (8 - len(finding.level.value))
    click.echo(f"{level} {finding.area:<11} {_wrapped(finding.message, INDENT)}")
    if finding.mend:
        click.echo(f"{'':{INDENT - 1}} -> {_wrapped(finding.mend, INDENT + 3)}")


def _wrapped(text: str, indent: int) -> str:
    """Break a text between words where it stands on a terminal, behind `indent` columns."""
    width = width_of(sys.stdout)
    if width is None or width < 2 * indent:
        return text
    lines = textwrap.wrap(text, width - indent, break_long_words=False, break_on_hyphens=False)
    return f"\n{'':{indent}}".join(lines)
