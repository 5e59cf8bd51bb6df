"""Which kernels an image has, as far as earlier runs have shown it.

An owner learns from own runs only. Nothing is stored: when the controller begins it looks at every
job, and so learns it anew.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from ...backends.kubernetes.manifest import image_of
from ...backends.kubernetes.records import Manifest
from ...domain.state import AttemptStatus
from ...exchange import Request

MAX_KERNELS = 10_000
"""Kernels that are remembered, of all images; the oldest goes first."""
_MISSING = "there is no kernel of that name"
"""What the runner says of it: a kernel that does not start may be there."""


@dataclass(frozen=True)
class _Word:
    """Whether a run found its kernel, and when it ended."""

    is_there: bool
    finished: str


class KnownKernels:
    """The kernels of images, by owner. The latest run of a kernel decides."""

    def __init__(self) -> None:
        self._words: OrderedDict[tuple[str, str, str], _Word] = OrderedDict()

    def learn(self, request: Request, origin: Manifest, attempt: AttemptStatus) -> None:
        """Learn from an attempt that has ended."""
        ended = attempt.ended
        if ended is None or not request.kernel:
            return
        is_missing = ended.reason == "NoKernel" and _MISSING in (ended.message or "")
        if not (attempt.running or is_missing):
            return
        key = (request.owner, image_of(request, origin), request.kernel)
        words = self._words.get(key)
        if words is None or words.finished <= ended.finished:
            self._words[key] = _Word(not is_missing, ended.finished)
            self._words.move_to_end(key)
            if len(self._words) > MAX_KERNELS:
                self._words.popitem(last=False)

    def of(self, owner: str, image: str) -> tuple[list[str], list[str]]:
        """Return the names of the kernels that an image has, and of those that it lacks."""
        present: list[str] = []
        missing: list[str] = []
        for (known_owner, known_image, kernel), word in list(self._words.items()):
            if (known_owner, known_image) == (owner, image):
                (present if word.is_there else missing).append(kernel)
        return sorted(present), sorted(missing)
