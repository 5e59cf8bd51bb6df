"""What the agent of a job's pod has of the administrator's pod patch, for pods that are like it.

These are couriers, and the pod of `doctor --cluster`. All reach the gateway from the same
namespace. So all need the same certificates, names and registries, and resources that the
namespace's rules allow. Where a courier runs is up to its volume, so nothing that says where is
taken.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from .records import AGENT, Manifest
from .sidecars import agent_resources
from .strategic_merge import merge

_OF_METADATA = ("labels", "annotations")
_OF_POD = ("dnsConfig", "dnsPolicy", "hostAliases", "imagePullSecrets")
_OF_AGENT = ("env", "envFrom")


def with_agent_patch(template: Manifest, patch: Manifest, root: str) -> Manifest:
    """Return the template of a pod of one container with the agent's part of a patch.

    The template's labels stay, and so does what is mounted at `root`: another volume there would
    get a courier's result. Raises BadInput for a patch that has not the form of a pod.
    """
    (container,) = template["spec"]["containers"]
    spec = patch.get("spec") or {}
    agents = [c for c in spec.get("initContainers") or [] if c["name"] == AGENT]
    agent = agents[0] if agents else {}
    mounts = [
        mount
        for mount in agent.get("volumeMounts") or []
        if not PurePosixPath(mount["mountPath"]).is_relative_to(root)
    ]
    # All of them: an amount of the agent's beside one of ours may break the namespace's rules.
    resources = {"resources": {"$patch": "replace", **agent_resources(patch)}}
    mounted = {mount.get("name") for mount in mounts}
    part = {
        "metadata": _fields(patch.get("metadata") or {}, _OF_METADATA),
        "spec": {
            **_fields(spec, _OF_POD),
            "containers": [
                {
                    "name": container["name"],
                    **_fields(agent, _OF_AGENT),
                    **(resources if "resources" in agent else {}),
                    "volumeMounts": mounts,
                },
            ],
            "volumes": [v for v in spec.get("volumes") or [] if v["name"] in mounted],
        },
    }
    merged = merge(template, part)
    labels = {**merged["metadata"].get("labels", {}), **template["metadata"]["labels"]}
    return {**merged, "metadata": {**merged["metadata"], "labels": labels}}


def _fields(value: Manifest, names: tuple[str, ...]) -> Manifest:
    return {name: value[name] for name in names if name in value}
