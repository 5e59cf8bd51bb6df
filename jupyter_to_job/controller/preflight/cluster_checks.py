"""The cluster's side of preflight: dry runs of the Job and of its pod, and the job's image.

A Job alone says little: Pod Security, limit ranges and most quotas are asked when its pods come.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import hashlib
import json
import logging
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Protocol

from ...backends.kubernetes import (
    Refusal,
    explain_refusal,
    pod_manifest,
)
from ...backends.kubernetes.manifest import image_of
from ...backends.kubernetes.records import Manifest
from ...domain.errors import BadInput, JobsError, NotFound, Refused
from ...domain.preflight import JobImage, Problem
from ...exchange import Request
from ..callers.shared_calls import SharedCalls
from ..reconciling.known_kernels import KnownKernels

TRIAL_TTL = 5.0
"""Seconds for which the answers to a dry run count: a dialog asks after each change."""
MAX_WAIT = 4.0
"""Seconds for which preflight waits for the cluster."""
MAX_ASKING = 8
"""Threads that may wait for the cluster: agents need the others while it does not answer."""
MAX_WAIT_FOR_TURN = 0.1
"""Seconds for which another one waits for its turn."""
_REFUSES = "cluster_refuses"
_NOT_CHECKED = Problem(
    "not_checked",
    "What the cluster would say is not known: it did not answer in time.",
    "The job can be sent all the same. It waits where the cluster refuses it.",
    blocking=False,
)
_NOT_SURE = (
    "The policy may look at who creates a pod, and take the same one of Kubernetes. "
    "Otherwise the job waits: ask your administrator."
)
"""What to do where a policy refuses a pod: it was tried by the controller, under its own name."""
_OWN_POLICIES = "'jupyter-to-job-"
"""Of k8s/policies: an older one takes no pod of ours, not for a trial either."""
_log = logging.getLogger(__name__)


class TrialCluster(Protocol):
    """The part of the cluster that preflight needs."""

    async def try_job(self, manifest: Manifest) -> None:
        """Let the API server check a Job."""
        ...

    async def try_pod(self, manifest: Manifest) -> None:
        """Let the API server check a pod."""
        ...


class ClusterChecks:
    """Checks requests against the cluster. Make it on the event loop.

    `build` returns the Job of a request and its origin; `kernels` are known from earlier jobs.
    """

    def __init__(
        self,
        cluster: TrialCluster,
        build: Callable[[Request, Manifest], Manifest],
        kernels: KnownKernels,
    ) -> None:
        self._cluster = cluster
        self._build = build
        self._kernels = kernels
        self._trials: SharedCalls[str, tuple[Problem, ...]] = SharedCalls(TRIAL_TTL)
        self._loop = asyncio.get_running_loop()
        self._turns = threading.BoundedSemaphore(MAX_ASKING)

    def problems(self, request: Request, origin: Manifest) -> list[Problem]:
        """Return why the cluster would refuse a request. Call it in a thread of its own."""
        try:
            manifest = self._build(request, origin)
        except BadInput as error:  # the administrator's patch is wrong
            return [Problem(_REFUSES, error.message, error.hint)]
        if not self._turns.acquire(timeout=MAX_WAIT_FOR_TURN):
            return [_NOT_CHECKED]
        try:
            return self._ask(manifest)
        except (JobsError, concurrent.futures.TimeoutError) as error:
            _log.warning("preflight of %s: the cluster says nothing: %r", request.owner, error)
            return [_NOT_CHECKED]
        finally:
            self._turns.release()

    def _ask(self, manifest: Manifest) -> list[Problem]:
        """Return why the cluster would refuse a Job. Raises Unavailable, or TimeoutError."""
        key = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
        trial = self._trials.get(key, partial(self._try_both, manifest))
        future = asyncio.run_coroutine_threadsafe(trial, self._loop)
        try:
            return list(future.result(MAX_WAIT))
        finally:
            future.cancel()  # nobody waits for it any more

    def image(self, request: Request, origin: Manifest) -> JobImage:
        """Return the image that a request runs in, and what is known of its kernels."""
        name = image_of(request, origin)
        names, missing = self._kernels.of(request.owner, name)
        return JobImage(name, name == origin["image"], tuple(names), tuple(missing))

    async def _try_both(self, manifest: Manifest) -> tuple[Problem, ...]:
        """Try the Job and its pod at the same time. Raises Unavailable."""
        job, pod = await asyncio.gather(
            _refusal_in(self._cluster.try_job(manifest)),
            _refusal_in(self._cluster.try_pod(pod_manifest(manifest))),
        )
        if pod is not None and (pod.kind == "rights" or _OWN_POLICIES in pod.message):
            _log.warning("preflight cannot try pods: %s", pod.sentence)  # jobs have no need of it
            pod = None
        problems = [_problem_of(refusal) for refusal in (job, pod) if refusal is not None]
        if pod is not None and pod.kind == "policy":
            problems[-1] = replace(problems[-1], hint=_NOT_SURE, blocking=False)
        return tuple(problems)


async def _refusal_in(trial: Awaitable[None]) -> Refusal | None:
    """Return why a trial fails; None if it does not, or that says nothing. Raises Unavailable."""
    try:
        await trial
    except (Refused, BadInput, NotFound) as error:
        # A webhook with side effects refuses every dry run.
        is_silent = "does not support dry run" in error.message
        return None if is_silent else explain_refusal(error.message)
    return None


def _problem_of(refusal: Refusal) -> Problem:
    """Return the problem. What passes by itself is none to wait for before SEND."""
    code = "over_quota" if refusal.kind == "quota" else _REFUSES
    return Problem(code, refusal.message, refusal.hint, blocking=not refusal.passes)
