"""Which API groups the cluster serves: whether Kueue is there, which a flavor's `queue` needs.

A Job with a queue begins suspended, and only Kueue lets it go on. Without Kueue it would wait for
ever, and no event would say why.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Protocol

from ...backends.kubernetes.kueue import KUEUE
from ...domain.errors import JobsError, Refused

READ_INTERVAL = 60.0
"""Seconds for which an answer counts."""
RETRY_INTERVAL = 5.0
"""Seconds after which it is read again that could not be."""
_log = logging.getLogger(__name__)


class DiscoveryCluster(Protocol):
    """The part of the cluster that this needs."""

    async def api_groups(self) -> frozenset[str]:
        """Return the names of the API groups that there are."""
        ...


class ApiGroups:
    """Knows the API groups as they were last told. Threads may read it.

    Every service account may read them, unless the administrator took that right away: then
    nothing is known, and nothing refused.
    """

    def __init__(self, cluster: DiscoveryCluster) -> None:
        self._cluster = cluster
        self._groups: Collection[str] | None = None
        self._is_answered = False

    async def run(self) -> None:
        """Read them for ever. An error of a moment does not end it."""
        while True:
            try:
                self._groups = await self._cluster.api_groups()
            except Refused as error:
                _log.warning("whether Kueue is installed cannot be told: %s", error)
                self._groups = None
            except JobsError as error:
                _log.debug("the API groups are not known: %s", error)
                await asyncio.sleep(RETRY_INTERVAL)
                continue
            except Exception:  # an answer of an unexpected shape
                _log.exception("the API groups are read again in %g s", RETRY_INTERVAL)
                await asyncio.sleep(RETRY_INTERVAL)
                continue
            self._is_answered = True
            await asyncio.sleep(READ_INTERVAL)

    def is_starting(self) -> bool:
        """Tell whether nothing was answered yet."""
        return not self._is_answered

    def lacks_kueue(self) -> bool:
        """Tell whether Kueue is known not to be there."""
        return self._groups is not None and KUEUE not in self._groups
