"""What a user should know of their dev pod before a submission: what a job does not get of it.

Codes are stable: `runs_as_root` blocks, since such a job could not start, and `image_unpinned`
where the administrator does not allow it. `user_unknown`, `variables_dropped` and `volume_left` do
not.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...backends.kubernetes.mounts import MountPlan
from ...backends.kubernetes.records import Manifest
from ...domain.errors import Refused
from ...domain.preflight import Problem
from ...flavors.catalog import Choice
from .identity import DevPod

_SET_USER = "The administrator sets runAsUser of dev pods (KubeSpawner: `uid`)."
MAX_NAMES = 10
"""Variables that one message names."""


def dev_pod_problems(caller: DevPod, choice: Choice, plan: MountPlan) -> Iterator[Problem]:
    """Yield what a dev pod has, and a job of it with this choice would not."""
    origin = caller.origin
    try:
        require_user(origin)
    except Refused as error:
        yield Problem("runs_as_root", error.message, error.hint)
    context = origin.get("security_context") or {}
    if "runAsUser" not in context:
        message = (
            "Which user your pod runs as is not known for certain, so the job's image decides."
            " It has to name its user as a number, and the same one as the controller's image,"
            " which is 1000 as shipped. Otherwise the job fails as it starts."
        )
        yield Problem("user_unknown", message, _SET_USER, blocking=False)
    if _is_unpinned(origin, choice):
        try:
            require_image(caller, choice)
        except Refused as error:
            yield Problem("image_unpinned", error.message, error.hint)
        else:
            message = f"{_unknown_build(origin)} The job runs what that name means by then."
            hint = "Restart your server if the image was renewed."
            yield Problem("image_unpinned", message, hint, blocking=False)
    if dropped := origin.get("env_dropped"):
        more = f" and {len(dropped) - MAX_NAMES} more" if len(dropped) > MAX_NAMES else ""
        message = (
            f"Variables of your pod do not come along: {', '.join(dropped[:MAX_NAMES])}{more}."
        )
        hint = (
            "Set what the notebook needs as an environment variable of the job,"
            " or ask the administrator to let it along."
        )
        yield Problem("variables_dropped", message, hint, blocking=False)
    for mount in plan.left_behind:
        if mount.is_told:
            yield Problem("volume_left", f"{mount}", _ADVICE, blocking=False)


_ADVICE = "Send the files that the notebook needs from there as inputs."


def require_user(origin: Manifest) -> None:
    """Raise Refused for a dev pod that runs as root: a job's pod may not."""
    if (origin.get("security_context") or {}).get("runAsUser") == 0:
        raise Refused("Your pod runs as root (runAsUser 0), and jobs never do.", _SET_USER)


def require_image(caller: DevPod, choice: Choice) -> None:
    """Raise Refused where a job would run the dev pod's image, and might get another build of it.

    The name of an image may mean another one by now. Its digest is known for all images that came
    from a registry.
    """
    if _is_unpinned(caller.origin, choice) and not caller.unpinned_images:
        raise Refused(
            f"{_unknown_build(caller.origin)} A job might run another one.",
            "Choose a flavor or a device with an image of its own, or ask your administrator: an "
            "image from a registry has a digest, and JUPYTER_TO_JOB_UNPINNED_IMAGES allows others.",
        )


def _is_unpinned(origin: Manifest, choice: Choice) -> bool:
    has_own = choice.device.image is not None or choice.flavor.image is not None
    return not has_own and origin.get("image_pinned") is False


def _unknown_build(origin: Manifest) -> str:
    return f"Which build of {origin['image']} your pod runs is not known to the cluster."
