"""What runs beside the notebook's container in a job's pod: the agent, and what a patch adds.

Limit ranges and quotas look at each container, and the scheduler at the sum of their requests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from decimal import Decimal

from .nodes import amounts
from .records import AGENT, Manifest
from .strategic_merge import merge

AGENT_RESOURCES: Manifest = {
    "requests": {"cpu": "20m", "memory": "64Mi"},
    "limits": {"cpu": "500m", "memory": "256Mi"},
}
"""The agent's, unless the administrator's patch has others."""


def agent_resources(patch: Manifest) -> Manifest:
    """Return the agent's resources with a patch. Raises BadInput if it is none of a pod."""
    agents = (sidecar for sidecar in _sidecars(patch) if sidecar["name"] == AGENT)
    return next(agents, {}).get("resources") or {}


def sidecar_requests(patch: Manifest) -> Mapping[str, Decimal]:
    """Return what all sidecars ask for with a patch. Raises BadInput if it is none of a pod."""
    total: dict[str, Decimal] = defaultdict(Decimal)
    for sidecar in _sidecars(patch):
        resources = sidecar.get("resources") or {}
        # Kubernetes takes a limit for the request where there is none.
        requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        for name, amount in amounts(requests).items():
            total[name] += amount
    return dict(total)


def _sidecars(patch: Manifest) -> Iterator[Manifest]:
    agent = {"name": AGENT, "restartPolicy": "Always", "resources": AGENT_RESOURCES}
    changes = {"initContainers": (patch.get("spec") or {}).get("initContainers") or []}
    for container in merge({"initContainers": [agent]}, changes)["initContainers"]:
        if container.get("restartPolicy") == "Always":
            yield container
