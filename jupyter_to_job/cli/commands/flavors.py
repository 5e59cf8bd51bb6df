"""`flavors` shows what can be asked for; `flavors check` says all that is wrong with a catalog."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from job_runner.protocol.units import format_duration

from .. import exits, options, session
from ..display import formats, output

if TYPE_CHECKING:
    from ...domain.errors import BadCatalog
    from ..display.tables import Column


@click.group("flavors", invoke_without_command=True)
@options.AS_JSON
@click.pass_context
def flavors_command(context: click.Context, *, as_json: bool) -> None:
    """Show what can be asked for: flavors (how much) and devices (which kind of machine).

    `*` marks what a job gets that asks for nothing.
    """
    if context.invoked_subcommand is not None:
        if as_json:
            raise click.UsageError("Write --json behind the last word.")
        return
    described = session.connect().flavors()
    if as_json:
        output.document(described)
        return
    _show(described)


@flavors_command.command("check", short_help="Say all that is wrong with a catalog.")
@click.argument("file", required=False, type=click.Path(path_type=Path, allow_dash=True))
@options.AS_JSON
def check(file: Path | None, *, as_json: bool) -> None:
    """Check the catalog FILE (`-`: from stdin; by default the one in force).

    Each fault is a line on stderr: file, line, column, what is wrong, what to do. One fault or
    more is exit code 2. --json prints them on stdout instead.
    """
    from ...domain.errors import BadCatalog
    from ...flavors import load_catalog, parse_catalog

    path = _in_force() if file is None else file
    try:
        if str(path) == "-":
            catalog = parse_catalog(sys.stdin.buffer.read(), "<stdin>")
        else:
            catalog = load_catalog(path)
    except BadCatalog as error:
        _tell("<stdin>" if str(path) == "-" else str(path), error, as_json=as_json)
        raise click.exceptions.Exit(exits.USAGE) from error
    if as_json:
        output.document([])
        return
    amounts = formats.plural(len(catalog.flavors), "flavor")
    kinds = formats.plural(len(catalog.devices), "device")
    default = f"{catalog.default.flavor} on {catalog.default.device}"
    click.echo(f"{path} is good: {amounts}, {kinds}, by default {default}.")


def _in_force() -> Path:
    """Return the catalog of this machine. Raises UsageError where a gateway has it."""
    settings = session.settings()
    if settings.gateway:
        raise click.UsageError(f"The catalog in force is at {settings.gateway}: name a FILE.")
    return settings.catalog_path()


def _tell(name: str, error: BadCatalog, *, as_json: bool) -> None:
    if as_json:
        output.document([fault._asdict() for fault in error.faults])
        return
    for fault in error.faults:
        place = f"{name}:{fault.line}:{fault.column}"
        output.note(f"{place}: {fault.message} {fault.hint}".rstrip())


def _show(described: dict[str, Any]) -> None:
    """Print a table of flavors, why some cannot be had, and a table of devices."""
    from ..display import tables

    default = described["default"]
    flavors: dict[str, dict[str, Any]] = described["flavors"]
    devices: dict[str, dict[str, Any]] = described["devices"]
    offered = {
        name: ", ".join(_marked(device, default["device"]) for device in flavor["devices"])
        for name, flavor in flavors.items()
    }
    tables.write(
        [
            _column("FLAVOR", [_marked(name, default["flavor"]) for name in flavors]),
            _column("TITLE", [f["title"] for f in flavors.values()], drop=4, least=12),
            _column("CPU", [f["cpu"] for f in flavors.values()]),
            _column("MEMORY", [f["memory"] for f in flavors.values()]),
            _column("GPUS", [str(f["gpus"] or "") for f in flavors.values()]),
            _column("TIME", [_limit(f["max_runtime"]) for f in flavors.values()], drop=2),
            _column("HERE", ["no" if f["unavailable_reason"] else "yes" for f in flavors.values()]),
            _column("DEVICES", list(offered.values()), drop=1, least=12),
        ]
    )
    click.echo()
    tables.write(
        [
            _column("DEVICE", [_marked(name, default["device"]) for name in devices]),
            _column("TITLE", [d["title"] for d in devices.values()], drop=1, least=12),
            _column("ISOLATION", [d["isolation"] or "" for d in devices.values()]),
            _column("FREE", [_room(d) for d in devices.values()]),
        ]
    )
    reasons: dict[str, list[str]] = {}
    for name, flavor in flavors.items():
        if flavor["unavailable_reason"]:
            reasons.setdefault(flavor["unavailable_reason"], []).append(name)
    if reasons:
        click.echo()
    for reason, names in reasons.items():
        click.echo(f"Not here: {', '.join(names)}. {reason}")


def _column(title: str, texts: list[str], drop: int = 0, least: int | None = None) -> Column:
    from ..display import tables

    # Titles are the admin's text, and a line break in one would break the table.
    return tables.Column(title, [" ".join(text.split()) for text in texts], drop, least)


def _marked(name: str, default: str) -> str:
    return f"{name}*" if name == default else name


def _limit(seconds: int | None) -> str:
    return "none" if seconds is None else format_duration(seconds)


def _room(device: dict[str, Any]) -> str:
    if device["total"] is None:
        return ""
    free = "?" if device["free"] is None else device["free"]
    return f"{free} of {device['total']}"
