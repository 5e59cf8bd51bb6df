"""Plans a job's pod before there is one: by the cluster's nodes and the administrator's patch.

It also counts devices, which a user chooses from.

Preflight and submission ask the same planner, so what a user is told is what becomes of the job.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from ..backends.kubernetes.device_counts import PodRequests, count_units
from ..backends.kubernetes.kueue import refuse_queue
from ..backends.kubernetes.lacks import Lack, find_lack
from ..backends.kubernetes.mounts import MountPlan, plan_mounts
from ..backends.kubernetes.nodes import NodeNeeds, NodeRecord
from ..backends.kubernetes.pod_patch import mount_paths
from ..backends.kubernetes.records import Manifest
from ..backends.port import Units
from ..flavors.catalog import Catalog, Choice


class PodPlanner:
    """Answers from what is known now. Threads may share it.

    `nodes` returns the cluster's nodes, None where they are not known. `patch` returns the
    administrator's patch in force. `is_starting` tells that nodes were not asked for yet: whatever
    is planned now may be another plan in a moment. `requests` returns what the pods of all nodes
    asked for, None where that is not known. `lacks_kueue` tells that Kueue is not installed.
    """

    def __init__(
        self,
        nodes: Callable[[], Collection[NodeRecord] | None] = lambda: None,
        patch: Callable[[], Manifest] = dict,
        is_starting: Callable[[], bool] = lambda: False,
        requests: Callable[[], Collection[PodRequests] | None] = lambda: None,
        lacks_kueue: Callable[[], bool] = lambda: False,
    ) -> None:
        self.is_starting = is_starting
        self._nodes = nodes
        self._patch = patch
        self._requests = requests
        self._lacks_kueue = lacks_kueue

    def architecture_of(self, node_name: str | None) -> str | None:
        """Return a node's processor architecture, None where it is not known."""
        node = next((n for n in self._nodes() or () if n.name == node_name), None)
        return node.architecture if node is not None else None

    def mounts(self, choice: Choice, origin: Manifest, folder: str) -> MountPlan:
        """Return which of the dev pod's volumes a job mounts whose notebook is in `folder`."""
        patch, nodes = self._patch(), self._nodes()
        needs = NodeNeeds.of(choice, origin["architecture"], patch)
        if nodes is not None:
            # Which of them an affinity takes away is not known: so a volume of one stays behind.
            nodes = None if needs.has_affinity else needs.nodes(nodes)
        return plan_mounts(
            origin,
            folder,
            nodes,
            is_autoscaled=choice.device.autoscaled,
            has_shared_memory=choice.flavor.shm is not None,
            patch_paths=mount_paths(patch),
        )

    def lack(self, choice: Choice, origin: Manifest) -> Lack | None:
        """Return what no node has of what a choice needs."""
        return find_lack(choice, self._nodes(), origin["architecture"], self._patch())

    def require_queue(self, choice: Choice) -> None:
        """Raise Refused for a choice whose jobs would wait for a Kueue that is not there."""
        queue = choice.flavor.queue
        if queue is not None and self._lacks_kueue():
            raise refuse_queue(choice.flavor_name, queue)

    def units(self, catalog: Catalog, origin: Manifest) -> Mapping[str, Units]:
        """Return how many units of each device there are; none where nobody knows."""
        nodes, requests = self._nodes(), self._requests()
        if nodes is None or requests is None:
            return {}
        patch, architecture = self._patch(), origin["architecture"]
        by_device = {c.device_name: c for name in catalog.flavors for c in catalog.choices(name)}
        return {
            name: count_units(choice, nodes, requests, architecture, patch)
            for name, choice in by_device.items()
        }
