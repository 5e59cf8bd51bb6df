"""`flavors` shows the catalog; `flavors check` lists all faults of a catalog file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from job_runner.protocol.units import format_bytes, format_duration

from ...domain.quantities import parse_quantity
from .. import exits, options, session
from ..display import formats, output

if TYPE_CHECKING:
    from ..display.tables import Column


@click.group("flavors", invoke_without_command=True)
@options.AS_JSON
@click.pass_context
def flavors_command(ctx: click.Context, *, as_json: bool) -> None:
    """Show what can be asked for: flavors (how much) and devices (which kind of machine).

    `*` marks what a job gets that asks for nothing.
    """
    if ctx.invoked_subcommand is not None:
        if as_json:
            raise click.UsageError("Write --json behind the last word.")
        return
    catalog = session.connect().flavors()
    if as_json:
        output.print_json(catalog)
    else:
        _print_catalog(catalog)


@flavors_command.command("check", short_help="Say all that is wrong with a catalog.")
@click.argument("file", required=False, type=options.FilePath(allow_dash=True))
@options.AS_JSON
def check_command(file: Path | None, *, as_json: bool) -> None:
    """Check the catalog FILE (`-`: from stdin; by default the one in force).

    Each fault is a line on stderr: file, line, column, what is wrong, what to do. One fault or
    more is exit code 2. --json prints them on stdout instead.
    """
    from ...domain.errors import BadCatalog
    from ...flavors import load_catalog, parse_catalog

    if file is None:
        settings = session.settings()
        if settings.gateway:
            raise click.UsageError(f"The catalog in force is at {settings.gateway}: name a FILE.")
        file = settings.catalog_path()
    from_stdin = str(file) == "-"
    name = "<stdin>" if from_stdin else str(file)
    try:
        catalog = parse_catalog(sys.stdin.buffer.read(), name) if from_stdin else load_catalog(file)
    except BadCatalog as error:
        if as_json:
            output.print_json([fault._asdict() for fault in error.faults])
        else:
            for fault in error.faults:
                place = f"{name}:{fault.line}:{fault.column}"
                output.print_note(f"{place}: {fault.message} {fault.hint}".rstrip())
        raise click.exceptions.Exit(exits.USAGE) from error
    if as_json:
        output.print_json([])
        return
    flavors = formats.plural(len(catalog.flavors), "flavor")
    devices = formats.plural(len(catalog.devices), "device")
    default = f"{catalog.default.flavor} on {catalog.default.device}"
    click.echo(f"{file} is good: {flavors}, {devices}, by default {default}.")


def _print_catalog(catalog: dict[str, Any]) -> None:
    """Print a table of flavors, a table of devices, and why some flavors are unavailable."""
    from ..display import tables

    default = catalog["default"]
    flavors: dict[str, dict[str, Any]] = catalog["flavors"]
    devices: dict[str, dict[str, Any]] = catalog["devices"]
    flavor_devices = [
        ", ".join(_mark_default(device, default["device"]) for device in flavor["devices"])
        for flavor in flavors.values()
    ]
    tables.print_table(
        [
            _column("FLAVOR", [_mark_default(name, default["flavor"]) for name in flavors]),
            _column("TITLE", [f["title"] for f in flavors.values()], drop=4, min_width=12),
            _column("CPU", [f"{parse_quantity(f['cpu']):g}" for f in flavors.values()]),
            _column("MEMORY", [_bytes(f["memory"]) for f in flavors.values()]),
            _column("GPUS", [str(f["gpus"] or "") for f in flavors.values()]),
            _column("TIME", [_runtime_limit(f["max_runtime"]) for f in flavors.values()], drop=2),
            _column("HERE", ["no" if f["unavailable_reason"] else "yes" for f in flavors.values()]),
            _column("DEVICES", flavor_devices, drop=1, min_width=12),
        ]
    )
    click.echo()
    tables.print_table(
        [
            _column("DEVICE", [_mark_default(name, default["device"]) for name in devices]),
            _column("TITLE", [d["title"] for d in devices.values()], drop=1, min_width=12),
            _column("ISOLATION", [d["isolation"] or "" for d in devices.values()]),
            _column("FREE", [_free_units(d) for d in devices.values()]),
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
    twins: dict[str, list[str]] = {}
    for name, device in devices.items():
        if device.get("same_as"):  # an older controller does not say it
            twins.setdefault(device["same_as"], []).append(name)
    for device_name, names in twins.items():
        click.echo(f"The same cards here: {', '.join([device_name, *names])}.")


def _column(title: str, texts: list[str], drop: int = 0, min_width: int | None = None) -> Column:
    from ..display import tables

    # The administrator wrote the titles, and a line break in one would break the table.
    return tables.Column(title, [" ".join(text.split()) for text in texts], drop, min_width)


def _mark_default(name: str, default: str) -> str:
    return f"{name}*" if name == default else name


def _bytes(quantity: str) -> str:
    return format_bytes(float(parse_quantity(quantity)))


def _runtime_limit(seconds: int | None) -> str:
    return "none" if seconds is None else format_duration(seconds)


def _free_units(device: dict[str, Any]) -> str:
    """Return what is free, of how many; an autoscaled device has no total."""
    free = "?" if device["free"] is None else device["free"]
    if device["total"] is not None:
        return f"{free} of {device['total']}"
    if device.get("autoscaled"):
        return "more on demand" if device["free"] is None else f"{free}, more on demand"
    return ""
