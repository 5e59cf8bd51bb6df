"""`doctor`: checks everything that jobs need, and says how to fix what is wrong."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator

import click

from ...domain.errors import BadInput, JobsError
from .. import options, session
from ..checks.result import Check, CheckResult, Level, run_check
from ..display import output
from ..display.tables import width_of

INDENT = 21
"""Columns of the level and the area, before the message."""
_COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.PROBLEM: "red"}


@click.command("doctor")
@options.AS_JSON
@click.option("--fix", is_flag=True, help="Mend damaged jobs, after asking about each.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def doctor_command(ctx: click.Context, /, *, as_json: bool, fix: bool, yes: bool) -> None:
    """Check kernels, catalog, exchange, file systems, GPUs, dispatcher, jobs and settings.

    Each line is ok, a warning or a problem. A line below a warning or a problem says how to fix
    it; what has to do with a single job, --fix does. With a problem the exit code is 1.
    """
    if fix and as_json and not yes:
        raise click.UsageError("With --json nobody can be asked: add --yes.")
    documents, problems, has_fixed = [], 0, False
    for area, check in _checks():
        for result in run_check(check):
            level, message, remedy, _ = result
            documents.append({"area": area, "level": level, "message": message, "mend": remedy})
            if not as_json:
                _print_result(area, result)
                output.flush()
            is_fixed = fix and _repair(result, ask=not yes)
            has_fixed |= is_fixed
            problems += result.level is Level.PROBLEM and not is_fixed
    if has_fixed:
        session.connect().find()  # wakes the dispatcher: a result may have to be delivered
    if as_json:
        output.print_json(documents)
    if problems and not as_json:
        output.print_note(f"{problems} to fix.")
    ctx.exit(1 if problems else 0)


def _checks() -> Iterator[tuple[str, Check]]:
    """Yield all checks by area. If the settings cannot be read, the others cannot run."""
    from ..checks import catalog, gateway, jobs, kernels, machine, settings, storage

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
        yield "jobs", jobs.check_jobs


def _repair(result: CheckResult, *, ask: bool) -> bool:
    """Mend what a check found, if it can be mended and the user agrees; tell whether it was."""
    if result.repair is None or (ask and not click.confirm(f"{result.fix} Do it?", err=True)):
        return False
    try:
        result.repair()
    except JobsError as error:
        output.print_error(error)
        return False
    return True


def _print_result(area: str, result: CheckResult) -> None:
    level = f"{result.level.value:<8}"
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        level = click.style(level, fg=_COLOURS[result.level])
    click.echo(f"{level} {area:<11} {_wrap(result.message, INDENT)}")
    if result.fix:
        click.echo(f"{'':{INDENT - 1}} -> {_wrap(result.fix, INDENT + 3)}")


def _wrap(text: str, indent: int) -> str:
    """On a terminal, break a text between words so that it fits behind `indent` columns."""
    width = width_of(sys.stdout)
    if width is None or width < 2 * indent:
        return text
    lines = textwrap.wrap(text, width - indent, break_long_words=False, break_on_hyphens=False)
    return f"\n{'':{indent}}".join(lines)
