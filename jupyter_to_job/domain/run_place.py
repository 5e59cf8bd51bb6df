"""Which of the submitter's folders a run sees: the backend decides it for each submission."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RunPlace:
    """Where a run works.

    `isolated`: in a scratch copy of its inputs, else in the notebook's own folder. `mounts` are the
    folders that it sees at the same place where that is the backend's choice, and `left_behind` the
    others, each a sentence that says why.
    """

    isolated: bool
    mounts: tuple[str, ...] = ()
    left_behind: tuple[str, ...] = ()
