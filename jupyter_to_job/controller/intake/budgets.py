"""How much of the exchange's disk an owner may use, and what of it is kept free.

The reserve is for jobs that run: while less is free nothing is submitted, artifacts stop at the
half of it, and journals wait at a quarter. So an outcome always finds room.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from job_runner.protocol import documents, layout
from job_runner.protocol.units import format_bytes

from ...domain.errors import JobsError, StorageFull, TooLarge, Unavailable
from ...domain.quantities import parse_quantity
from ...exchange import FileExchange, Request
from ...exchange.disk_use import Inode, bytes_on_disk, free_bytes, freed_with
from ...wiring import Settings

BLOBS_FOLDER = ".blobs"


@dataclass(frozen=True)
class Caps:
    """What the settings allow, in bytes; `owner` None: no limit but the disk.

    - `attempt`: the journal and artifacts of one attempt.
    - `record`: one line of its journal.
    - `inputs`: one file that is sent, and all inputs of a job.
    - `owner`: the jobs and blobs of one owner.
    - `reserve`: what stays free of the disk.
    """

    attempt: int = 4 << 30
    record: int = 64 << 20
    inputs: int = 4 << 30
    owner: int | None = None
    reserve: int = 1 << 30

    @classmethod
    def of(cls, settings: Settings) -> Caps:
        """Return the caps that the settings name."""
        return cls(
            attempt=int(parse_quantity(settings.attempt_cap)),
            record=int(parse_quantity(settings.record_cap)),
            inputs=int(parse_quantity(settings.input_cap)),
            owner=int(parse_quantity(settings.owner_cap)) if settings.owner_cap else None,
            reserve=int(parse_quantity(settings.disk_reserve)),
        )

    def output_limit(self, output_cap: int | None) -> int:
        """Return how much output a runner keeps: so little that its journal is never cut.

        Three quarters of an attempt, because records are larger than the output that they hold.
        """
        limit = self.attempt * 3 // 4
        return limit if output_cap is None else min(limit, output_cap)


def owner_key(owner: str) -> str:
    """Return a name for the owner that is safe in a path, and tells nobody who it is."""
    return hashlib.sha256(owner.encode()).hexdigest()[:32]


class Budgets:
    """Adds up what owners use.

    `measure` counts the disk. What comes between two counts is added, and removed jobs are
    subtracted: a user who is to delete jobs sees at once that it helped.
    """

    def __init__(self, exchange: FileExchange, caps: Caps) -> None:
        self.caps = caps
        self._exchange = exchange
        self._lock = threading.Lock()
        self._measured: dict[str, int] = {}
        self._added: defaultdict[str, int] = defaultdict(int)
        self._incoming: defaultdict[str, int] = defaultdict(int)
        self._owner_keys: dict[str, str] = {}
        """By job: all requests are too much to keep in memory, and too many to read each time."""
        if caps.owner is not None:
            exchange.on_removal = self.release

    def free(self) -> int:
        """Return how many bytes of the disk are free, fewer where its inodes run out first."""
        return free_bytes(self._exchange.root)

    def admit_job(self, owner: str, size: int, added: int) -> None:
        """Count a job with inputs of `size` bytes, of which `added` are new on the disk.

        The others are links to blobs, or to an earlier job's inputs. Raises as `require_room`.
        """
        self._require_allowed(size)
        self.require_room(owner, added)
        with self._lock:
            self._added[owner_key(owner)] += added

    def require_room(self, owner: str, size: int) -> None:
        """Raise TooLarge or StorageFull unless an owner may add `size` bytes for a job."""
        self._require_allowed(size)
        if self.free() - size < self.caps.reserve:
            raise StorageFull(
                "The controller's disk is almost full, and takes no new jobs; those that run can "
                "end.",
                "Try again later, or ask the administrator to enlarge the exchange's volume.",
            )
        self._require_owner_room(owner, size)

    def require_room_for_artifacts(self) -> None:
        """Raise StorageFull while half of the reserve is used."""
        if self.free() < self.caps.reserve // 2:
            raise StorageFull(
                "The controller's disk is almost full, and takes no more artifacts.",
                "Run the job again when there is space.",
            )

    def require_room_for_journals(self) -> None:
        """Raise Unavailable while most of the reserve is used: journals wait for space."""
        if self.free() < self.caps.reserve // 4:
            raise Unavailable("The controller's disk is full.", "It is tried again.")

    def incoming(self, owner: str) -> int:
        """Return how many bytes of an owner are coming in."""
        with self._lock:
            return self._incoming.get(owner_key(owner), 0)

    def receive(self, owner: str, size: int) -> None:
        """Count bytes of an owner that are coming in."""
        with self._lock:
            self._incoming[owner_key(owner)] += size

    def received(self, owner: str, size: int, *, is_kept: bool) -> None:
        """Count bytes that `receive` has counted as kept, or as gone."""
        key = owner_key(owner)
        with self._lock:
            self._incoming[key] -= size
            if not self._incoming[key]:
                del self._incoming[key]
            if is_kept:
                self._added[key] += size

    def release(self, folder: Path) -> None:
        """Count no longer what is freed with the folder of a job that is being removed.

        A journal that grew after the last count is subtracted, too. The next count corrects that.
        """
        with contextlib.suppress(OSError, ValueError):  # a damaged job was not counted
            document = documents.read_document(folder / layout.REQUEST)
            if document is not None:
                freed = freed_with(folder)
                with self._lock:
                    self._added[owner_key(Request.from_document(document).owner)] -= freed

    def measure(self) -> int:
        """Count the bytes of all owners on the disk, and return them in all.

        Blobs and inputs of an owner are often one file under several names, which counts once.
        """
        with self._lock:
            added = dict(self._added)
        measured: defaultdict[str, int] = defaultdict(int)
        counted: defaultdict[str, set[Inode]] = defaultdict(set)
        jobs = self._exchange.jobs()
        self._owner_keys = {job: key for job, key in self._owner_keys.items() if job in jobs}
        for name in jobs:
            with contextlib.suppress(JobsError):  # damaged, or removed meanwhile
                key = self._owner_key_of(name)
                measured[key] += bytes_on_disk(self._exchange.root / name, counted[key])
        for folder in (self._exchange.root / BLOBS_FOLDER).glob("*"):
            measured[folder.name] += bytes_on_disk(folder, counted[folder.name])
        with self._lock:
            self._measured = dict(measured)
            for key, size in added.items():
                self._added[key] -= size
            self._added = defaultdict(int, {k: n for k, n in self._added.items() if n})
        return sum(measured.values())

    def _owner_key_of(self, job: str) -> str:
        """Return the key of a job's owner. Raises NotFound or Damaged."""
        if job not in self._owner_keys:
            self._owner_keys[job] = owner_key(self._exchange.request(job).owner)
            self._exchange.forget_request(job)
        return self._owner_keys[job]

    def _require_allowed(self, size: int) -> None:
        """Raise TooLarge for inputs that a job's pod would get too many bytes of."""
        if size > self.caps.inputs:
            raise TooLarge(
                f"The inputs are over {format_bytes(self.caps.inputs)} in all.", "Send fewer files."
            )

    def _require_owner_room(self, owner: str, size: int) -> None:
        """Raise StorageFull if `size` bytes more are too many for an owner."""
        if self.caps.owner is None:
            return
        key = owner_key(owner)
        with self._lock:
            used = self._measured.get(key, 0) + self._added[key] + self._incoming.get(key, 0)
        if used + size > self.caps.owner:
            raise StorageFull(
                f"Your jobs use {format_bytes(used)} of the {format_bytes(self.caps.owner)} that "
                "are yours on the controller.",
                "Delete jobs that you do not need any more. Files that were sent for them count "
                "for an hour longer.",
            )


def blob_folder(exchange: Path, owner: str) -> Path:
    """Return where the blobs of an owner are: nobody finds out by a digest what others have."""
    return exchange / BLOBS_FOLDER / owner_key(owner)
