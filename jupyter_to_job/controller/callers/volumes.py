"""Where a path of a dev pod leads: the same file has the same claim and the same path inside of it.

This identifies a workspace. A user may have two servers with two claims and equal paths, and two
hubs may have users of one name: only a process that reaches the very folder may publish there.
"""

from __future__ import annotations

import posixpath
from functools import partial
from typing import NamedTuple

from job_runner.protocol import layout

from ...backends.kubernetes.mounts import SOURCES, absolute, mount_of
from ...backends.kubernetes.records import Manifest
from ...domain.errors import Conflict, Damaged
from ...exchange import FileExchange, Request
from ...exchange.stamps import StampCache, stamp_of

ANOTHER_WORKSPACE = (
    "{} comes from another workspace. "
    "Its result is published by a server that has the notebook's own volume."
)
MAX_PATHS = 10_000
"""Paths of recorded jobs that are kept in memory."""


class VolumePath(NamedTuple):
    """A path inside of a claim (its uid), or of a pod (its uid) where no claim is mounted.

    `is_claim` tells which: what is on a claim outlives its pod.
    """

    uid: str
    path: str
    is_claim: bool

    def __str__(self) -> str:
        return f"{self.uid}:{self.path}"


def volume_path(origin: Manifest, path: str) -> VolumePath:
    """Return where an absolute path leads in the dev pod that `origin` (origin.json) describes."""
    path = absolute(path)
    mount = mount_of(origin, path)
    if mount is None or not mount.get("claim_uid") or mount.get("sub_path") is None:
        return VolumePath(str(origin.get("pod_uid")), path, is_claim=False)
    inside = posixpath.relpath(path, mount["path"])
    inside = absolute(posixpath.join(mount["sub_path"], inside))
    return VolumePath(mount["claim_uid"], inside, is_claim=True)


def mounts_of(pod: Manifest, container: Manifest, claims: Manifest) -> list[Manifest]:
    """Return the container's mounts as origin.json has them; `claims` has the claims by name.

    `kind` is the volume's source as the API calls it, and `source` that source where a job's pod
    may have it. A `sub_path` of None depends on variables that only the kubelet knows.
    """
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or []}
    mounts = []
    for mount in container.get("volumeMounts") or []:
        volume = volumes.get(mount["name"], {})
        source = volume.get("persistentVolumeClaim") or {}
        name = source.get("claimName")
        claim = claims.get(name) or {} if name else {}
        kind = next((key for key in volume if key != "name"), None)
        mounts.append(
            {
                "path": absolute(mount["mountPath"]),
                "sub_path": _sub_path(mount, container),
                "read_only": bool(mount.get("readOnly") or source.get("readOnly")),
                "volume": mount["name"],
                "kind": kind,
                "source": volume[kind] if kind in SOURCES else None,
                "claim": name,
                "claim_uid": claim.get("metadata", {}).get("uid"),
                "access_modes": _access_modes(claim),
            }
        )
    return mounts


def claim_names(pod: Manifest, container: Manifest) -> set[str]:
    """Return the names of the claims that a container mounts."""
    return {m["claim"] for m in mounts_of(pod, container, {}) if m["claim"]}


def _access_modes(claim: Manifest) -> list[str]:
    """Return the modes of the volume behind a claim, which may have more than was asked for."""
    requested, granted = (
        (claim.get(key) or {}).get("accessModes") or [] for key in ("spec", "status")
    )
    only_pod = [mode for mode in requested if mode == "ReadWriteOncePod"]
    return only_pod or granted or requested


def _sub_path(mount: Manifest, container: Manifest) -> str | None:
    """Return the mount's sub path: of an expression only where literal variables decide it."""
    text = mount.get("subPathExpr")
    if not text:
        return str(mount.get("subPath") or "").strip("/")
    variables = {e["name"]: e.get("value") for e in container.get("env") or []}
    values = {name: v for name, v in variables.items() if v is not None and "$" not in v}
    for name, value in values.items():
        text = text.replace(f"$({name})", value)
    return None if "$" in text else text.strip("/")


class JobOrigins:
    """Where paths lead in the dev pods of recorded jobs, by their origin.json."""

    def __init__(self, exchange: FileExchange) -> None:
        self._exchange = exchange
        self._cache: StampCache[tuple[str, str], VolumePath] = StampCache(MAX_PATHS)

    def volume_path(self, job: str, path: str) -> VolumePath:
        """Return where an absolute path leads in the job's dev pod. Raises NotFound."""
        stamp = stamp_of(self._exchange.root / job / layout.ORIGIN)
        return self._cache.get((job, path), stamp, partial(self._read, job, path))

    def _read(self, job: str, path: str) -> VolumePath:
        try:
            origin = self._exchange.document(job, layout.ORIGIN) or {}
        except Damaged:  # then it is nobody's place
            origin = {}
        return volume_path(origin, path)


def require_same_workspace(origins: JobOrigins, request: Request, reader: Manifest) -> None:
    """Raise Conflict unless the notebook, and the result's place, are the same files for a reader.

    `reader` is the origin of the dev pod that asks.
    """
    targets = [request.source]
    if request.output is not None:
        targets.append(posixpath.join(request.workspace, request.output))
    for path in targets:
        if origins.volume_path(request.name, path) != volume_path(reader, path):
            raise Conflict(ANOTHER_WORKSPACE.format(request.name))
