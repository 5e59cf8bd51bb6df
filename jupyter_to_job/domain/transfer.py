"""Tracks a submission while it is sent: how much was copied, and whether it was withdrawn.

The thread that submits calls `step` and `confirm`; another thread may call `withdraw`. Exactly one
of the two wins: after `confirm` the job is being recorded, before it nothing is. A sweep calls
`confirm` for each of its jobs: `withdraw` wins against those that are not confirmed yet.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .errors import Conflict, Unavailable, Withdrawn

REPORT_INTERVAL = 0.25
"""Seconds between two reports of one submission, at least."""
MAX_KEYS = 1000
"""Keys that are remembered as withdrawn or recorded: the oldest are forgotten."""
Report = Callable[[str, int, int], object]
"""Takes a key, the bytes so far, and all bytes."""


class Transfer:
    """A submission that is being sent under `key`."""

    def __init__(self, key: str | None = None, report: Report | None = None) -> None:
        self._key = key
        self._report = report
        self._lock = threading.Lock()
        self._withdrawn = False
        self._has_withdrawal = False  # in time or not
        self._unconfirmed = 1
        self._bytes = self._total = 0
        self._reported_at = time.monotonic()
        self._has_reported = False

    def expect_jobs(self, count: int) -> None:
        """Set how many jobs the submission makes: until the last one it can be withdrawn."""
        self._unconfirmed = count

    def expect(self, total: int) -> None:
        """Set how many bytes there are to copy. Raises Withdrawn."""
        self._bytes, self._total = 0, total
        self.step(0)

    def step(self, count: int) -> None:
        """Count bytes that were copied. Raises Withdrawn."""
        if self._withdrawn:
            raise Withdrawn("The submission was withdrawn.", "Nothing was recorded.")
        self._bytes += count
        is_complete = self._has_reported and self._bytes == self._total
        if self._report is None or self._key is None:
            return
        # A quick submission makes no report: its answer comes before anybody could read one.
        if is_complete or time.monotonic() - self._reported_at > REPORT_INTERVAL:
            self._reported_at, self._has_reported = time.monotonic(), True
            self._report(self._key, min(self._bytes, self._total), self._total)

    def confirm(self) -> None:
        """Decide that a job is recorded now. Raises Withdrawn."""
        with self._lock:
            if self._withdrawn:
                raise Withdrawn("The submission was withdrawn.", "Nothing was recorded.")
            self._unconfirmed -= 1

    def check_repetition(self) -> None:
        """Allow a confirmed job to be sent again. Raises Withdrawn or Unavailable after `withdraw`.

        An earlier try may have recorded it, and only its answer was lost.
        """
        if self._withdrawn:
            raise Withdrawn("The sweep was withdrawn.", "One more of its jobs may be recorded.")
        if self._has_withdrawal:
            raise Unavailable(
                "The submission was withdrawn while the gateway did not answer.",
                "If it became a job all the same, cancel that.",
            )

    def withdraw(self) -> bool:
        """Decide that no further job is recorded; False if all are confirmed."""
        with self._lock:
            self._has_withdrawal = True
            self._withdrawn = self._unconfirmed > 0
            return self._withdrawn


class Transfers:
    """The submissions of one process by their keys."""

    def __init__(self, report: Report | None = None) -> None:
        self._report = report
        self._lock = threading.Lock()
        self._under_way: dict[str, list[Transfer]] = {}
        self._withdrawn: OrderedDict[str, None] = OrderedDict()
        self._recorded: OrderedDict[str, None] = OrderedDict()

    @contextmanager
    def track(self, key: str | None) -> Iterator[Transfer]:
        """Allow a submission to be withdrawn while it is sent.

        It is recorded unless an error ends the block. Raises Withdrawn if its key was withdrawn
        before it came.
        """
        transfer = Transfer(key, self._report)
        if key is None:
            yield transfer
            return
        with self._lock:
            if key in self._withdrawn:
                raise Withdrawn("This submission was withdrawn.", "Submit with a new key.")
            self._under_way.setdefault(key, []).append(transfer)
        try:
            yield transfer
            with self._lock:
                _remember(self._recorded, key)
        finally:
            with self._lock:
                self._under_way[key].remove(transfer)
                if not self._under_way[key]:
                    del self._under_way[key]

    def withdraw(self, key: str) -> None:
        """Keep further jobs of `key` from being recorded. Raises Conflict if all are confirmed."""
        with self._lock:
            if key in self._recorded:
                raise Conflict("This submission is a job already.", "Cancel or delete the job.")
            # A page that got no answer in time sends again, while the first one is still under way.
            answers = [transfer.withdraw() for transfer in self._under_way.get(key, [])]
            if not all(answers):
                message = "This submission is being recorded."
                raise Conflict(message, "If it becomes a job, cancel or delete that.")
            _remember(self._withdrawn, key)


def _remember(keys: OrderedDict[str, None], key: str) -> None:
    keys[key] = None
    keys.move_to_end(key)
    while len(keys) > MAX_KEYS:
        keys.popitem(last=False)
