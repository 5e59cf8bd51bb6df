"""Signs of life of other hosts, and the lock that a dispatcher gets from whoever starts it."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from jupyter_to_job.backends.local import hosts
from jupyter_to_job.backends.local.hosts import HostStatus, HostWatch


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic clock, as a list of one number."""
    now = [1000.0]
    fake = SimpleNamespace(monotonic=lambda: now[0], time=time.time, sleep=time.sleep)
    monkeypatch.setattr("jupyter_to_job.backends.local.hosts.time", fake)
    return now


def beat(root: Path, host: str, ago: float = 0.0) -> None:
    descriptor = hosts.take_lock(root, host)
    assert descriptor is not None
    sign = time.time() - ago
    os.utime(descriptor, (sign, sign))
    os.close(descriptor)


def test_who_holds_the_lock_is_there(tmp_path: Path, clock: list[float]) -> None:
    watch, lock = HostWatch(tmp_path), hosts.take_lock(tmp_path, "other")
    assert lock is not None
    clock[0] += 1e6
    assert watch.status_of("other") is HostStatus.SERVED
    assert hosts.has_dispatcher(tmp_path, "other")
    assert hosts.take_lock(tmp_path, "other") is None
    os.close(lock)
    assert not hosts.has_dispatcher(tmp_path, "other")


def test_a_free_lock_that_is_touched_is_no_silence(tmp_path: Path, clock: list[float]) -> None:
    watch = HostWatch(tmp_path)
    beat(tmp_path, "other", ago=50)
    assert watch.status_of("other") is HostStatus.UNKNOWN
    for ago in range(49, 0, -1):
        clock[0] += 10
        beat(tmp_path, "other", ago=ago)
        assert watch.status_of("other") is HostStatus.SERVED
    clock[0] += 119
    assert watch.status_of("other") is HostStatus.UNKNOWN
    clock[0] += 1
    assert watch.status_of("other") is HostStatus.SILENT


def test_an_old_sign_of_life_is_watched_for_a_beat(tmp_path: Path, clock: list[float]) -> None:
    """Its age alone proves nothing: the clock there, or here, may be wrong."""
    watch = HostWatch(tmp_path)
    beat(tmp_path, "other", ago=5000)
    assert watch.status_of("other") is HostStatus.UNKNOWN
    clock[0] += 10
    beat(tmp_path, "other", ago=4990)
    assert watch.status_of("other") is HostStatus.SERVED
    clock[0] += 14
    assert watch.status_of("other") is HostStatus.SERVED
    clock[0] += 1
    assert watch.status_of("other") is HostStatus.SILENT


def test_a_host_that_never_was_is_silent_by_and_by(tmp_path: Path, clock: list[float]) -> None:
    watch = HostWatch(tmp_path, silence=30)
    assert watch.status_of("other") is HostStatus.UNKNOWN
    clock[0] += 30
    assert watch.status_of("other") is HostStatus.SILENT


def test_who_only_looks_keeps_nobody_out(tmp_path: Path) -> None:
    lock = hosts.take_lock(tmp_path, "me")
    assert lock is not None
    os.close(lock)
    looking = os.open(hosts.lock_path(tmp_path, "me"), os.O_RDWR)
    fcntl.flock(looking, fcntl.LOCK_SH)
    assert hosts.take_lock(tmp_path, "me") is None  # it never stops looking: bounded all the same
    os.close(looking)
    again = hosts.take_lock(tmp_path, "me")
    assert again is not None
    os.close(again)


@pytest.mark.parametrize("host", ["..", ".", "", "a/b", "n\u00f6de", "-x"])
def test_any_name_is_a_folder_of_its_own(tmp_path: Path, host: str) -> None:
    folder = hosts.host_folder(tmp_path, host)
    assert folder.parent == tmp_path / hosts.FOLDER
    assert folder.name not in ("", ".", "..") and "/" not in folder.name
