"""The result of checking a submission before it is sent: the answer of `POST preflight`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .known_fields import known_fields
from .wait import JobWait


@dataclass(frozen=True)
class Problem:
    """A problem of a submission. `code` is stable.

    `blocking`: it would be refused, or recorded and not run.
    """

    code: str
    message: str
    hint: str = ""
    blocking: bool = True


@dataclass(frozen=True)
class Parameter:
    """A parameter of the notebook.

    `default` is source text, and `value` what that stands for: None if it is no literal.
    """

    name: str
    type: str | None
    default: str | None
    value: Any
    help: str | None


@dataclass(frozen=True)
class PlannedInput:
    """A file that would be sent: its workspace path and its bytes."""

    path: str
    size: int


@dataclass(frozen=True)
class SuggestedInput:
    """A file, or a package's folder, that the notebook's own code names: `why` is that code."""

    path: str
    size: int
    why: str


@dataclass(frozen=True)
class JobImage:
    """The image that a job would run in, and what is known of its kernels.

    `is_own`: it is the one of the submitter's own container. `kernels` and `missing_kernels` are
    those that earlier runs of the same owner found there, and did not find.
    """

    name: str
    is_own: bool
    kernels: tuple[str, ...] = ()
    missing_kernels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Preflight:
    """The whole answer.

    `input_cap` is how many bytes the inputs may be in all, None without a limit; `ignored` how many
    entries `.jobignore` left out of them; `kernel` what the notebook names. `isolated`: the run
    would happen in a scratch copy of the inputs. `mounts` are the folders that the run would see at
    the same place, where that is the backend's choice and not this machine's. `image` is None where
    jobs run in no image. `plan` is what all this depends on, in a form that a submission sends
    back; None where it cannot be said. `wait` is what the job would wait for, None if it is
    refused. `results` is the folder where the result goes by the settings if no other place is
    asked for; None: beside the notebook.
    """

    problems: tuple[Problem, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    inputs: tuple[PlannedInput, ...] = ()
    suggested: tuple[SuggestedInput, ...] = ()
    input_cap: int | None = None
    ignored: int = 0
    kernel: str | None = None
    isolated: bool = False
    mounts: tuple[str, ...] = ()
    image: JobImage | None = None
    plan: dict[str, str] | None = None
    wait: JobWait | None = None
    results: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        document = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}
        return {**document, "wait": None if self.wait is None else self.wait.to_json()}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Preflight:
        """Read a gateway's answer: the fields that need no workspace.

        Those of a newer version are ignored.
        """
        image, wait = document.get("image"), document.get("wait")
        return cls(
            tuple(Problem(**known_fields(Problem, p)) for p in document["problems"]),
            isolated=document["isolated"],
            mounts=tuple(document["mounts"]),
            image=None if image is None else _image(image),
            plan=document.get("plan"),  # an older gateway has none
            wait=None if wait is None else JobWait.from_json(wait),
        )


def _image(document: dict[str, Any]) -> JobImage:
    names = {key: tuple(document[key]) for key in ("kernels", "missing_kernels")}
    return JobImage(document["name"], document["is_own"], **names)
