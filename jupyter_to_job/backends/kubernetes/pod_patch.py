"""The administrator's patch of job pods: merged last, and then what it must not touch is checked.

A patch may add to the pod. It may not take away what keeps a job apart from others, what the
controller knows its pods by, or what a user was told.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ...domain.errors import BadInput
from .mounts import absolute
from .records import AGENT, NOTEBOOK, PREFIX, Manifest
from .strategic_merge import merge

MAX_BYTES = 1 << 20
_TOP = frozenset(["metadata", "spec"])
_KEPT_OF_POD = (
    "restartPolicy",
    "automountServiceAccountToken",
    "enableServiceLinks",
    "terminationGracePeriodSeconds",
    "activeDeadlineSeconds",
)
"""Fields of the pod that stay as they are."""
_NEVER = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "ephemeralContainers")
"""Fields with which a notebook could reach what is not its own, such as its agent's token."""
_KEPT_OF_CONTAINERS = {
    AGENT: ("image", "command", "args", "restartPolicy", "securityContext"),
    NOTEBOOK: ("image", "command", "args", "resources", "securityContext"),
}
_log = logging.getLogger(__name__)


def read_patch(data: bytes, name: str) -> Manifest:
    """Read a patch from a file's content; messages call it `name`. Raises BadInput."""
    import yaml  # only where there is a patch

    if len(data) > MAX_BYTES:
        raise BadInput(f"{name} is too large for a pod patch.", f"At most {MAX_BYTES} bytes.")
    try:
        document = yaml.safe_load(data)
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # ValueError: an impossible date
        raise BadInput(f"{name} is no YAML: {error}") from error
    document = {} if document is None else document
    if not isinstance(document, dict) or not document.keys() <= _TOP:
        raise BadInput(f"{name} is no pod patch.", "Its keys may be `metadata` and `spec`.")
    return document


def mount_paths(patch: Manifest) -> frozenset[str]:
    """Return where a patch in force mounts something in the notebook's container, or forbids it.

    Two volumes at one path would be merged into one that is neither.
    """
    containers = (patch.get("spec") or {}).get("containers") or []
    mounts = (c.get("volumeMounts") or [] for c in containers if c["name"] == NOTEBOOK)
    return frozenset(absolute(mount["mountPath"]) for entries in mounts for mount in entries)


def patched(template: Manifest, patch: Manifest) -> Manifest:
    """Return the template of a job's pod with the patch. Raises BadInput if it must not be so."""
    if not patch:
        return template
    try:
        result = merge(template, patch)
        faults = list(_faults(template, result))
    except (AttributeError, TypeError, KeyError) as error:
        raise BadInput(f"The pod patch does not have the form of a pod: {error}.") from error
    if faults:
        raise BadInput(
            f"The pod patch may not change {', '.join(faults)}.",
            "The administrator mends the file of JUPYTER_TO_JOB_POD_PATCH.",
        )
    return result


def _faults(template: Manifest, patched: Manifest) -> Iterator[str]:
    """Yield what a patch changed that has to stay."""
    for kind in ("labels", "annotations"):
        theirs = patched.get("metadata", {}).get(kind) or {}
        if _ours(template["metadata"][kind]) != _ours(theirs):
            yield f"{kind} of {PREFIX}"
    if patched.get("metadata", {}).keys() - {"labels", "annotations"}:
        yield "metadata other than labels and annotations"
    old, new = template["spec"], patched.get("spec", {})
    yield from (field for field in _KEPT_OF_POD if old.get(field) != new.get(field))
    yield from (field for field in _NEVER if new.get(field))
    if not _keeps(old["securityContext"], new.get("securityContext")):
        yield "securityContext"
    for kind in ("initContainers", "containers"):
        yield from _container_faults(kind, old[kind], new.get(kind) or [])
    yield from _volume_faults(old["volumes"], new)


def _container_faults(
    kind: str, originals: list[Manifest], patched: list[Manifest]
) -> Iterator[str]:
    ours = [c["name"] for c in originals]
    names = [c["name"] for c in patched]
    if names[: len(ours)] != ours:
        yield f"{kind}: {', '.join(ours)} must be first"
        return
    if kind == "containers" and names != ours:
        yield "containers: the job would not end (a sidecar goes to initContainers)"
    by_name = {c["name"]: c for c in patched}
    for container in originals:
        name = container["name"]
        new = by_name[name]
        for field in _KEPT_OF_CONTAINERS[name]:
            if container.get(field) != new.get(field):
                yield f"{field} of the container {name}"
        for field in ("env", "volumeMounts"):
            theirs = new.get(field) or []
            if any(entry not in theirs for entry in container[field] if _is_kept(entry)):
                yield f"{field} of the container {name} that the job needs"


def _is_kept(entry: Manifest) -> bool:
    """Tell whether an entry is more than a variable of the dev pod or of the catalog."""
    name = str(entry["name"])
    return "mountPath" in entry or name == "POD_UID" or name.startswith("JUPYTER_TO_JOB_")


def _volume_faults(originals: list[Manifest], spec: Manifest) -> Iterator[str]:
    patched = spec.get("volumes") or []
    for volume in originals:
        if volume not in patched:
            yield f"the volume {volume['name']}"
    tokens = {v["name"] for v in patched if _has_our_token(v)}
    for container in [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]:
        mounted = {mount.get("name") for mount in container.get("volumeMounts") or []}
        if container["name"] != AGENT and tokens & mounted:
            yield f"the token of the agent, which would be in the container {container['name']}"


def _has_our_token(volume: Manifest) -> bool:
    sources = (volume.get("projected") or {}).get("sources") or []
    tokens = [source.get("serviceAccountToken") or {} for source in sources]
    return any(token.get("audience") == "jupyter-to-job" for token in tokens)


def _ours(values: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in values.items() if key.startswith(f"{PREFIX}/")}


def _keeps(original: Any, patched: Any) -> bool:
    """Tell whether a mapping still has all that it had."""
    return isinstance(patched, dict) and original.items() <= patched.items()


class PodPatchFile:
    """The patch in force: follows changes of its file, and keeps the last good one.

    A patch is tried on `template`; `check` raises BadInput if no pod can be made of the result.
    `problem` is the error of the file as it is now, logged once per change. Threads may share it.
    """

    def __init__(
        self, path: str, template: Manifest, check: Callable[[Manifest], object] = dict
    ) -> None:
        self.problem: BadInput | None = None
        self._path = Path(path)
        self._template = template
        self._check = check
        self._data: bytes | None = None
        self._good: Manifest | None = None
        self._lock = threading.Lock()

    def current(self) -> Manifest:
        """Return the patch in force. Raises BadInput if no good one was ever read."""
        with self._lock:
            try:
                self._load()
            except BadInput as error:
                if str(error) != str(self.problem) and self._good is not None:
                    _log.warning("The last good pod patch stays in force. %s", error)
                self.problem = error
            if self._good is None:
                assert self.problem is not None
                raise self.problem.with_traceback(None)
            return self._good

    def _load(self) -> None:
        """Read the file; if it changed, check it with a pod and put it in force."""
        try:
            with self._path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except OSError as error:
            self._data = None  # it is checked anew when it is back
            raise BadInput(
                f"The pod patch {self._path} cannot be read: {error.strerror}."
            ) from error
        if data != self._data:
            self._data = data
            patch = read_patch(data, str(self._path))
            self._check(patched(self._template, patch))
            self._good, self.problem = patch, None
            _log.info("The pod patch %s is in force.", self._path)
