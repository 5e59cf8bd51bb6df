"""Damaged, cut and missing files: their job says so, and everybody else goes on."""

from __future__ import annotations

import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from job_runner.protocol import layout
from job_runner.protocol.journal.journal import read_journal

from .. import notebooks
from ..unit.victim_scene import CASES, WAITING, VictimScene, is_of_another_owner
from .evidence import LOST, SUCCEEDED, look
from .moments import draw
from .scene import LINES, Scene
from .test_killed import CHARACTERS

FLIPS = 667
"""Of each kind of document, in one scenario: 6,700 in CI's two, 100,000 in the soak's thirty."""


def flip(path: Path, rng: random.Random) -> None:
    """Turn one bit of a file."""
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def cut(path: Path, rng: random.Random) -> None:
    """Keep a file's beginning only."""
    data = path.read_bytes()
    path.write_bytes(data[: rng.randrange(len(data))])


def garble(path: Path, rng: random.Random) -> None:
    """Replace a file's content by noise."""
    path.write_bytes(rng.randbytes(100))


def of_another_kind(path: Path, rng: random.Random) -> None:
    """Keep it readable, and change what it is."""
    path.write_text(rng.choice(["[]", "null", '{"v": 1}', '{"v": 99}', '"text"']))


def missing(path: Path, rng: random.Random) -> None:
    """Remove it."""
    path.unlink()


def a_folder(path: Path, rng: random.Random) -> None:
    """Put a folder in its place."""
    path.unlink()
    path.mkdir()


Damage = Callable[[Path, random.Random], None]
DAMAGES: list[Damage] = [flip, cut, garble, of_another_kind, missing, a_folder]


def test_a_damaged_journal(
    scene: Scene, rng: random.Random, met: Counter[str], tmp_path: Path
) -> None:
    """What is whole in it is delivered, in order; a loss inside is marked."""
    gate = tmp_path / "gate"
    victim, _ = scene.submit(2, pause=0.15, gate=gate)
    draw(rng, ["printing"], CHARACTERS // 2).wait(scene.directory(victim), scene.cli.workspace)
    damage = rng.choice([flip, flip, cut])
    with scene.witness.hold():
        scene.kill_all(["dispatcher", "runner", "kernel"])
        damage(scene.directory(victim) / "attempt-1" / layout.JOURNAL / "00000001.jsonl", rng)
        seen = look(scene.directory(victim))
        for name in scene.names:
            ended = scene.look(name).ended
            scene.expect([name], *({ended} if ended else {LOST, SUCCEEDED}))
    gate.touch()
    jobs = scene.cli.json("wait", *scene.names, code=1)
    job = next(job for job in jobs if job["name"] == victim)
    assert (job["state"], job["reason"]) in scene.endings[victim]
    scene.witness.stop()
    assert scene.witness.untruths == []
    text = notebooks.printed(scene.cli.result(job))
    assert _numbers(text) == _numbers(seen.printed)
    # A torn last line is one inside as soon as another segment follows: the one that says Lost.
    marked = any(record["k"] == "damaged" for record in scene.look(victim).records)
    met[f"{damage.__name__}, {'marked' if marked else 'between lines'}"] += 1
    assert marked == ("damaged" in scene.cli.result(job).read_text())
    assert marked == ("damaged" in scene.cli.run("logs", victim).stdout)


def _numbers(text: str) -> list[int]:
    return [int(c) * LINES + int(n) for c, n in re.findall(r"<(\d+)\.(\d+)>", text)]


def test_a_damaged_document(scene: Scene, rng: random.Random, met: Counter[str]) -> None:
    """Any document of an ended or of a running job: who lists and dispatches goes on."""
    (ended,) = scene.submit(1, pause=0)
    (running,) = scene.submit(1, stem="running", pause=0.5)
    scene.cli.run("wait", ended)
    draw(rng, ["kernel", "printing"], 1).wait(scene.directory(running), scene.cli.workspace)
    victim, damage = rng.choice([ended, running]), rng.choice(DAMAGES)
    with scene.witness.hold():
        scene.kill_all(["dispatcher", "runner", "kernel"])
        there = [p for p in scene.directory(victim).rglob("*.json*") if p.is_file()]
        path = rng.choice(sorted([*there, scene.directory(victim) / layout.SNAPSHOT]))
        sockets = scene.look(victim).sockets
        damage(path, rng)
    met[path.name] += 1
    before = len(scene.cli.results(ended))
    listed = scene.cli.run("list", "--all")
    assert listed.returncode == 0, (path, damage.__name__, listed.stderr)
    other = running if victim == ended else ended
    assert other in listed.stdout
    assert "Traceback" not in listed.stderr + scene.cli.run("show", victim).stderr
    (later,) = scene.submit(1, stem="later")
    for name in (later, other):
        waited = scene.cli.run("wait", name)
        assert waited.returncode == (1 if name == running else 0), (path, damage, waited.stderr)
    assert len(scene.cli.results(ended)) == before == 1
    scene.witness.stop()
    # A job that is told as damaged counts as failed, however it had ended. How it had ended is no
    # more known once its outcome is damaged.
    is_told = scene.cli.json("show", victim)["reason"] == "Damaged" or path.name == layout.OUTCOME
    changed = f"{victim} was succeeded, and list says failed"
    assert [each for each in scene.witness.untruths if not is_told or each != changed] == []
    scene.kill_all(["dispatcher", "runner", "kernel"])
    shutil.rmtree(scene.directory(victim))  # nobody could tidy up after a job that is not readable
    shutil.rmtree(str(sockets), ignore_errors=True)


@pytest.mark.parametrize("case", CASES)
def test_flipped_bits(
    tmp_path: Path,
    case: str,
    rng: random.Random,
    met: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Any bit of any document: its job is listed, and everybody else's waits and starts."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    has_come_to, name = CASES[case]
    scene = VictimScene(tmp_path, has_come_to)
    path = scene.victim / name
    sound = path.read_bytes()
    for number in range(FLIPS):
        path.write_bytes(sound)
        flip(path, rng)
        flipped = path.read_bytes()
        scene.replace(name, flipped)
        victim = scene.check()
        assert victim is not None or is_of_another_owner(flipped), flipped
        met[str(victim and (victim.reason or victim.state.value))] += 1
        if number % 50 == 0:
            assert WAITING in scene.dispatch(monkeypatch), flipped
            scene.use()


def test_an_outcome_that_got_lost(scene: Scene, rng: random.Random, met: Counter[str]) -> None:
    """The host died before the delivery was recorded, before the outcome, or before the result."""
    names = scene.submit(2)
    assert scene.cli.run("wait", *names).returncode == 0
    scene.witness.stop()
    scene.kill_all(["dispatcher"])
    for name in names:
        written = [layout.DELIVERY, "attempt-1/outcome.json", "attempt-1/result.ipynb"]
        gone = written[: rng.randint(1, 3)]
        for path in gone:
            (scene.directory(name) / path).unlink()
        met[gone[-1]] += 1
    scene.settle()


def test_a_directory_that_is_no_job(scene: Scene, rng: random.Random, met: Counter[str]) -> None:
    """Whatever lies about in the exchange, named like a job or not."""
    scene.cli.exchange.mkdir()
    for name in ("empty-abcd2345", "half-abcd2346", "notes", ".hidden"):
        (scene.cli.exchange / name).mkdir()
    (scene.cli.exchange / "half-abcd2346" / "request.json").write_bytes(rng.randbytes(50))
    (scene.cli.exchange / "file-abcd2347").touch()
    (scene.cli.exchange / "loop-abcd2342").symlink_to("loop-abcd2342")
    names = scene.submit(2)
    scene.settle()
    for name in names:
        shutil.rmtree(scene.directory(name))
    assert scene.cli.run("list").returncode == 0
    assert list(read_journal(scene.directory(names[0]) / "attempt-1" / "journal")) == []
