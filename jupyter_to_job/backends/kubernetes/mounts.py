"""Which of the dev pod's volumes a job's pod mounts, and which stay behind: a pure function.

A volume comes along where many nodes may mount it at a time, or where every node that the job could
be on is the one that has it. Secrets never do, nor what belongs to the dev pod alone.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection
from dataclasses import dataclass

from .nodes import NodeRecord
from .records import Manifest

EXCHANGE = "/jupyter-to-job"
"""Where a job pod has the job's own files."""
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the pod's own
_CLAIM = "persistentVolumeClaim"
_HARMLESS_SOURCES = frozenset(["configMap", "clusterTrustBundle"])
"""Sources of a projected volume without anything secret, and equal in every pod."""
_FOR_EVERYBODY = frozenset(["configMap", "image"])
"""Kinds that every pod of the namespace may mount."""
SOURCES = _FOR_EVERYBODY | {_CLAIM, "projected"}
"""Kinds of volumes that a job's pod may have."""
_NOT_TOLD = frozenset(["emptyDir", "downwardAPI"])
"""Kinds without files of the user: a dev pod has them for itself."""


@dataclass(frozen=True)
class LeftMount:
    """A mount of the dev pod that the job's pod does not have, and why: a whole sentence.

    `is_told`: its user may miss something, and learns of it before the submission.
    """

    path: str
    why: str
    is_told: bool = True

    def __str__(self) -> str:
        return f"{self.path} stays behind: {self.why}"


@dataclass(frozen=True)
class MountPlan:
    """What a job's pod mounts: `mounts` are those of origin.json.

    `isolated`: the notebook's own
    folder is not among them, so the run gets a copy of its inputs.
    """

    mounts: tuple[Manifest, ...] = ()
    left_behind: tuple[LeftMount, ...] = ()
    isolated: bool = True

    @property
    def paths(self) -> tuple[str, ...]:
        """The folders that the run sees at the same place as the dev pod."""
        return tuple(mount["path"] for mount in self.mounts)


def plan_mounts(
    origin: Manifest,
    folder: str,
    device_nodes: Collection[NodeRecord] | None,
    *,
    is_autoscaled: bool = False,
    has_shared_memory: bool = False,
    patch_paths: Collection[str] = (),
) -> MountPlan:
    """Return what a job's pod mounts of the dev pod that `origin` (origin.json) describes.

    `folder` is the notebook's. `device_nodes` are the nodes that have the job's device, None where
    nodes are not known. `is_autoscaled`: a node may be added that has it, and that cannot have a
    claim of the dev pod's node. `has_shared_memory`: the flavor sizes /dev/shm itself.
    `patch_paths` are the places at which the administrator's patch mounts something.
    """
    node = origin.get("node")
    is_only_node = device_nodes is not None and {n.name for n in device_nodes} == {node}
    elsewhere = None if is_only_node else _MAY_BE_ELSEWHERE
    if is_autoscaled:
        elsewhere = _MAY_BE_ADDED
    mounted: list[Manifest] = []
    left_behind: list[LeftMount] = []
    for mount in origin.get("mounts") or []:
        why = _why_not(mount, elsewhere, has_shared_memory=has_shared_memory)
        if mount["path"] in patch_paths:
            why = _MOUNTED_BY_PATCH
        if why is None:
            mounted.append(mount)
        else:
            left_behind.append(LeftMount(mount["path"], why, _is_told(mount)))
    under = mount_of(origin, folder)
    is_isolated = under not in mounted
    if under is not None and not is_isolated:
        hiding = [p for p in patch_paths if _is_below(folder, p) and _is_below(p, under["path"])]
        left_behind += [LeftMount(path, _MOUNTED_BY_PATCH) for path in hiding]
        is_isolated = bool(hiding)
    return MountPlan(tuple(mounted), tuple(left_behind), is_isolated)


def _why_not(mount: Manifest, elsewhere: str | None, *, has_shared_memory: bool) -> str | None:
    """Return why a mount stays behind, None if the job's pod has it.

    `elsewhere` says how the job may come to another node than the dev pod's, None if it cannot.
    """
    path = mount["path"]
    if _meet(path, EXCHANGE) or (has_shared_memory and _meet(path, SHARED_MEMORY)):
        return "the job has files of its own at this place."
    if mount.get("sub_path") is None:
        return "its sub path depends on variables that only its own pod has."
    kind = mount.get("kind")
    if kind == _CLAIM:
        return _why_no_claim(mount, elsewhere)
    if kind in _FOR_EVERYBODY or (kind == "projected" and not _secret_sources(mount)):
        return None
    return _WHY.get(str(kind), "jobs cannot mount a volume of this kind; a volume claim can be.")


_MAY_BE_ELSEWHERE = "jobs with this device may run on another one"
_MAY_BE_ADDED = "a node may be added for jobs with this device"
_MOUNTED_BY_PATCH = "the administrator mounts something of their own here."
_WHY = {
    "emptyDir": "it belongs to this pod, and is empty in every other one.",
    "ephemeral": "its claim belongs to this pod, and goes with it.",
    "secret": "secrets do not go to jobs. Give the job what it needs as an environment variable.",
    "projected": "it has secrets or tokens, which do not go to jobs.",
    "downwardAPI": "it tells about this pod, and a job is another one.",
    "hostPath": "it is a folder of this pod's node. A volume claim can be mounted elsewhere, too.",
    "csi": "an inline volume belongs to this pod. A volume claim can be mounted elsewhere, too.",
}


def _why_no_claim(mount: Manifest, elsewhere: str | None) -> str | None:
    name, modes = mount.get("claim"), frozenset(mount.get("access_modes") or ())
    if not mount.get("claim_uid"):
        return f"its claim {name} is gone."
    if "ReadWriteOncePod" in modes:
        return f"only one pod at a time may use its claim {name}."
    if is_for_many_nodes(mount):
        return None
    if "ReadWriteOnce" not in modes:
        return f"its claim {name} does not say that another pod may use it."
    if elsewhere is None:
        return None
    return f"its claim {name} can be used on one node at a time, and {elsewhere}."


def is_for_many_nodes(mount: Manifest) -> bool:
    """Tell whether pods on several nodes may have a claim as this mount has it."""
    modes = frozenset(mount.get("access_modes") or ())
    is_reader = mount.get("read_only") or modes == {"ReadOnlyMany"}
    return "ReadWriteMany" in modes or bool("ReadOnlyMany" in modes and is_reader)


def _is_told(mount: Manifest) -> bool:
    kind = mount.get("kind")
    return kind not in _NOT_TOLD and not (kind == "projected" and _is_token(mount))


def _secret_sources(mount: Manifest) -> set[str]:
    """Return the kinds of a projected volume's sources that do not go to jobs."""
    sources = (mount.get("source") or {}).get("sources")
    if not sources:
        return {"unknown"}
    return {kind for source in sources for kind in source} - _HARMLESS_SOURCES


def _is_token(mount: Manifest) -> bool:
    """Tell whether a projected volume is a service account's token, and no file of a user."""
    sources = (mount.get("source") or {}).get("sources") or []
    return any("serviceAccountToken" in source for source in sources)


def mount_of(origin: Manifest, path: str) -> Manifest | None:
    """Return the mount that a path is on: the deepest one. None: the image's own files."""
    path = absolute(path)
    mounts = [m for m in origin.get("mounts") or [] if _is_below(path, m["path"])]
    return max(mounts, key=lambda mount: len(mount["path"]), default=None)


def absolute(path: str) -> str:
    """Return a path in its only form; POSIX would keep two slashes at its beginning."""
    return posixpath.normpath("/" + path.lstrip("/"))


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _meet(path: str, other: str) -> bool:
    return _is_below(path, other) or _is_below(other, path)


def job_volumes(origin: Manifest, paths: Collection[str]) -> tuple[list[Manifest], list[Manifest]]:
    """Return the volumes of a job's pod for the mounts at `paths`, and its notebook's mounts."""
    volumes: dict[str, Manifest] = {}
    mounts = []
    for mount in origin.get("mounts") or []:
        if mount["path"] not in paths:
            continue
        # The prefix keeps the names apart from those of our own volumes, and a patch's.
        name = volumes.setdefault(
            mount["volume"],
            {"name": f"dev-pod-{len(volumes) + 1}", mount["kind"]: mount["source"]},
        )["name"]
        mounts.append(
            {
                "name": name,
                "mountPath": mount["path"],
                **({"subPath": mount["sub_path"]} if mount["sub_path"] else {}),
                **({"readOnly": True} if _is_read_only(mount) else {}),
            }
        )
    return list(volumes.values()), mounts


def _is_read_only(mount: Manifest) -> bool:
    modes = mount.get("access_modes") or []
    return bool(mount.get("read_only") or modes == ["ReadOnlyMany"])


def mounts_claim(origin: Manifest, paths: Collection[str]) -> bool:
    """Tell whether a claim is among the mounts at `paths`."""
    mounts = origin.get("mounts") or []
    return any(m["path"] in paths and m.get("kind") == _CLAIM for m in mounts)


def node_of(origin: Manifest, paths: Collection[str]) -> str | None:
    """Return the only node where a job can mount what is at `paths`, None for any."""
    for mount in origin.get("mounts") or []:
        is_claim = mount["path"] in paths and mount.get("kind") == _CLAIM
        if is_claim and not is_for_many_nodes(mount):
            return str(origin["node"])
    return None
