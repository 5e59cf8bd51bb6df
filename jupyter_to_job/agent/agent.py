"""Fetches a job's files into the pod, and sends what its runner writes.

The notebook shares the folder and may write anything to it: see `untrusted_files`. While the
gateway is away the agent waits; nothing is dropped.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from job_runner.protocol import documents, layout

from ..domain.errors import Conflict, Damaged, JobsError, NotFound, Refused
from ..exchange import Exchange, Request
from ..exchange.port import WrongOffset
from .untrusted_files import UntrustedFolder

SEND_INTERVAL = 0.2
RETRY_DELAY = 1.0
CHUNK_SIZE = 4 << 20
_LOCAL_ATTEMPT = "attempt-1"
"""The runner's attempt inside the pod; in the exchange it has the number that was claimed."""
_log = logging.getLogger(__name__)
T = TypeVar("T")


class Stopped(Exception):
    """The pod was told to end before the runner was started."""


class Agent:
    """The agent of one job, in the pod with the uid `pod`. `stop` is set when the pod ends."""

    def __init__(
        self, exchange: Exchange, job: str, folder: Path, pod: str, stop: threading.Event
    ) -> None:
        self._exchange = exchange
        self._job = job
        self._folder = folder
        self._untrusted = UntrustedFolder(folder)
        self._pod = pod
        self._stop = stop
        self._attempt = 0
        self._sent: dict[str, int] = {}

    def fetch(self) -> None:
        """Claim an attempt, fetch snapshot and inputs, and let the runner start.

        Raises Stopped if the pod is told to end before that.
        """
        attempt = self._with_retries(self._claim)
        # The job's folder appears at once. A restarted container does not write to it: the notebook
        # may run there already, and may have created links.
        if not os.path.lexists(self._folder / self._job):
            self._fetch_into(self._folder / f".{secrets.token_hex(8)}")
        (self._folder / ".ready").touch()
        self._attempt = attempt
        _log.info("%s: attempt %d, ready", self._job, self._attempt)

    def _fetch_into(self, draft: Path) -> None:
        draft.mkdir(mode=0o700)
        request = self._read(layout.REQUEST)
        inputs = Request.from_document(json.loads(request)).inputs
        for path in [layout.SNAPSHOT, *(f"{layout.INPUTS}/{i.path}" for i in inputs)]:
            target = draft / path
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            documents.write_bytes(target, self._read(path))
        documents.write_bytes(draft / layout.REQUEST, request)
        draft.rename(self._folder / self._job)

    def send_until_stopped(self) -> None:
        """Send the journal as it grows. When the pod ends, send the artifacts and the outcome."""
        try:
            while not self._stop.wait(SEND_INTERVAL):
                self._send_journal()
            self._send_journal()
            self._send_artifacts()
            outcome = self._untrusted.read(
                f"{self._job}/{_LOCAL_ATTEMPT}/{layout.OUTCOME}", 0, CHUNK_SIZE
            )
            if outcome:
                self._with_retries(partial(self._put, layout.OUTCOME, outcome))
        except Conflict as error:  # the controller has ended this attempt already
            _log.warning("%s: %s", self._job, error)
        else:
            _log.info("%s: all sent", self._job)

    def _claim(self) -> int:
        """Claim the lowest attempt that is free, or that this pod claimed before a restart."""
        document = documents.encode({"pod": self._pod})
        attempt = 1
        while True:
            try:
                self._exchange.put(self._job, f"attempt-{attempt}/{layout.RUNNER}", document)
                return attempt
            except Conflict:
                attempt += 1

    def _send_journal(self) -> None:
        """Send the journal's new bytes."""
        for path in self._untrusted.files(f"{self._job}/{_LOCAL_ATTEMPT}/{layout.JOURNAL}"):
            if path.endswith(".jsonl"):
                self._send_file(path)

    def _send_artifacts(self) -> None:
        """Send the files that the run created. A refused one does not stop the others."""
        for path in self._untrusted.files(f"{self._job}/{_LOCAL_ATTEMPT}/{layout.ARTIFACTS}"):
            try:
                self._send_file(path)
                if path not in self._sent:
                    self._with_retries(partial(self._put, _path_in_attempt(path), b""))
            except (JobsError, UnicodeError) as error:
                _log.warning("%s: %r is not sent: %s", self._job, path, error)

    def _send_file(self, path: str) -> None:
        """Send the bytes of a file that were not sent yet."""
        while data := self._untrusted.read(path, self._sent.get(path, 0), CHUNK_SIZE):
            self._with_retries(partial(self._append, path, data))

    def _append(self, path: str, data: bytes) -> None:
        remote = f"attempt-{self._attempt}/{_path_in_attempt(path)}"
        try:
            self._sent[path] = self._exchange.append(
                self._job, remote, self._sent.get(path, 0), data
            )
        except WrongOffset as error:  # an earlier try or container had sent more
            self._sent[path] = error.length

    def _put(self, name: str, data: bytes) -> None:
        self._exchange.put(self._job, f"attempt-{self._attempt}/{name}", data)

    def _read(self, path: str) -> bytes:
        def fetch() -> bytes:
            data = self._exchange.read(self._job, path)
            if data is None:
                raise Damaged(f"{self._job} has no {path}.")
            return data

        return self._with_retries(fetch)

    def _with_retries(self, action: Callable[[], T]) -> T:
        """Repeat `action` until it succeeds, or its error is not retryable.

        Before the runner starts, a refusal is retried as well: the controller accepts a pod only
        after its informer has the Job. Raises Stopped if the pod ends in that time.
        """
        while True:
            try:
                return action()
            except (Refused, NotFound) as error:
                if self._attempt:
                    raise
                _log.info("not yet: %s", error)
            except JobsError as error:
                if not error.retryable:
                    raise
                _log.warning("%s", error)
            if self._attempt:
                threading.Event().wait(RETRY_DELAY)
            elif self._stop.wait(RETRY_DELAY):
                raise Stopped


def _path_in_attempt(path: str) -> str:
    """Convert a path in the shared folder to the path inside its attempt."""
    return "/".join(path.split("/")[2:])
