"""Couriers whose Job Kueue suspends: they wait their turn, and then have their time to start."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_to_job.backends.kubernetes import JobRecord

from ..courier_scene import UNSCHEDULED, WAITING, Scene


def begin(folder: Path) -> tuple[Scene, JobRecord, JobRecord]:
    """Start a courier; return the scene, and its Job as it is and as Kueue holds it."""
    scene = Scene(folder)
    scene.add()
    scene.look()
    record = scene.cluster.records["courier-1"]
    return scene, record, replace(record, suspended=True, queue="default")


def test_one_that_kueue_holds_keeps_its_place_and_starts_when_it_is_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its release and its pod its Job has none, as one whose pod is not created."""
    scene, record, held_back = begin(tmp_path)
    clock = time.monotonic()
    for seconds, job in ((1, held_back), (61, held_back), (590, record), (640, record)):
        monkeypatch.setattr(time, "monotonic", lambda now=clock + seconds: now)
        scene.cluster.records["courier-1"] = job
        scene.look()
        assert list(scene.cluster.records) == ["courier-1"]
    held = scene.held()
    assert held is not None and "the queue 'default' of Kueue" in held.message
    scene.cluster.pod_records["pod-1"] = WAITING
    monkeypatch.setattr(time, "monotonic", lambda: clock + 1180)
    scene.look()
    assert list(scene.cluster.records) == ["courier-1"]
    monkeypatch.setattr(time, "monotonic", lambda: clock + 1190)
    scene.look()
    assert not scene.cluster.records


def test_one_whose_place_is_taken_away_has_its_time_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kueue takes back a pod that does not start: one for which there is no room, for ever."""
    scene, record, held_back = begin(tmp_path)
    clock = time.monotonic()

    def look(seconds: float, *, is_suspended: bool) -> bool:
        monkeypatch.setattr(time, "monotonic", lambda: clock + seconds)
        scene.cluster.records["courier-1"] = held_back if is_suspended else record
        scene.cluster.pod_records.clear()
        if not is_suspended:
            scene.cluster.pod_records["pod-1"] = UNSCHEDULED
        scene.look()
        return bool(scene.cluster.records)

    assert look(1, is_suspended=True)
    for seconds in (100, 300, 500):
        assert look(seconds, is_suspended=False)
        assert look(seconds + 100, is_suspended=True)
    assert look(699, is_suspended=False)
    assert not look(700, is_suspended=False)
