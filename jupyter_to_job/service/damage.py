"""Finds the jobs whose record is damaged, and mends what can be mended. `doctor` uses it."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from job_runner.protocol import layout, liveness
from job_runner.protocol.documents import NewerVersion

from ..domain.errors import Damaged, NotFound, Unavailable
from ..domain.names import is_job_name
from ..exchange import FileExchange
from ..exchange.pieces import reading, writing
from ..exchange.records import ClearedRecord, DeliveryRecord, HeldRecord, PublishedRecord, Wish

SET_ASIDE = ".damaged"
"""The end of a document's name once another is to be written in its place."""
UPDATE_THIS = "A newer Jupyter to Job wrote it: update this one."
"""What to do about a document that is sound, and of a version that this code does not know."""
_RECORDS = {
    layout.CANCEL: Wish,
    layout.PUBLISHED: PublishedRecord,
    layout.DELIVERY: DeliveryRecord,
    layout.HELD: HeldRecord,
    layout.CLEARED: ClearedRecord,
}


@dataclass(frozen=True)
class Damage:
    """A document of a job that cannot be read, and what `mend` does about it.

    `mend` is None where nothing should be changed: the document may be sound.
    """

    job: str
    message: str
    remedy: str
    mend: Callable[[], None] | None = field(repr=False)


def find_damage(exchange: FileExchange) -> Iterator[Damage]:
    """Yield what is damaged in the jobs of an exchange."""
    for name in sorted(exchange.jobs()):
        with contextlib.suppress(NotFound):  # removed meanwhile
            yield from _damage_of(exchange, name)


def _damage_of(exchange: FileExchange, name: str) -> Iterator[Damage]:
    try:
        exchange.request(name)
    except Damaged as error:
        yield _sound(name, error) or _damaged_request(exchange, name, error)
        return
    try:
        directory = exchange.directory(name)
        with reading(name):
            numbers = layout.attempts(directory)
    except Damaged as error:
        yield _sound(name, error) or _deletion(exchange, name, error)
        return
    for number in numbers:
        try:
            exchange.outcome(name, number)
        except Damaged as error:
            path = layout.attempt_dir(directory, number) / layout.OUTCOME
            remedy = "Write it anew from the journal."
            damage = Damage(name, error.message, remedy, partial(_finish_anew, directory, path))
            yield _sound(name, error) or damage
    for record, cls in _RECORDS.items():
        try:
            exchange.record(name, record, cls)
        except Damaged as error:
            remedy = "Put it aside. A result that was delivered is left alone."
            damage = Damage(name, error.message, remedy, partial(_set_aside, directory / record))
            yield _sound(name, error) or damage


def _sound(name: str, error: Damaged) -> Damage | None:
    """Return what is to be said of a document that may be sound, and that nobody should change."""
    if isinstance(error.__cause__, NewerVersion):
        return Damage(name, error.message, UPDATE_THIS, None)
    if isinstance(error.__cause__, OSError):
        return Damage(
            name, error.message, "See why it cannot be read: the disk, or its mode?", None
        )
    return None


def _damaged_request(exchange: FileExchange, name: str, error: Damaged) -> Damage:
    """Return the damage of a request: a directory that was moved gets its name back."""
    with contextlib.suppress(Damaged):
        recorded = (exchange.document(name, layout.REQUEST) or {}).get("name")
        if isinstance(recorded, str) and recorded != name and is_job_name(recorded):
            source, target = exchange.root / name, exchange.root / recorded
            if not target.exists():
                return Damage(
                    name,
                    error.message,
                    f"Call it {recorded} again.",
                    partial(_move, source, target),
                )
    return _deletion(exchange, name, error)


def _deletion(exchange: FileExchange, name: str, error: Damaged) -> Damage:
    with contextlib.suppress(OSError, NotFound, Damaged):
        directory = exchange.directory(name)
        if any(liveness.is_alive(directory / f"attempt-{n}") for n in layout.attempts(directory)):
            return Damage(name, error.message, "It runs: mend it when it has ended.", None)
    remedy = f"Delete {name} with all that is left of it."
    return Damage(name, error.message, remedy, partial(exchange.remove, name))


def _move(source: Path, target: Path) -> None:
    with writing(source.name):
        source.rename(target)


def _finish_anew(directory: Path, outcome: Path) -> None:
    """Have the runner write the outcome of an attempt once more, from its journal."""
    _set_aside(outcome)
    command = [sys.executable, "-m", "job_runner", "finish", str(directory)]
    finished = subprocess.run(command, capture_output=True, text=True, cwd="/", check=False)
    if finished.returncode != 0:
        raise Unavailable(
            f"{directory.name} cannot be finished: {finished.stderr.strip()[-200:]}",
            "See that its folder is there and yours, then try again.",
        )


def _set_aside(path: Path) -> None:
    """Keep a damaged document under another name, so that a sound one can be written."""
    target = path.with_name(f"{path.name}{SET_ASIDE}")
    with writing(path.name):
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        path.replace(target)
