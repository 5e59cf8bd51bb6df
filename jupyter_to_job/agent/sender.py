"""Fetches a job into the pod, and sends what its runner writes as it is written.

The notebook shares the folder and may put anything into it: only regular files are opened, never
through a link. A gateway that is away is waited for; nothing is dropped.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from job_runner.protocol import documents, layout

from ..domain.errors import Conflict, Damaged, JobsError, NotFound, Refused
from ..exchange import Exchange, Request
from ..exchange.files import WrongOffset

TICK = 0.2
RETRY = 1.0
CHUNK = 4 << 20
_LOCAL = 1
"""The runner's attempt inside of the pod; outside it has the number that was claimed."""
_log = logging.getLogger(__name__)
T = TypeVar("T")


class Agent:
    """One job's agent, in the pod with uid `pod`. `stop` is set when the pod ends."""

    def __init__(
        self, exchange: Exchange, job: str, folder: Path, pod: str, stop: threading.Event
    ) -> None:
        self._exchange = exchange
        self._job = job
        self._folder = folder
        self._directory = folder / job
        self._attempt = layout.attempt_dir(self._directory, _LOCAL)
        self._pod = pod
        self._stop = stop
        self._number = 0
        self._sent: dict[str, int] = {}

    def fetch(self) -> None:
        """Claim an attempt, fetch snapshot and inputs, and let the runner start."""
        request = self._fetch_piece(layout.REQUEST)
        self._number = self._patiently(self._claim)
        inputs = Request.from_document(json.loads(request)).inputs
        self._directory.mkdir(mode=0o700, exist_ok=True)
        for path in [layout.SNAPSHOT, *(f"{layout.INPUTS}/{i.path}" for i in inputs)]:
            target = self._directory / path
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            documents.write_bytes(target, self._fetch_piece(path))
        documents.write_bytes(self._directory / layout.REQUEST, request)
        (self._folder / ".ready").touch()
        _log.info("%s: attempt %d, ready", self._job, self._number)

    def send_until_stopped(self) -> None:
        """Send what is new every `TICK`; at the end everything that is left, outcome last."""
        while not self._stop.wait(TICK):
            self._patiently(self._send_journal)
        self._patiently(self._send_journal)
        self._patiently(self._send_rest)
        _log.info("%s: all sent", self._job)

    def _claim(self) -> int:
        """Take the lowest attempt that is free or ours already (this container was restarted)."""
        number = 1
        while True:
            document = documents.encode({"pod": self._pod})
            try:
                self._exchange.put(self._job, f"attempt-{number}/{layout.RUNNER}", document)
            except WrongOffset:
                raise
            except Conflict:
                number += 1
            else:
                return number

    def _send_journal(self) -> None:
        """Send the journal's new bytes, and the outcome once there is one."""
        for path in sorted((self._attempt / layout.JOURNAL).glob("*.jsonl")):
            name = f"{layout.JOURNAL}/{path.name}"
            while data := self._read(path, self._sent.get(name, 0)):
                self._append(name, data)

    def _append(self, name: str, data: bytes) -> None:
        remote = f"attempt-{self._number}/{name}"
        try:
            self._sent[name] = self._exchange.append(
                self._job, remote, self._sent.get(name, 0), data
            )
        except WrongOffset as error:  # an earlier try, or an earlier container, had got through
            self._sent[name] = error.length

    def _send_rest(self) -> None:
        for path in self._artifacts():
            name = path.relative_to(self._attempt).as_posix()
            self._put(name, self._read(path, 0, None))
        outcome = self._read(self._attempt / layout.OUTCOME, 0, None)
        if outcome:
            self._put(layout.OUTCOME, outcome)

    def _put(self, name: str, data: bytes) -> None:
        self._exchange.put(self._job, f"attempt-{self._number}/{name}", data)

    def _artifacts(self) -> Iterator[Path]:
        root = self._attempt / layout.ARTIFACTS
        for base, folders, names in os.walk(root, followlinks=False):
            folders.sort()
            yield from (Path(base, name) for name in sorted(names))

    def _read(self, path: Path, offset: int, size: int | None = CHUNK) -> bytes:
        """Return bytes of a regular file; nothing for whatever else has its name."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return b""
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return b""
            file.seek(offset)
            return file.read(-1 if size is None else size)

    def _fetch_piece(self, path: str) -> bytes:
        def fetch() -> bytes:
            data = self._exchange.read(self._job, path)
            if data is None:
                raise Damaged(f"{self._job} has no {path}.")
            return data

        return self._patiently(fetch)

    def _patiently(self, action: Callable[[], T]) -> T:
        """Do it again until it works, as long as the error may pass.

        A refusal may, too: the controller accepts a pod only once its watch has shown the Job.
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
            threading.Event().wait(RETRY)
