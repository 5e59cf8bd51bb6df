"""What a submission would meet, found out before it is sent: the answer of `POST preflight`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Problem:
    """Something to know before sending. `code` is stable; `blocking`: it would be refused."""

    code: str
    message: str
    hint: str = ""
    blocking: bool = True


@dataclass(frozen=True)
class Parameter:
    """A parameter of the notebook: its default as source text, and what is said about it."""

    name: str
    type: str | None
    default: str | None
    help: str | None


@dataclass(frozen=True)
class PlannedInput:
    """A file that would go along, by workspace path, and its bytes."""

    path: str
    size: int


@dataclass(frozen=True)
class Preflight:
    """The whole answer.

    `isolated`: the run would happen in a scratch copy of the inputs. `mounts` are the folders that
    the run would see at the same place, where that is the backend's choice and not this machine's.
    """

    problems: tuple[Problem, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    inputs: tuple[PlannedInput, ...] = ()
    isolated: bool = False
    mounts: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Preflight:
        """Read one that crossed REST."""
        return cls(
            tuple(Problem(**p) for p in document["problems"]),
            tuple(Parameter(**p) for p in document["parameters"]),
            tuple(PlannedInput(**i) for i in document["inputs"]),
            document["isolated"],
            tuple(document["mounts"]),
        )
