"""Builds the service that an edge of this process uses."""

from __future__ import annotations

import grp
import os
import pwd
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..backends.port import Backend
from ..domain.quantities import parse_quantity
from ..exchange import FileExchange
from ..exchange.ownership import keep_others_from_writing
from ..exchange.retention import Policy
from ..flavors import CatalogFile
from ..service.jobs import JobService, ServiceContext
from ..service.port import Jobs
from ..service.submitting.submission import Caller, local_environment
from ..workspace import Workspace
from .kernels import configured_manager, kernel_resolver
from .settings import Settings

if TYPE_CHECKING:
    from jupyter_client.kernelspec import KernelSpecManager


def connect(
    settings: Settings,
    workspace: Path,
    *,
    only_inside: bool = False,
    kernel_manager: Callable[[], KernelSpecManager] = configured_manager,
) -> Jobs:
    """Return the service for the user of `workspace` (a local folder).

    `only_inside` hides jobs whose source is elsewhere: a server with a root sets it.
    `kernel_manager` returns the manager that resolves kernels; by default the one that Jupyter's
    configuration names.
    """
    roots = _roots(settings)
    caller = Caller(
        # A gateway knows its callers itself, and a pod's user may have no name.
        owner="" if settings.gateway else _user(),
        workspace=str(workspace.resolve()),
        groups=_groups(),
        environment=local_environment(sys.executable),
        enforce_memory=settings.enforce_memory,
        roots=tuple(map(str, roots)),
        results=settings.results,
        input_cap=int(parse_quantity(settings.input_cap)),
        resolve_kernel=kernel_resolver(kernel_manager),
    )
    if settings.gateway:
        from ..service.remote import RemoteJobs

        token_file = Path(settings.gateway_token_file)
        return RemoteJobs(
            settings.gateway, token_file, caller, settings.gateway_ca, only_inside=only_inside
        )
    exchange = FileExchange(settings.exchange_root())
    exchange.prepare()
    keep_others_from_writing(exchange.root)
    catalog = CatalogFile(settings.catalog_path)
    backend = _backend(settings, exchange)
    context = ServiceContext(
        exchange,
        backend,
        catalog.current,
        settings.output_limit(),
        has_hooks=lambda: bool(settings.hook_files()),
        policy=Policy.parse(settings.retention, settings.exchange_cap),
    )
    return JobService(context, caller, only_inside=only_inside)


def open_workspace(settings: Settings, root: Path) -> Workspace:
    """Return the files below the folder that a server's paths count from."""
    return Workspace(root.resolve(), _roots(settings))


def _roots(settings: Settings) -> list[Path]:
    """Return the folders outside of a workspace that links in it may lead to."""
    return [Path(path).expanduser().absolute() for path in settings.roots.split(":") if path]


def _backend(settings: Settings, exchange: FileExchange) -> Backend:
    if settings.backend == "memory":
        from ..backends.memory import MemoryBackend

        return MemoryBackend(exchange)
    from ..backends.local import LocalBackend

    return LocalBackend(exchange, settings.capacity)


def _user() -> str:
    """Return the operating system's name of this user, whatever $LOGNAME says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _groups() -> frozenset[str]:
    """Return the names of the operating system's groups of this user."""
    names = set()
    for number in {os.getgid(), *os.getgroups()}:
        try:
            names.add(grp.getgrgid(number).gr_name)
        except KeyError:
            names.add(str(number))
    return frozenset(names)
