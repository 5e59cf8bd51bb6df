"""A cluster that says what a test wants it to say, behind a real gateway without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jupyter_to_job.controller.callers.identity import DevPod, Identity
from jupyter_to_job.domain.preflight import JobImage, Problem
from jupyter_to_job.exchange import Request

from .gateways import KnownPods


class PretendChecks:
    """Says the same of every request, in place of `ClusterChecks`; `asked` has the requests."""

    def __init__(self, *found: Problem) -> None:
        self.found = list(found)
        self.job_image = JobImage("notebook:1", is_own=True)
        self.asked: list[Request] = []

    def problems(self, request: Request, _origin: Any) -> list[Problem]:
        self.asked.append(request)
        return self.found

    def image(self, _request: Request, _origin: Any) -> JobImage:
        return self.job_image


class PodsWithVolumes(KnownPods):
    """Dev pods that mount what a test says."""

    def __init__(self, *mounts: Any) -> None:
        self.mounts = list(mounts)

    async def authenticate(self, token: str) -> Identity:
        origin = {"namespace": "dev", "security_context": {"runAsUser": 1000}}
        return DevPod(token, {**origin, "mounts": self.mounts})


def mounted_claim(path: Path, mode: str) -> Any:
    """Return the mount of a claim with an access mode, as origin.json has it."""
    claim = {"claim": path.name, "claim_uid": f"uid-of-{path.name}", "access_modes": [mode]}
    return {"path": str(path), "sub_path": "", "kind": "persistentVolumeClaim", **claim}
