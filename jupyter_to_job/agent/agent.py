"""Fetches a job's files into the pod, and sends what its runner writes.

The notebook shares the folder and may write anything to it: see `shared_folder`. While the gateway
is away the agent waits; nothing is dropped. It may be killed and started again at any time: what
was fetched or sent before stays, and is not fetched or sent again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from job_runner.protocol import documents, layout
from job_runner.protocol.created import CreatedFiles
from job_runner.protocol.fields import read_fields
from job_runner.protocol.outcome import MAX_ARTIFACTS, ArtifactRecord

from ..domain.errors import (
    BadInput,
    Conflict,
    Damaged,
    JobsError,
    NotFound,
    OverBudget,
    Refused,
    StorageFull,
    WrongOffset,
)
from .gateway_connection import GatewayConnection
from .shared_folder import SharedFolder, create_file

SEND_INTERVAL, WATCHED_SEND_INTERVAL = 1.0, 0.25
"""Seconds between two looks at the journal; the second while somebody watches the job."""
END_INTERVAL = 0.05
"""Seconds between two looks whether the run has ended: the GPU is idle from then on."""
MIN_RETRY_DELAY, MAX_RETRY_DELAY = 0.2, 30.0
"""Seconds before a failed request is sent again: the first time, and at most."""
REFUSAL_PATIENCE = 60.0
"""Seconds for which a refused request is repeated in a pod that is told to end."""
MAX_ARTIFACTS_TIME = 60.0
"""Seconds that sending artifacts may take while the gateway answers: the pod holds a GPU."""
MAX_COMPARISONS = 2
"""How often artifacts are compared with the exchange, at most: a gateway may fail now and then."""
PIECE_SIZE = 4 << 20
"""Bytes that are sent in one request, at most."""
MAX_OUTCOME = 32 << 20
"""Bytes of an outcome that are read: ten thousand files with the longest names have less."""
_LOCAL_ATTEMPT = "attempt-1"
"""The runner's attempt inside the pod; in the exchange it has the number that was claimed."""
_log = logging.getLogger(__name__)
T = TypeVar("T")


class Stopped(Exception):
    """The pod was told to end before the job's files were fetched."""


class _ExchangeRestored(Exception):
    """The exchange was put back from a backup that does not have all that the agent has sent."""


class Agent:
    """The agent of one job, in the pod with the uid `pod`. `stop` is set when the pod ends."""

    def __init__(
        self,
        gateway: GatewayConnection,
        job: str,
        folder: SharedFolder,
        pod: str,
        stop: threading.Event,
    ) -> None:
        self._gateway = gateway
        self._job = job
        self._folder = folder
        self._claim_document = documents.encode({"pod": pod})
        self._stop = stop
        self._attempt = 0
        self._is_watched = False
        self._away_time = 0.0
        """Seconds for which the gateway did not answer, or could not do what it was asked."""
        self._sent: dict[str, int] = {}
        self._refused: set[str] = set()
        """The journal's segments of which the gateway takes no more."""

    def fetch(self) -> None:
        """Claim an attempt, and fetch the job's files. Its directory appears complete.

        The runner waits for that. Raises Stopped if the pod is told to end before it.
        """
        attempt = self._with_retries(self._claim)
        # A restarted container does not write there: the notebook may run already.
        if not self._folder.has(self._job):
            with self._folder.draft(self._job) as draft:
                self._fetch_into(draft)
        self._attempt = attempt
        _log.info("%s: attempt %d, its files are here", self._job, self._attempt)

    def _fetch_into(self, draft: int) -> None:
        request = json.loads(self._fetch_file(draft, layout.REQUEST))
        self._fetch_file(draft, layout.SNAPSHOT, request["snapshot_sha256"])
        for entry in request["inputs"]:
            self._fetch_file(draft, f"{layout.INPUTS}/{entry['path']}", entry["sha256"])

    def _fetch_file(self, draft: int, path: str, sha256: str | None = None) -> bytes:
        """Fetch a file, and compare its digest. Return its bytes if there is none to compare."""
        digest, content = hashlib.sha256(), bytearray()
        with create_file(draft, path) as file:

            def receive() -> None:
                for chunk in self._gateway.read(path, file.tell()):
                    file.write(chunk)
                    digest.update(chunk)
                    if sha256 is None:
                        content.extend(chunk)
                    if self._stop.is_set():
                        raise Stopped

            self._with_retries(receive)
        if sha256 is not None and digest.hexdigest() != sha256:
            raise Damaged(f"{self._job}/{path} is not what was submitted.", "Submit it again.")
        return bytes(content)

    def send_until_ended(self) -> None:
        """Send the journal as it grows. When the run or the pod ends, send the rest.

        That the run has ended shows before the kubelet notices it, so the agent ends with it and
        is not waited for. Of a runner that was killed it is told by SIGTERM.
        """
        try:
            self._send_all()
        except Conflict as error:  # the controller has ended this attempt already
            _log.warning("%s: %s", self._job, error)
        else:
            _log.info("%s: all sent", self._job)

    def _send_all(self) -> None:
        """Send all that the run writes; begin anew whenever the exchange was restored."""
        while True:
            with contextlib.suppress(_ExchangeRestored):
                self._follow_journal()
                away_before = self._away_time
                self._send_artifacts()
                outcome = self._read_outcome()
                if outcome:
                    self._send_outcome(outcome, away_before)
                return
            _log.warning("%s: the exchange was restored; what it lacks is sent again", self._job)
            self._sent.clear()
            self._refused.clear()
            self._with_retries(partial(self._put_claim, self._attempt))

    def _follow_journal(self) -> None:
        """Send the journal as it grows until the run or the pod ends, and then the rest of it."""
        send_at = 0.0
        while not self._has_run_ended():
            if time.monotonic() >= send_at:
                self._send_journal()
                interval = WATCHED_SEND_INTERVAL if self._is_watched else SEND_INTERVAL
                send_at = time.monotonic() + interval
            if self._stop.wait(END_INTERVAL):
                break
        self._send_journal()

    def _has_run_ended(self) -> bool:
        """Tell whether the outcome is there, and the runner's process is about to exit.

        While that lives the kubelet would start the agent again.
        """
        has_outcome = bool(self._folder.read(self._local(layout.OUTCOME), 0, 1))
        return has_outcome and self._folder.is_unlocked(self._local(layout.LOCK))

    def _read_outcome(self) -> bytes:
        """Return the outcome. One that names too many files for a document names none."""
        outcome = self._folder.read(self._local(layout.OUTCOME), 0, MAX_OUTCOME)
        if len(outcome) <= documents.MAX_SENT_BYTES:
            return outcome
        return documents.encode({**json.loads(outcome), "artifacts": None})

    def _named_artifacts(self) -> dict[str, int] | None:
        """Return the sizes of what the run created, by name; None where no outcome tells them."""
        with contextlib.suppress(LookupError, TypeError, ValueError, RecursionError):
            files = json.loads(self._read_outcome())["artifacts"]
            records = [read_fields(ArtifactRecord, file) for file in files]
            return {record.path: record.size for record in records}
        return None

    def _claim(self) -> int:
        """Claim the lowest attempt that is free, or that this pod claimed before a restart."""
        attempt = 1
        while True:
            try:
                self._put_claim(attempt)
                return attempt
            except Conflict:
                attempt += 1

    def _put_claim(self, attempt: int) -> None:
        self._gateway.put(f"attempt-{attempt}/{layout.RUNNER}", self._claim_document)

    def _check_claim(self) -> None:
        """Raise _ExchangeRestored if the exchange does not have this pod's claim any more."""
        claim = b""
        with contextlib.suppress(NotFound):
            claim = b"".join(self._gateway.read(f"attempt-{self._attempt}/{layout.RUNNER}"))
        if claim != self._claim_document:
            raise _ExchangeRestored

    def _send_journal(self) -> None:
        """Send the journal's new bytes. What the gateway does not take is not sent again."""
        for path in self._folder.files(self._local(layout.JOURNAL)):
            if path.endswith(".jsonl") and path not in self._refused:
                try:
                    self._send_file(path)
                except (OverBudget, BadInput) as error:
                    self._refused.add(path)
                    _log.warning("%s: no more of %r is sent: %s", self._job, path, error)

    def _send_artifacts(self) -> None:
        """Send the files that the run created. A refused one does not stop the others.

        What is left after `MAX_ARTIFACTS_TIME` is named in the outcome, or before they are sent,
        and missing: the job's message says so.
        """
        begun, away_before = time.monotonic(), self._away_time

        def is_late() -> bool:
            away_time = self._away_time - away_before
            return time.monotonic() - begun - away_time > MAX_ARTIFACTS_TIME

        for path, size in self._find_artifacts().items():
            try:
                self._send_file(path, is_late, size)
                if path not in self._sent and not is_late():
                    self._with_retries(partial(self._put, _path_in_attempt(path), b""))
                    self._sent[path] = 0
            except JobsError as error:
                _log.warning("%s: %r is not sent: %s", self._job, path, error)
            if is_late():
                _log.warning("%s: the time for artifacts is over after %r", self._job, path)
                return

    def _find_artifacts(self) -> dict[str, int]:
        """Return the paths of what the run created, and how much is sent of each.

        Tell the gateway those that no outcome names: a killed run's, which nothing has collected,
        and any that are over the limits. What came of them in part only would be taken for the
        whole.
        """
        artifacts, scratch = self._local(layout.ARTIFACTS), self._local(layout.SCRATCH)
        has_outcome = bool(self._folder.read(self._local(layout.OUTCOME), 0, 1))
        is_killed = not has_outcome and self._folder.is_unlocked(self._local(layout.LOCK))
        collected = self._folder.files(artifacts)
        named = self._named_artifacts() if has_outcome else {}
        if not is_killed and (not collected or named is not None):
            named = named or {}
            return {p: named.get(p.removeprefix(f"{artifacts}/"), sys.maxsize) for p in collected}
        sizes: dict[str, int] = {}
        paths: dict[str, str] = {}
        omitted = 0
        for folder in (artifacts, scratch) if is_killed else (artifacts,):
            for name, size in self._folder.created(folder, f"{self._job}/{layout.INPUTS}"):
                if len(paths) < MAX_ARTIFACTS:
                    sizes.setdefault(name, size)
                    paths.setdefault(name, f"{folder}/{name}")
                else:
                    omitted += 1
        created = CreatedFiles.of(sizes, omitted)
        try:
            self._with_retries(partial(self._put, layout.CREATED, created.encode()))
        except (Refused, NotFound, BadInput) as error:  # an older gateway does not know it
            _log.warning("%s: its files are not sent: %s", self._job, error)
            return {}
        return {paths[file.path]: file.size for file in created.files}

    def _send_file(
        self, path: str, is_late: Callable[[], bool] = lambda: False, size: int = sys.maxsize
    ) -> None:
        """Send the bytes of a file that were not sent yet, up to `size`, until it `is_late`."""
        while not is_late():
            sent = self._sent.get(path, 0)
            data = self._folder.read(path, sent, min(PIECE_SIZE, max(size - sent, 0)))
            if not data:
                return
            self._with_retries(partial(self._append, path, data))

    def _append(self, path: str, data: bytes) -> None:
        remote = f"attempt-{self._attempt}/{_path_in_attempt(path)}"
        sent = self._sent.get(path, 0)
        try:
            answer = self._gateway.append(remote, sent, data)
        except Refused:
            self._check_claim()
            raise
        except WrongOffset as error:
            if error.length < sent:
                raise _ExchangeRestored from error
            self._sent[path] = error.length  # an earlier try or container had sent more
        else:
            self._sent[path], self._is_watched = answer

    def _put(self, name: str, data: bytes) -> None:
        try:
            self._gateway.put(f"attempt-{self._attempt}/{name}", data)
        except Refused:
            self._check_claim()
            raise

    def _send_outcome(self, outcome: bytes, away_before: float) -> None:
        """Put the outcome, if the exchange still has all that was sent: nothing is sent after it.

        Artifacts may be many, and go missing only while the gateway is away: they are compared if
        it was since `away_before`, and `MAX_COMPARISONS` times. Raises _ExchangeRestored.
        """
        segments = [path for path in self._sent if path.startswith(self._local(layout.JOURNAL))]
        artifacts = [path for path in self._sent if path not in segments]
        compared_at, comparisons = away_before, 0

        def compare_and_put() -> None:
            nonlocal compared_at, comparisons
            while self._away_time > compared_at and comparisons < MAX_COMPARISONS:
                compared_at, comparisons = self._away_time, comparisons + 1
                for path in artifacts:
                    self._with_retries(partial(self._check_length, path))
            for path in segments:
                self._check_length(path)
            self._put(layout.OUTCOME, outcome)

        self._with_retries(compare_and_put)

    def _check_length(self, path: str) -> None:
        """Raise _ExchangeRestored if the exchange has less of a file than was sent."""
        # These errors mean that nothing is missing: the gateway compares the length first.
        with contextlib.suppress(OverBudget, StorageFull):
            self._append(path, b"")

    def _local(self, name: str) -> str:
        return f"{self._job}/{_LOCAL_ATTEMPT}/{name}"

    def _with_retries(self, action: Callable[[], T]) -> T:
        """Repeat `action` until it succeeds, or its error is not retryable; ever less often.

        A refusal is retried as well: the controller accepts a pod only after its informer has the
        Job, and may not know it for a moment later. So is a failure of the gateway, which may pass:
        no agent is started again after its run. Once the pod is told to end that is bounded.
        Raises Stopped if that happens before the files are here: nothing has run.
        """
        delay, refused_since = MIN_RETRY_DELAY, 0.0
        while True:
            begun = time.monotonic()
            try:
                return action()
            except JobsError as error:
                is_refused = isinstance(error, Refused | NotFound)
                has_failed = isinstance(error, Damaged) or type(error) is JobsError
                if not error.retryable:
                    refused_since = refused_since or time.monotonic()
                    is_late = time.monotonic() - refused_since > REFUSAL_PATIENCE
                    is_over = self._stop.is_set() and is_late and self._folder.has(self._job)
                    if is_over or not (is_refused or has_failed):
                        raise
                if is_refused:
                    _log.info("not accepted: %s", error)
                else:
                    _log.warning("%s", error)
            if self._folder.has(self._job):
                time.sleep(delay)
            elif self._stop.wait(delay):
                raise Stopped
            delay = min(2 * delay, MAX_RETRY_DELAY)
            if not has_failed:  # else one file that stays damaged would hold up the outcome
                self._away_time += time.monotonic() - begun


def _path_in_attempt(path: str) -> str:
    """Convert a path in the shared folder to the path inside its attempt in the exchange."""
    folder, _, name = path.split("/", 2)[2].partition("/")
    return f"{layout.ARTIFACTS if folder == layout.SCRATCH else folder}/{name}"
