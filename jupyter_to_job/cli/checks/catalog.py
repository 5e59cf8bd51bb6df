"""Checks the catalog: every fault with its place, and whether the default flavor runs here."""

from __future__ import annotations

from collections.abc import Iterator

from ...domain.errors import BadCatalog, JobsError
from .. import session
from ..display import formats
from .result import CheckResult, ok, problem, warning


def check() -> Iterator[CheckResult]:
    """Check the catalog that is configured."""
    from ...flavors import load_catalog

    path = session.settings().catalog_path()
    try:
        catalog = load_catalog(path)
    except BadCatalog as error:
        for fault in error.faults:
            place = f"{path}:{fault.line}:{fault.column}"
            yield problem(f"{place}: {fault.message}", fault.hint or "Fix that line.")
        return
    flavors = formats.plural(len(catalog.flavors), "flavor")
    devices = formats.plural(len(catalog.devices), "device")
    yield ok(f"{path}: {flavors}, {devices}")
    default = catalog.default.flavor
    try:
        reason = session.connect().flavors()["flavors"][default]["unavailable_reason"]
    except (JobsError, OSError):  # of the exchange, which has a check of its own
        return
    if reason:
        yield warning(
            f"The default flavor {default!r} cannot be had here: {reason}",
            "Make another one the default in the catalog, or submit with -f.",
        )
