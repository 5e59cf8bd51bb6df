"""Decides how many couriers are under way at a time, and whose turn is next.

A volume that hangs holds its couriers until their deadline. So a folder has few of them, a claim
never all, and the owners of waiting jobs take turns.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_COURIERS = 10
"""Couriers at a time: a hub that stops ends many dev pods at once."""
MAX_OF_CLAIM = 6
"""Couriers of one claim at a time, which may be all users' with a folder each."""
MAX_OF_FOLDER = 2
"""Couriers of one folder of a claim at a time: most often the folder is one user's."""


@dataclass(frozen=True)
class Volume:
    """What a courier mounts: the folder `sub_path` of a claim, whatever has its name later.

    `is_shared`: pods on many nodes may have the claim. Else two couriers at a time might go to two
    nodes, of which one gets it.
    """

    namespace: str
    claim_uid: str
    sub_path: str = ""
    is_shared: bool = False


class Admission:
    """The jobs whose couriers are under way, and the line of those that wait."""

    def __init__(self) -> None:
        self._admitted: dict[str, Volume] = {}
        self._line: dict[str, dict[str, Volume]] = {}
        """The waiting jobs of each owner, in their order; the owner whose turn is next is first."""

    def admit(self, job: str, owner: str, volume: Volume) -> bool:
        """Tell whether a job may have a courier now; if not, it joins its owner's line."""
        if job in self._admitted:  # its turn has come
            return True
        if not self._has_room(volume):
            self._line.setdefault(owner, {})[job] = volume
            return False
        self._leave_line(job)
        self._admitted[job] = volume
        return True

    def is_waiting(self, job: str) -> bool:
        """Tell whether a job is in the line."""
        return any(job in jobs for jobs in self._line.values())

    def release(self, job: str) -> str | None:
        """Forget a job. Return the one that is admitted in its place, if one waits for it."""
        self._admitted.pop(job, None)
        self._leave_line(job)
        for owner, jobs in self._line.items():
            for candidate, volume in jobs.items():
                if self._has_room(volume):
                    self._admitted[candidate] = volume
                    self._leave_line(candidate)
                    if owner in self._line:  # the others' turn is before his next one
                        self._line[owner] = self._line.pop(owner)
                    return candidate
        return None

    def _has_room(self, volume: Volume) -> bool:
        of_claim = [
            admitted
            for admitted in self._admitted.values()
            if (admitted.namespace, admitted.claim_uid) == (volume.namespace, volume.claim_uid)
        ]
        of_folder = [admitted for admitted in of_claim if admitted.sub_path == volume.sub_path]
        return (
            len(self._admitted) < MAX_COURIERS
            and len(of_claim) < (MAX_OF_CLAIM if volume.is_shared else 1)
            and len(of_folder) < MAX_OF_FOLDER
        )

    def _leave_line(self, job: str) -> None:
        for owner, jobs in self._line.items():
            if jobs.pop(job, None) is not None:
                if not jobs:
                    del self._line[owner]
                return
