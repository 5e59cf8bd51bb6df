"""Starts couriers for results that no dev pod has taken, and removes them.

What is under way is known in memory only. After a restart the couriers of before are strangers:
they are deleted, and what they had not delivered is due at once. Two that deliver one result do no
harm, because publishing never overwrites anything.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from ... import logs
from ...backends.kubernetes.records import Manifest
from ...domain.errors import BadInput, CannotDeliver, Conflict, JobsError, NotFound, Refused
from ...exchange import FileExchange
from ...exchange.records import ClusterJob
from ..cluster.cluster import Cluster
from ..cluster.job_objects import JobObjects
from ..metrics import Metrics
from ..reconciling.work_queue import WorkQueue
from .delivery_files import DeliveryFiles, hold, read_delivery_files
from .due import (
    EndCourier,
    LookAgain,
    SeenCourier,
    SeenDelivery,
    StartCourier,
    backoff,
    next_step,
)
from .manifest import CourierPods, courier_manifest, courier_name
from .place import SHARED, Place, place_of, refused

WORKERS = 4
"""Jobs that are looked at at a time."""
MAX_COURIERS = 10
"""Couriers at a time: a hub that stops ends many dev pods at once."""
MAX_OF_CLAIM = 2
"""Couriers of one claim at a time: a volume that hangs holds up its own results only."""
SWEEP_INTERVAL = 30.0
"""Seconds between two looks for couriers that nobody here has started."""
_log = logging.getLogger(__name__)


class _Claim(NamedTuple):
    """A volume claim, whatever has its name later."""

    namespace: str
    uid: str


@dataclass(frozen=True)
class _Courier:
    """A courier under way. `started` is monotonic; `held_at` is that of its job before it."""

    job: ClusterJob
    claim: _Claim
    started: float
    held_at: float | None


@dataclass(frozen=True)
class _Failures:
    """How many couriers of a job have failed, and when the last one did (monotonic)."""

    count: int
    at: float


class Couriers:
    """The couriers of one controller. Call its methods on the event loop only.

    `on_change` hears of each job whose directory was written to.
    """

    def __init__(
        self,
        cluster: Cluster,
        exchange: FileExchange,
        objects: JobObjects,
        pods: CourierPods,
        on_change: Callable[[str], None],
        metrics: Metrics,
    ) -> None:
        self._cluster = cluster
        self._exchange = exchange
        self._objects = objects
        self._pods = pods
        self._on_change = on_change
        self._queue = WorkQueue()
        self._queue.measure(metrics, "deliveries")
        self._couriers: dict[str, _Courier] = {}
        metrics.couriers.set_function(lambda: len(self._couriers))
        self._starting: dict[str, _Claim] = {}
        """Names of Jobs that are being created, with the claims that they mount."""
        self._line: dict[str, _Claim] = {}
        """Jobs that wait until fewer couriers are under way, the first of them first."""
        self._failures: dict[str, _Failures] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        """When each job is looked at by itself: one time, however often it was looked at before."""

    def look(self, job: str) -> None:
        """Have a job looked at that has ended, or of whose courier something is new."""
        self._queue.add(job)

    def _look_after(self, job: str, seconds: float) -> None:
        self._cancel_timer(job)
        self._timers[job] = asyncio.get_running_loop().call_later(seconds, self.look, job)

    def _cancel_timer(self, job: str) -> None:
        if (timer := self._timers.pop(job, None)) is not None:
            timer.cancel()

    def job_of(self, namespace: str, pod_uid: str) -> str | None:
        """Return the job that a pod delivers; None for one that is no courier of ours, or over."""
        pod = self._objects.pod(namespace, pod_uid)
        courier = self._couriers.get(pod.job) if pod is not None else None
        if pod is None or courier is None or pod.terminal:
            return None
        is_own = (pod.namespace, pod.job_uid) == (courier.job.namespace, courier.job.uid)
        return pod.job if is_own else None

    async def run(self) -> None:
        """Work for ever."""
        await asyncio.gather(self._sweep(), *(self._work() for _ in range(WORKERS)))

    async def _work(self) -> None:
        while True:
            name = await self._queue.get()
            try:
                with logs.context(job=name):
                    await self._try_next_step(name)
            finally:
                self._queue.done(name)
                self._call_next()

    async def _try_next_step(self, name: str) -> None:
        """Take the next step of a delivery; again a little later if that fails."""
        try:
            await self._take_next_step(name)
            self._queue.forget(name)
        except JobsError as error:
            _log.warning("%s: its delivery: %s", name, error)
            self._queue.add_rate_limited(name)
        except Exception:  # an error of one job must not stop the others
            _log.exception("%s: its delivery cannot be worked on", name)
            self._queue.add_rate_limited(name)

    def _call_next(self) -> None:
        """Look at the first job in the line that has room: it may not need a courier now."""
        name = next((job for job, claim in self._line.items() if self._has_room(claim)), None)
        if name is not None:
            del self._line[name]
            self._queue.add(name)

    def _has_room(self, claim: _Claim) -> bool:
        claims = [courier.claim for courier in self._couriers.values()]
        claims += self._starting.values()
        return len(claims) < MAX_COURIERS and claims.count(claim) < MAX_OF_CLAIM

    async def _take_next_step(self, name: str) -> None:
        files = await asyncio.to_thread(read_delivery_files, self._exchange, name)
        courier = self._couriers.get(name)
        if files is None:  # delivered, or there is nothing to deliver any more
            self._failures.pop(name, None)
            self._cancel_timer(name)
            if courier is not None:
                await self._end(name, courier)
            return
        logs.add_context(request_id=files.request.request_id)
        if not self._objects.is_synced(files.origin["namespace"]):
            self._look_after(name, SWEEP_INTERVAL)
            return
        match next_step(self._see(name, files, courier), self._pods.after):
            case LookAgain(seconds):
                self._look_after(name, seconds)
            case StartCourier():
                await self._start(name, files)
            case EndCourier(problem) if courier is not None:
                if problem:
                    await self._hold(name, problem)
                await self._end(name, courier)
                self._fail(name)

    def _see(self, name: str, files: DeliveryFiles, courier: _Courier | None) -> SeenDelivery:
        now, clock = time.time(), time.monotonic()
        failures = self._failures.get(name, _Failures(0, 0.0))
        failed = [] if files.held_at is None else [now - files.held_at]
        failed += [clock - failures.at] if failures.count else []
        seen = None
        if courier is not None:
            record = self._objects.record_of(courier.job)
            seen = SeenCourier(
                age=clock - courier.started,
                is_known=record is not None,
                is_over=record is not None and record.finished,
                pod=self._objects.pod_made_by(courier.job),
                refusal=self._objects.refusal_of(courier.job) or "",
                has_reported=files.held_at != courier.held_at,
            )
        return SeenDelivery(now - files.ended_at, min(failed, default=None), failures.count, seen)

    async def _start(self, name: str, files: DeliveryFiles) -> None:
        """Start a courier; where that is not possible the job says why."""
        try:
            place = place_of(files.request, files.origin)
            if place is None:
                await self._leave_to_dev_pod(name, files.origin)
            else:
                await self._start_at(place, name, files)
        except CannotDeliver as error:
            await self._give_up(name, error)
        except Refused as error:
            await self._give_up(name, refused(error))

    async def _start_at(self, place: Place, name: str, files: DeliveryFiles) -> None:
        """Start a courier, or put its job into the line. Raises CannotDeliver and Refused."""
        claim = _Claim(files.origin["namespace"], place.claim_uid)
        if not self._has_room(claim):
            self._line[name] = claim
            return
        label = courier_name(name)
        self._starting[label] = claim
        try:
            place = await self._find_node(place, claim.namespace)
            manifest = courier_manifest(label, files.request, files.origin, place, self._pods)
            job = await self._create(manifest)
        finally:
            del self._starting[label]
        self._couriers[name] = _Courier(job, claim, time.monotonic(), files.held_at)
        _log.info("%s: the courier %s is on its way", name, label)
        self._queue.add(name)

    async def _create(self, manifest: Manifest) -> ClusterJob:
        """Create a courier's Job. Raises CannotDeliver where the cluster does not take it."""
        metadata = manifest["metadata"]
        try:
            uid = await self._cluster.create_job(manifest)
        except (Refused, BadInput, NotFound) as error:
            raise refused(error) from error
        except Conflict as error:  # a name that is taken: the next one is another
            raise CannotDeliver("No courier could be started just now.") from error
        return ClusterJob(metadata["namespace"], metadata["name"], uid)

    async def _find_node(self, place: Place, namespace: str) -> Place:
        """Return a place with the node where its claim is. Raises CannotDeliver and Refused.

        A claim that one node may mount at a time is mounted where it is.
        """
        try:
            claim = await self._cluster.claim(namespace, place.claim)
        except NotFound as error:
            raise CannotDeliver(f"The volume claim {place.claim} is gone.") from error
        if claim["metadata"]["uid"] != place.claim_uid:
            raise CannotDeliver(f"The volume claim {place.claim} is another one by now.")
        # The volume may allow more than was asked for.
        modes = claim.get("status", {}).get("accessModes") or claim["spec"].get("accessModes")
        if SHARED in (modes or []):
            return place
        node = await self._cluster.node_with_claim(namespace, place.claim)
        return replace(place, node=node)

    async def _leave_to_dev_pod(self, name: str, origin: Manifest) -> None:
        """Wait for the dev pod that alone has the files.

        Raises CannotDeliver if it is gone, and Refused.
        """
        try:
            pod = await self._cluster.pod(origin["namespace"], origin["pod"])
        except NotFound:
            pod = None
        if pod is None or pod["metadata"]["uid"] != origin["pod_uid"]:
            raise CannotDeliver(
                "The notebook's folder was on no volume claim, and its dev pod is gone.",
                "The result can still be read, and the job run again.",
                is_final=True,
            )
        self._look_after(name, backoff(1, self._pods.after))

    async def _give_up(self, name: str, problem: CannotDeliver) -> None:
        await self._hold(name, str(problem), failed=problem.is_final)
        self._fail(name)

    async def _hold(self, name: str, message: str, *, failed: bool = False) -> None:
        _log.warning("%s: %s", name, message)
        if await asyncio.to_thread(hold, self._exchange, name, message, failed=failed):
            self._on_change(name)

    def _fail(self, name: str) -> None:
        """Count a failure, and have the job looked at when its next courier is due."""
        before = self._failures.get(name, _Failures(0, 0.0))
        self._failures[name] = failures = _Failures(before.count + 1, time.monotonic())
        self._look_after(name, backoff(failures.count, self._pods.after))

    async def _end(self, name: str, courier: _Courier) -> None:
        """Delete a courier with its pod. Its token counts for nothing from now on."""
        self._couriers.pop(name, None)
        await self._cluster.delete_job(courier.job)

    async def _sweep(self) -> None:
        """Delete couriers of an earlier controller, at intervals: a watch may tell of them late."""
        while True:
            own = {courier.job.name for courier in self._couriers.values()} | set(self._starting)
            for record in self._objects.couriers():
                if record.name not in own and not record.deleting:
                    job = ClusterJob(record.namespace, record.name, record.uid)
                    try:
                        await self._cluster.delete_job(job)
                    except JobsError as error:
                        _log.warning("the courier %s cannot be deleted: %s", record.name, error)
                    except Exception:  # it must not end the controller
                        _log.exception("the courier %s cannot be deleted", record.name)
            await asyncio.sleep(SWEEP_INTERVAL)
