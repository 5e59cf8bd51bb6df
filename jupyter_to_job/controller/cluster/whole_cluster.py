"""A controller for all namespaces needs rights in all of them, and does not serve without."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Protocol

from ...domain.errors import Refused
from .watches import ALL_NAMESPACES


class AnsweringWatch(Protocol):
    """What this needs of an informer."""

    synced: asyncio.Event
    answered: asyncio.Event


async def require_rights_everywhere(
    namespaces: Collection[str], watches: Collection[AnsweringWatch]
) -> None:
    """Raise Refused if the watches of all namespaces are refused when they are first answered.

    In listed namespaces a missing right stays there: one may not be there yet, and takes nothing
    from the others.
    """
    if ALL_NAMESPACES not in namespaces:
        return
    await asyncio.gather(*(watch.answered.wait() for watch in watches))
    if not all(watch.synced.is_set() for watch in watches):
        raise Refused(
            "JUPYTER_TO_JOB_NAMESPACES is *, and the controller may not watch Jobs and pods in all "
            "namespaces.",
            "Apply k8s/overlays/whole-cluster, which gives it a ClusterRole, or list the "
            "namespaces of dev pods.",
        )
