"""What a user should know of their dev pod before a submission: what a job does not get of it.

Codes are stable: `runs_as_root` blocks, since such a job could not start. `user_unknown`,
`image_unpinned`, `variables_dropped` and `volume_left` do not.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...backends.kubernetes.mounts import MountPlan
from ...backends.kubernetes.records import Manifest
from ...domain.errors import Refused
from ...domain.preflight import Problem

_SET_USER = "The administrator sets runAsUser of dev pods (KubeSpawner: `uid`)."
MAX_NAMES = 10
"""Variables that one message names."""


def dev_pod_problems(origin: Manifest, plan: MountPlan, image: str | None) -> Iterator[Problem]:
    """Yield what the dev pod that `origin` describes has, and a job of it would not.

    `image` is the catalog's for this choice, None where the job runs in the dev pod's.
    """
    try:
        require_user(origin)
    except Refused as error:
        yield Problem("runs_as_root", error.message, error.hint)
    context = origin.get("security_context") or {}
    if "runAsUser" not in context:
        message = (
            "Your pod does not say which user it runs as, so the image decides."
            " A job whose image names none, or root, or a user by name, does not start."
        )
        yield Problem("user_unknown", message, _SET_USER, blocking=False)
    if image is None and origin.get("image_pinned") is False:
        message = (
            f"Which build of {origin['image']} your pod runs is not known to the cluster."
            " If that name has moved to another one meanwhile, the job runs the other one."
        )
        hint = "Restart your server if the image was renewed, or name it by its digest."
        yield Problem("image_unpinned", message, hint, blocking=False)
    if dropped := origin.get("env_dropped"):
        more = f" and {len(dropped) - MAX_NAMES} more" if len(dropped) > MAX_NAMES else ""
        message = (
            f"Variables of your pod do not come along: {', '.join(dropped[:MAX_NAMES])}{more}."
        )
        hint = "Set what the notebook needs with `-e`, or ask the administrator to let it along."
        yield Problem("variables_dropped", message, hint, blocking=False)
    for mount in plan.left:
        if mount.is_told:
            yield Problem("volume_left", f"{mount}", _ADVICE, blocking=False)


_ADVICE = "Send the files that the notebook needs from there as inputs."


def require_user(origin: Manifest) -> None:
    """Raise Refused for a dev pod that runs as root: a job's pod may not."""
    if (origin.get("security_context") or {}).get("runAsUser") == 0:
        raise Refused("Your pod runs as root (runAsUser 0), and jobs never do.", _SET_USER)
