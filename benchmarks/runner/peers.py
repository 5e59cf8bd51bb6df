"""Who is measured: our runner and the three usual ways to execute a notebook, by their commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

_SCRIPTS = Path(sys.executable).parent
RUNNER = [sys.executable, "-m", "job_runner"]
RESULT = "out.ipynb"


@dataclass(frozen=True)
class Peer:
    """`command` takes the notebook's name; all run in its folder and write `RESULT` there."""

    name: str
    command: Callable[[str], list[str]]
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def is_ours(self) -> bool:
        return self.command is _run

    def finish(self, folder: Path) -> list[str] | None:
        """Return the command that takes up what a killed run has left, if there is one."""
        left = folder / f".{RESULT}.job"
        return [*RUNNER, "finish", str(left)] if self.is_ours and left.exists() else None


def _run(source: str) -> list[str]:
    return [*RUNNER, "run", "--input", source, "--output", RESULT]


OURS = Peer("ours", _run)
PAPERMILL = Peer("papermill", lambda source: [str(_SCRIPTS / "papermill"), source, RESULT])
EXECUTE = Peer(
    "execute", lambda source: [str(_SCRIPTS / "jupyter-execute"), source, "--output", RESULT]
)
NBCONVERT = Peer(
    "nbconvert",
    lambda source: [
        str(_SCRIPTS / "jupyter-nbconvert"),
        *("--to", "notebook", "--execute", source, "--output", RESULT),
    ],
)
PEERS = {peer.name: peer for peer in (OURS, PAPERMILL, EXECUTE, NBCONVERT)}


def base(checkout: Path) -> Peer:
    """Return our runner as it is in another checkout, to be measured beside this one."""
    if not (checkout / "job_runner" / "__main__.py").is_file():
        raise ValueError(f"{checkout} holds no job_runner")
    return Peer("base", _run, {"PYTHONPATH": str(checkout.absolute())})
