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

from ... import logs
from ...backends.kubernetes.records import Manifest
from ...domain.errors import BadInput, CannotDeliver, Conflict, JobsError, NotFound, Refused
from ...exchange import FileExchange
from ...exchange.records import ClusterJob, HeldRecord
from ..cluster.cluster import Cluster
from ..cluster.job_objects import JobObjects
from ..metrics import Metrics
from ..reconciling.work_queue import WorkQueue
from .admission import Admission, Volume
from .delivery_files import DeliveryFiles, hold_once, read_delivery_files, read_held_at
from .due import (
    CourierObservation,
    DeliveryObservation,
    EndCourier,
    LookAgain,
    StartCourier,
    TellWait,
    backoff,
    next_step,
    shows_error,
)
from .manifest import CourierPods, courier_manifest, courier_name
from .place import SHARED, Place, cannot_start, claim_mount_of, never, place_at, refused

WORKERS = 4
"""Jobs that are looked at at a time."""
SWEEP_INTERVAL = 30.0
"""Seconds between two looks for couriers that nobody here has started."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Courier:
    """A courier under way.

    `started` is monotonic: when its Job was created, or first released after it was suspended. So
    is `failing_since`: when its pod first showed an error. `held_at` is that of its job before the
    courier itself has written a word. `is_bound`: only one node has its volume. `wait_message` is
    what its job says of its wait. `is_suspended`: its Job was, when it was last looked at.
    """

    job: ClusterJob
    started: float
    held_at: float | None
    is_bound: bool
    failing_since: float | None = None
    wait_message: str = ""
    is_suspended: bool = False
    was_released: bool = False


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
        self._starting: set[str] = set()
        """Names of Jobs that are being created."""
        self._admission = Admission()
        self._failures: dict[str, _Failures] = {}

    def look(self, job: str) -> None:
        """Have a job looked at that has ended, or of whose courier something is new."""
        self._queue.add(job)

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
                self._release(name)

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

    def _release(self, name: str) -> None:
        """Give up the place of a job without a courier. Whose turn is next may need none now."""
        if name not in self._couriers and not self._admission.is_waiting(name):
            called = self._admission.release(name)
            if called is not None:
                self._queue.add(called)

    async def _take_next_step(self, name: str) -> None:
        files = await asyncio.to_thread(read_delivery_files, self._exchange, name)
        courier = self._couriers.get(name)
        if files is None:  # delivered, or there is nothing to deliver any more
            self._failures.pop(name, None)
            self._queue.cancel_timer(name)
            if courier is not None:
                await self._end(name, courier)
            return
        logs.add_context(request_id=files.request.request_id)
        if not self._objects.is_synced(files.origin["namespace"]):
            self._queue.set_timer(name, SWEEP_INTERVAL)
            return
        delivery = self._observe(name, files, courier)
        match next_step(delivery, self._pods.patience, self._pods.start_limit):
            case LookAgain(seconds):
                self._queue.set_timer(name, seconds)
            case StartCourier():
                await self._start(name, files)
            case TellWait(problem, seconds):
                await self._hold(name, HeldRecord(problem))
                held_at = await asyncio.to_thread(read_held_at, self._exchange, name)
                updated = replace(self._couriers[name], wait_message=problem, held_at=held_at)
                self._couriers[name] = updated
                self._queue.set_timer(name, seconds)
            case EndCourier(problem) if courier is not None:
                if problem:
                    await self._hold(name, HeldRecord(problem))
                await self._end(name, courier)
                self._fail(name)

    def _observe(
        self, name: str, files: DeliveryFiles, courier: _Courier | None
    ) -> DeliveryObservation:
        time_now, clock = time.time(), time.monotonic()
        failures = self._failures.get(name, _Failures(0, 0.0))
        # Where the clock was set back a time is ahead of now: nobody waits for it to come again.
        failed = [] if files.held_at is None else [abs(time_now - files.held_at)]
        failed += [clock - failures.at] if failures.count else []
        observation = None if courier is None else self._observe_courier(name, files, courier)
        return DeliveryObservation(
            abs(time_now - files.ended_at), min(failed, default=None), failures.count, observation
        )

    def _observe_courier(
        self, name: str, files: DeliveryFiles, courier: _Courier
    ) -> CourierObservation:
        clock = time.monotonic()
        record = self._objects.record_of(courier.job)
        pod = self._objects.pod_made_by(courier.job)
        is_suspended = courier.is_suspended if record is None else record.suspended
        if courier.is_suspended and not is_suspended:  # only now it can get a pod
            # It has its time once: Kueue may take its place away again, and for ever.
            started = courier.started if courier.was_released else clock
            courier = replace(courier, started=started, failing_since=None, was_released=True)
        since = courier.failing_since
        # A reason counts from its first time: between two tries a pod shows none.
        if since is None and pod is not None and shows_error(pod, is_bound=courier.is_bound):
            since = clock
        self._couriers[name] = replace(courier, failing_since=since, is_suspended=is_suspended)
        return CourierObservation(
            age=clock - courier.started,
            is_known=record is not None,
            is_over=record is not None and record.finished,
            pod=pod,
            refusal=self._objects.refusal_of(courier.job) or "",
            has_reported=files.held_at != courier.held_at,
            error_age=0.0 if since is None else clock - since,
            is_bound=courier.is_bound,
            wait_message=courier.wait_message,
            is_suspended=is_suspended,
            queue=record.queue if record is not None else "",
        )

    async def _start(self, name: str, files: DeliveryFiles) -> None:
        """Start a courier; where that is not possible the job says why."""
        try:
            mount = claim_mount_of(files.request, files.origin)
            if mount is None:
                await self._leave_to_dev_pod(name, files.origin)
            else:
                await self._start_with(mount, name, files)
        except CannotDeliver as error:
            await self._give_up(name, error)
        except Refused as error:
            await self._give_up(name, refused(error))

    async def _start_with(self, mount: Manifest, name: str, files: DeliveryFiles) -> None:
        """Start a courier with a mount of the dev pod, or put its job into the line.

        Raises CannotDeliver and Refused.
        """
        namespace = files.origin["namespace"]
        is_shared = await self._require_claim(namespace, mount)
        place = place_at(mount, files.origin)
        volume = Volume(namespace, place.claim_uid, place.sub_path, is_shared)
        if not self._admission.admit(name, files.request.owner, volume):
            return
        if not is_shared:  # it is mounted where it is
            node = await self._cluster.node_with_claim(namespace, place.claim)
            place = replace(place, node=node)
        label = courier_name(name)
        manifest = await self._manifest(label, files, place)
        self._starting.add(label)
        try:
            job = await self._create(manifest)
        finally:
            self._starting.discard(label)
        started, is_bound = time.monotonic(), bool(place.node)
        self._couriers[name] = _Courier(job, started, files.held_at, is_bound)
        _log.info("%s: the courier %s is on its way", name, label)
        self._queue.add(name)

    async def _manifest(self, label: str, files: DeliveryFiles, place: Place) -> Manifest:
        """Return a courier's Job. Raises CannotDeliver if the administrator's patch is wrong."""
        try:
            return await asyncio.to_thread(
                courier_manifest, label, files.request, files.origin, place, self._pods
            )
        except BadInput as error:
            raise cannot_start(str(error)) from error

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

    async def _require_claim(self, namespace: str, mount: Manifest) -> bool:
        """Tell whether pods on many nodes may mount the claim of a mount at a time.

        Raises CannotDeliver where it is gone, and Refused.
        """
        name = mount["claim"]
        try:
            claim = await self._cluster.claim(namespace, name)
        except NotFound as error:
            raise never(f"The volume claim {name} is gone.") from error
        if claim["metadata"]["uid"] != mount["claim_uid"]:
            raise never(f"The volume claim {name} is another one by now.")
        # The volume may allow more than was asked for.
        modes = claim.get("status", {}).get("accessModes") or claim["spec"].get("accessModes")
        return SHARED in (modes or [])

    async def _leave_to_dev_pod(self, name: str, origin: Manifest) -> None:
        """Wait for the dev pod that alone has the files.

        Raises CannotDeliver if it is gone, and Refused.
        """
        try:
            pod = await self._cluster.pod(origin["namespace"], origin["pod"])
        except NotFound:
            pod = None
        if pod is None or pod["metadata"]["uid"] != origin["pod_uid"]:
            raise never("The notebook's folder was on no volume claim, and its dev pod is gone.")
        self._queue.set_timer(name, backoff(1, self._pods.patience))

    async def _give_up(self, name: str, problem: CannotDeliver) -> None:
        await self._hold(name, HeldRecord(str(problem), problem.is_final))
        self._fail(name)

    async def _hold(self, name: str, record: HeldRecord) -> None:
        _log.warning("%s: %s", name, record.message)
        if await asyncio.to_thread(hold_once, self._exchange, name, record):
            self._on_change(name)

    def _fail(self, name: str) -> None:
        """Count a failure, and have the job looked at when its next courier is due."""
        previous = self._failures.get(name, _Failures(0, 0.0))
        self._failures[name] = failures = _Failures(previous.count + 1, time.monotonic())
        self._queue.set_timer(name, backoff(failures.count, self._pods.patience))

    async def _end(self, name: str, courier: _Courier) -> None:
        """Delete a courier with its pod. Its token counts for nothing from now on."""
        self._couriers.pop(name, None)
        await self._cluster.delete_job(courier.job)

    async def _sweep(self) -> None:
        """Delete couriers of an earlier controller, at intervals: a watch may tell of them late."""
        while True:
            names = {courier.job.name for courier in self._couriers.values()} | self._starting
            for record in self._objects.couriers():
                if record.name not in names and not record.deleting:
                    job = ClusterJob(record.namespace, record.name, record.uid)
                    try:
                        await self._cluster.delete_job(job)
                    except JobsError as error:
                        _log.warning("the courier %s cannot be deleted: %s", record.name, error)
                    except Exception:  # it must not end the controller
                        _log.exception("the courier %s cannot be deleted", record.name)
            await asyncio.sleep(SWEEP_INTERVAL)
