"""What the nodes of the cluster have, and what the pods on them asked for, as watches tell it.

Both are for what users are told before they send a job. A right that is missing leaves it untold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from ...backends.kubernetes.device_counts import PodRequests
from ...backends.kubernetes.nodes import NodeRecord
from ..metrics import Metrics
from .cluster import Cluster


class NodeWatch:
    """Knows the nodes, and with `counts_devices` the pods on them. Threads may read it."""

    def __init__(self, cluster: Cluster, *, counts_devices: bool) -> None:
        self._nodes = cluster.nodes()
        self._requests = cluster.requests() if counts_devices else None

    async def run(self) -> None:
        """Watch for ever."""
        requests = [self._requests.run()] if self._requests is not None else []
        await asyncio.gather(self._nodes.run(), *requests)

    def is_starting(self) -> bool:
        """Tell whether the nodes were not asked for yet."""
        return not self._nodes.answered.is_set()

    def measure(self, metrics: Metrics) -> None:
        """Show which of its watches do not work."""
        gauge = metrics.failing_watches
        gauge.labels("nodes").set_function(lambda: self._nodes.is_failing)
        if (requests := self._requests) is not None:
            gauge.labels("all_pods").set_function(lambda: requests.is_failing)

    def nodes(self) -> Collection[NodeRecord] | None:
        """Return the nodes; None where they are not known."""
        return list(self._nodes.records.values()) if self._nodes.synced.is_set() else None

    def requests(self) -> Collection[PodRequests] | None:
        """Return what the pods on nodes ask for; None where that or the nodes are not known now."""
        informer = self._requests
        if informer is None or not informer.synced.is_set():
            return None
        if informer.is_failing or self._nodes.is_failing:
            return None
        return list(informer.records.values())
