"""Static volumes: shared ones, and ones that live on one node."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

NODE_LABEL = "kubernetes.io/hostname"


@dataclass(frozen=True)
class Volume:
    """A folder of the host as a persistent volume.

    `claim` is the one that it is for, as `NAMESPACE/NAME`; without one, any claim that fits may
    have it. `node` is where it lives; without one it is shared by all nodes, as a file server's.
    """

    name: str
    folder: Path
    access_modes: tuple[str, ...]
    claim: str | None = None
    node: str | None = None

    def manifest(self) -> dict[str, Any]:
        """Return the persistent volume."""
        spec: dict[str, Any] = {
            "capacity": {"storage": "100Gi"},
            "accessModes": list(self.access_modes),
            "persistentVolumeReclaimPolicy": "Retain",
        }
        if self.claim:
            namespace, _, name = self.claim.partition("/")
            spec["claimRef"] = {"namespace": namespace, "name": name}
        if self.node:
            # Of this type the kubelet gives the files to a pod's fsGroup, as on block devices.
            spec["local"] = {"path": str(self.folder)}
            here = {"key": NODE_LABEL, "operator": "In", "values": [self.node]}
            terms = {"nodeSelectorTerms": [{"matchExpressions": [here]}]}
            spec["nodeAffinity"] = {"required": terms}
        else:
            spec["hostPath"] = {"path": str(self.folder), "type": "Directory"}
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": self.name},
            "spec": spec,
        }

    def claim_manifest(self) -> dict[str, Any]:
        """Return the claim that it is for."""
        assert self.claim
        namespace, _, name = self.claim.partition("/")
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "accessModes": list(self.access_modes),
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
