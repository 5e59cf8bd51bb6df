"""Builds the service that an edge of this process uses."""

from __future__ import annotations

import getpass
import grp
import os
import sys
from pathlib import Path

from ..backends.port import Backend
from ..exchange import FileExchange
from ..flavors import Catalog, load_catalog
from ..service.intake import Caller, local_environment
from ..service.jobs import Core, JobService
from ..service.port import Jobs
from .settings import Settings


def connect(settings: Settings, workspace: Path, *, only_inside: bool = False) -> Jobs:
    """Return the service for somebody who works in `workspace` (a local folder).

    `only_inside` hides jobs whose source is elsewhere: what a server with a root does.
    """
    root = workspace.resolve()
    if settings.gateway:
        from ..service.remote import RemoteJobs

        return RemoteJobs(settings.gateway, Path(settings.gateway_token_file), root)
    exchange = FileExchange(settings.exchange_root())
    exchange.prepare()
    core = Core.of(exchange, _backend(settings, exchange), lambda: catalog(settings))
    caller = Caller(
        owner=getpass.getuser(),
        workspace=str(root),
        groups=_groups(),
        environment=local_environment(sys.executable),
        enforce_memory=settings.enforce_memory,
    )
    return JobService(core, caller, only_inside=only_inside)


def catalog(settings: Settings) -> Catalog:
    """Return the catalog as it is on disk now."""
    return load_catalog(settings.catalog_path())


def _backend(settings: Settings, exchange: FileExchange) -> Backend:
    if settings.backend == "memory":
        from ..backends.memory import MemoryBackend

        return MemoryBackend(exchange)
    from ..backends.local import LocalBackend

    return LocalBackend(exchange, settings.capacity)


def _groups() -> frozenset[str]:
    """Return the names of the operating system's groups of this user."""
    names = set()
    for number in {os.getgid(), *os.getgroups()}:
        try:
            names.add(grp.getgrgid(number).gr_name)
        except KeyError:
            names.add(str(number))
    return frozenset(names)
