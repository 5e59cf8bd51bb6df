"""Fetches a job into the pod, and sends what its runner writes as it is written.

The notebook shares the folder and may put anything into it: see `shared`. A gateway that is away is
waited for; nothing is dropped.
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

TICK = 0.2
RETRY = 1.0
CHUNK = 4 << 20
_LOCAL = "attempt-1"
"""The runner's attempt inside of the pod; outside it has the number that was claimed."""
_log = logging.getLogger(__name__)
T = TypeVar("T")


class Stopped(Exception):
    """The pod ended before anything had begun."""


class Agent:
    """One job's agent, in the pod with uid `pod`. `stop` is set when the pod ends."""

    def __init__(
        self, exchange: Exchange, job: str, folder: Path, pod: str, stop: threading.Event
    ) -> None:
        self._exchange = exchange
        self._job = job
        self._folder = folder
        self._shared = UntrustedFolder(folder)
        self._pod = pod
        self._stop = stop
        self._number = 0
        self._sent: dict[str, int] = {}

    def fetch(self) -> None:
        """Claim an attempt, fetch snapshot and inputs, and let the runner start.

        Raises Stopped if the pod is told to end first.
        """
        number = self._patiently(self._claim)
        # Whole or not at all; and a container that was restarted never writes again where the
        # notebook runs already, and may have laid links.
        if not os.path.lexists(self._folder / self._job):
            self._fetch_into(self._folder / f".{secrets.token_hex(8)}")
        (self._folder / ".ready").touch()
        self._number = number
        _log.info("%s: attempt %d, ready", self._job, self._number)

    def _fetch_into(self, draft: Path) -> None:
        draft.mkdir(mode=0o700)
        request = self._fetch_piece(layout.REQUEST)
        inputs = Request.from_document(json.loads(request)).inputs
        for path in [layout.SNAPSHOT, *(f"{layout.INPUTS}/{i.path}" for i in inputs)]:
            target = draft / path
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            documents.write_bytes(target, self._fetch_piece(path))
        documents.write_bytes(draft / layout.REQUEST, request)
        draft.rename(self._folder / self._job)

    def send_until_stopped(self) -> None:
        """Send what is new every `TICK`; at the end everything that is left, outcome last."""
        try:
            while not self._stop.wait(TICK):
                self._send_journal()
            self._send_journal()
            self._send_artifacts()
            outcome = self._shared.read(f"{self._job}/{_LOCAL}/{layout.OUTCOME}", 0, CHUNK)
            if outcome:
                self._patiently(partial(self._put, layout.OUTCOME, outcome))
        except Conflict as error:  # it was given up for dead, and its end is written
            _log.warning("%s: %s", self._job, error)
        else:
            _log.info("%s: all sent", self._job)

    def _claim(self) -> int:
        """Take the lowest attempt that is free or ours already (this container was restarted)."""
        number = 1
        while True:
            document = documents.encode({"pod": self._pod})
            try:
                self._exchange.put(self._job, f"attempt-{number}/{layout.RUNNER}", document)
            except Conflict:
                number += 1
            else:
                return number

    def _send_journal(self) -> None:
        """Send the journal's new bytes."""
        for path in self._shared.files(f"{self._job}/{_LOCAL}/{layout.JOURNAL}"):
            if path.endswith(".jsonl"):
                self._send_file(path)

    def _send_artifacts(self) -> None:
        """Send the files that the run created. One that is not taken must not cost the outcome."""
        for path in self._shared.files(f"{self._job}/{_LOCAL}/{layout.ARTIFACTS}"):
            try:
                self._send_file(path)
                if path not in self._sent:
                    self._patiently(partial(self._put, _name(path), b""))
            except (JobsError, UnicodeError) as error:
                _log.warning("%s: %r is not sent: %s", self._job, path, error)

    def _send_file(self, path: str) -> None:
        """Send the bytes of a growing file that were not sent yet."""
        while data := self._shared.read(path, self._sent.get(path, 0), CHUNK):
            self._patiently(partial(self._append, path, data))

    def _append(self, path: str, data: bytes) -> None:
        remote = f"attempt-{self._number}/{_name(path)}"
        try:
            self._sent[path] = self._exchange.append(
                self._job, remote, self._sent.get(path, 0), data
            )
        except WrongOffset as error:  # an earlier try, or an earlier container, had got through
            self._sent[path] = error.length

    def _put(self, name: str, data: bytes) -> None:
        self._exchange.put(self._job, f"attempt-{self._number}/{name}", data)

    def _fetch_piece(self, path: str) -> bytes:
        def fetch() -> bytes:
            data = self._exchange.read(self._job, path)
            if data is None:
                raise Damaged(f"{self._job} has no {path}.")
            return data

        return self._patiently(fetch)

    def _patiently(self, action: Callable[[], T]) -> T:
        """Do it again until it works, as long as the error may pass.

        Until the runner was let start a refusal may, too: the controller accepts a pod only once
        its watch has shown the Job; and until then there is nothing to lose by giving up.
        """
        while True:
            try:
                return action()
            except (Refused, NotFound) as error:
                if self._number:
                    raise
                _log.info("not yet: %s", error)
            except JobsError as error:
                if not error.retryable:
                    raise
                _log.warning("%s", error)
            if self._number:
                threading.Event().wait(RETRY)
            elif self._stop.wait(RETRY):
                raise Stopped


def _name(path: str) -> str:
    """Return a piece's path inside of its attempt from its path in the shared folder."""
    return "/".join(path.split("/")[2:])
