"""Dev pods with one kind of volume each, beside their workspace, and what their jobs mount."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jupyter_to_job.backends.kubernetes.mounts import MountPlan, plan_mounts
from jupyter_to_job.backends.kubernetes.nodes import NodeRecord
from jupyter_to_job.controller.callers.origin import notebook_container, origin_of

from .unit.test_manifest import DEV_POD, REVIEW

HOME = "/home/ada"
"""The folder of the notebook."""
HERE, THERE = NodeRecord("node-1", "n-1"), NodeRecord("node-2", "n-2")
"""The dev pod's node, and another one."""
TOKEN = {"serviceAccountToken": {"path": "token"}}


@dataclass(frozen=True)
class VolumeCase:
    """A dev pod whose notebook is on a volume.

    `modes` are those of the claim behind it, if it is one. `nodes` have the job's device. `mounted`
    and `isolated` are what is expected, and `why` a part of what is said otherwise.
    """

    volume: dict[str, Any]
    modes: tuple[str, ...] = ()
    mount: dict[str, Any] = field(default_factory=dict)
    nodes: tuple[NodeRecord, ...] | None = (HERE, THERE)
    mounted: bool = False
    why: str = ""
    told: bool = True

    @property
    def isolated(self) -> bool:
        """Whether the run gets a copy of its inputs: the notebook is in the volume."""
        return not self.mounted

    def origin(self) -> dict[str, Any]:
        """Return origin.json of the dev pod."""
        (container, _) = DEV_POD["spec"]["containers"]
        mounts = [{"name": "volume", "mountPath": HOME, **self.mount}]
        container = {**container, "volumeMounts": [*container["volumeMounts"], *mounts]}
        volumes = [*DEV_POD["spec"]["volumes"], {"name": "volume", **self.volume}]
        spec = {**DEV_POD["spec"], "containers": [container], "volumes": volumes}
        claim = {
            "metadata": {"uid": "claim-uid"},
            "spec": {"accessModes": list(self.modes)},
            "status": {"accessModes": list(self.modes)},
        }
        pod = {**DEV_POD, "spec": spec}
        claims = {"home-ada": claim} if self.modes else {}
        return origin_of(pod, REVIEW, notebook_container(pod, "notebook"), claims)

    def plan(self) -> MountPlan:
        """Return what a job mounts."""
        return plan_mounts(self.origin(), HOME, self.nodes)


CLAIM = {"persistentVolumeClaim": {"claimName": "home-ada"}}
CASES = {
    "rwx": VolumeCase(CLAIM, ("ReadWriteMany",), mounted=True),
    "rwx-sub-path": VolumeCase(CLAIM, ("ReadWriteMany",), {"subPath": "users/ada"}, mounted=True),
    "rwx-read-only": VolumeCase(CLAIM, ("ReadWriteMany",), {"readOnly": True}, mounted=True),
    "rox": VolumeCase(
        {"persistentVolumeClaim": {"claimName": "home-ada", "readOnly": True}},
        ("ReadOnlyMany",),
        mounted=True,
    ),
    "rox-of-a-writer": VolumeCase(
        CLAIM, ("ReadWriteOnce", "ReadOnlyMany"), why="on one node at a time"
    ),
    "rwo-device-elsewhere": VolumeCase(CLAIM, ("ReadWriteOnce",), nodes=(THERE,), why="one node"),
    "rwo-device-on-both": VolumeCase(CLAIM, ("ReadWriteOnce",), why="may run on another one"),
    "rwo-device-on-its-node": VolumeCase(CLAIM, ("ReadWriteOnce",), nodes=(HERE,), mounted=True),
    "rwo-device-nowhere": VolumeCase(CLAIM, ("ReadWriteOnce",), nodes=(), why="one node"),
    "rwo-nodes-unknown": VolumeCase(CLAIM, ("ReadWriteOnce",), nodes=None, why="one node"),
    "rwop": VolumeCase(CLAIM, ("ReadWriteOncePod",), nodes=(HERE,), why="only one pod"),
    "claim-gone": VolumeCase(CLAIM, why="is gone"),
    "sub-path-of-variables": VolumeCase(
        CLAIM, ("ReadWriteMany",), {"subPathExpr": "$(NODE)"}, why="variables"
    ),
    "config-map": VolumeCase({"configMap": {"name": "examples"}}, mounted=True),
    "image": VolumeCase({"image": {"reference": "registry/data:1"}}, mounted=True),
    "projected-config-map": VolumeCase(
        {"projected": {"sources": [{"configMap": {"name": "examples"}}]}}, mounted=True
    ),
    "projected-secret": VolumeCase(
        {"projected": {"sources": [{"configMap": {"name": "a"}}, {"secret": {"name": "s"}}]}},
        why="secrets",
    ),
    "projected-token": VolumeCase({"projected": {"sources": [TOKEN]}}, why="tokens", told=False),
    "secret": VolumeCase({"secret": {"secretName": "s"}}, why="secrets do not go"),
    "host-path": VolumeCase({"hostPath": {"path": "/data"}}, why="this pod's node"),
    "empty-dir": VolumeCase({"emptyDir": {}}, why="belongs to this pod", told=False),
    "ephemeral": VolumeCase(
        {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}, why="its claim belongs to this pod"
    ),
    "csi": VolumeCase({"csi": {"driver": "secrets-store.csi.k8s.io"}}, why="inline volume"),
    "nfs": VolumeCase({"nfs": {"server": "files", "path": "/"}}, why="of this kind"),
}
