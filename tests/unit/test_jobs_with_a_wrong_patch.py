"""A job waits, and says why, while the administrator's patch of its pod is wrong."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from jupyter_to_job.domain.errors import BadInput, Unavailable
from jupyter_to_job.domain.job import State

from .test_reconciler import NAME, Life


@pytest.mark.parametrize(
    ("patch", "answer", "said"),
    [
        ({"spec": {"hostNetwork": True}}, None, "may not change hostNetwork"),
        ({"spec": {"dnsPolicy": "x"}}, "spec.dnsPolicy: Unsupported value", "dnsPolicy"),
    ],
)
def test_it_waits_until_the_patch_is_mended(
    tmp_path: Path, patch: Any, answer: str | None, said: str
) -> None:
    async def live() -> None:
        life = Life(tmp_path, 0)
        life.reconciler.pod_patch = lambda: patch
        life.cluster.error = BadInput(answer) if answer else None
        with pytest.raises(Unavailable):
            await life.reconciler._reconcile(NAME)
        placement = life.reconciler.placement_of(NAME)
        assert placement is not None and said in str(placement.message)
        assert life.state() is State.QUEUED

        life.cluster.error = None
        life.reconciler.pod_patch = lambda: {"spec": {"priority": 1}}
        await life.settle()
        assert life.cluster.made == 1 and life.reconciler.placement_of(NAME) is None

    asyncio.run(live())
