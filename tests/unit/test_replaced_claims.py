"""A job does not mount another claim that has the name of its dev pod's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from jupyter_to_job.domain.errors import JobsError, NotFound, Refused, Unavailable
from jupyter_to_job.domain.job import State

from .test_reconciler import NAME, NAMESPACE, ORIGIN, Life


def mount(claim: str | None, **more: Any) -> dict[str, Any]:
    path = f"/{claim or 'examples'}"
    return {
        "path": path, "sub_path": "", "read_only": False, "volume": path[1:],
        "kind": "persistentVolumeClaim", "source": {"claimName": claim}, "claim": claim,
        "claim_uid": claim and f"uid-of-{claim}", "access_modes": ["ReadWriteMany"], **more,
    }  # fmt: skip


EXAMPLES = mount(None, kind="configMap", source={"name": "examples"}, access_modes=[])
MOUNTS = [mount("home"), mount("data"), EXAMPLES, mount("left")]


class Claims:
    """What the API server says of each claim."""

    def __init__(self) -> None:
        self.uids = {name: f"uid-of-{name}" for name in ("home", "data")}
        self.error: JobsError | None = None

    async def read(self, namespace: str, name: str) -> dict[str, Any]:
        assert namespace == NAMESPACE
        if self.error is not None:
            raise self.error
        if name not in self.uids:
            raise NotFound(f"Kubernetes answered 404: {name} not found")
        return {"metadata": {"name": name, "uid": self.uids[name]}}


def life_with_volumes(tmp_path: Path) -> Life:
    paths = tuple(mount["path"] for mount in MOUNTS[:-1])
    return Life(tmp_path, 0, origin={**ORIGIN, "node": None, "mounts": MOUNTS}, mounts=paths)


@pytest.mark.parametrize(
    ("uids", "error", "said"),
    [
        ({"data": None}, None, "The volume claim data is gone."),
        ({"home": "uid-of-eves"}, None, "The volume claim home is another one by now."),
        ({}, Refused("Kubernetes answered 403: no claims for you"), "no claims for you"),
    ],
)
def test_it_waits_and_says_why(
    tmp_path: Path, uids: dict[str, str | None], error: JobsError | None, said: str
) -> None:
    async def live() -> None:
        life = life_with_volumes(tmp_path)
        claims = Claims()
        life.cluster.claim = claims.read
        before, claims.error = dict(claims.uids), error
        claims.uids = {k: u for k, v in before.items() if (u := uids.get(k, v)) is not None}
        with pytest.raises(Unavailable):
            await life.reconciler._reconcile(NAME)
        placement = life.reconciler.placement_of(NAME)
        assert placement is not None and said in str(placement.message)
        assert (life.cluster.made, life.state()) == (0, State.QUEUED)

        claims.uids, claims.error = before, None
        await life.settle()
        assert life.cluster.made == 1 and life.reconciler.placement_of(NAME) is None

    asyncio.run(live())


def test_with_its_namespace_the_job_ends(tmp_path: Path) -> None:
    async def live() -> None:
        life = life_with_volumes(tmp_path)
        life.cluster.error = NotFound("Kubernetes answered 404: the namespace is not found.")
        await life.settle()
        assert (life.state(), life.job().reason) == (State.FAILED, "BackendError")

    asyncio.run(live())
