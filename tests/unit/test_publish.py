"""Publishing: never over anything, whatever the file system offers, whoever is killed when."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import io
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import pytest

from jupyter_to_job.domain.errors import BadInput
from jupyter_to_job.workspace import CannotPublish, Published, Workspace, publish, resolve_output
from jupyter_to_job.workspace.publishing.drafts import (
    LEFTOVER_SECONDS,
    draft_file,
    draft_folder,
    remove_drafts,
)

from ..processes import until

NAME = "a-abcd2345"
LARGE = b"".join(b"%08d" % number for number in range(400_000))


def put(root: Path, data: bytes = b"one", output: str | None = None, **roots: Any) -> Published:
    return publish(Workspace(root, **roots), "a.ipynb", output, NAME, io.BytesIO(data))


def refuse(number: int) -> Callable[..., NoReturn]:
    def call(*_: object, **__: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    return call


@pytest.fixture(params=["links", "no links"])
def links(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "no links":
        without_links(monkeypatch)


def without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def link(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> NoReturn:
        # As Linux answers on vfat: a name that is taken is noticed first.
        taken = os.access(target, os.F_OK, dir_fd=dst_dir_fd, follow_symlinks=False)
        number = errno.EEXIST if taken else errno.EPERM
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", link)


@pytest.mark.usefixtures("links")
def test_once_and_never_over_anything(tmp_path: Path) -> None:
    assert put(tmp_path) == Published(f"{NAME}.ipynb", hashlib.sha256(b"one").hexdigest())
    assert put(tmp_path).path == f"{NAME}.ipynb"
    assert put(tmp_path, b"two").path == f"{NAME}-2.ipynb"
    assert put(tmp_path, b"two").path == f"{NAME}-2.ipynb"
    assert (tmp_path / f"{NAME}.ipynb").read_bytes() == b"one"
    assert len(list(tmp_path.iterdir())) == 2


def identity_of(path: Path) -> tuple[int, ...]:
    """Return what changes when somebody writes to a file; reading it changes none of it."""
    status = os.lstat(path)
    return status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@pytest.mark.usefixtures("links")
@pytest.mark.parametrize("kind", ["folder", "link", "dangling link", "beginning of it"])
def test_whatever_has_the_name_stays(tmp_path: Path, kind: str) -> None:
    there, elsewhere = tmp_path / f"{NAME}.ipynb", tmp_path / "elsewhere"
    if kind == "folder":
        there.mkdir()
    elif kind == "beginning of it":
        there.write_bytes(b"x")
    else:
        there.symlink_to(elsewhere)
        if kind == "link":
            elsewhere.write_bytes(b"one")
    before = identity_of(there)
    assert put(tmp_path).path == f"{NAME}-2.ipynb"
    assert identity_of(there) == before
    assert (tmp_path / f"{NAME}-2.ipynb").read_bytes() == b"one"
    assert elsewhere.exists() == (kind == "link")


def test_half_a_result_is_completed_where_there_are_no_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{NAME}.ipynb").write_bytes(LARGE[:1_500_000])
    assert put(tmp_path, LARGE).path == f"{NAME}-2.ipynb"  # links: then it is nobody's half result
    without_links(monkeypatch)
    assert put(tmp_path, LARGE).path == f"{NAME}.ipynb"
    assert (tmp_path / f"{NAME}.ipynb").read_bytes() == LARGE
    (tmp_path / "empty.ipynb").touch()  # killed right after it was made
    assert put(tmp_path, LARGE, "empty").path == "empty.ipynb"
    (tmp_path / "b.ipynb").write_bytes(LARGE[:1_500_000] + b"edited")
    assert put(tmp_path, LARGE, "b").path == "b-2.ipynb"


@pytest.mark.usefixtures("links")
def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", refuse(errno.ENOSPC))
    with pytest.raises(CannotPublish, match="No space"):
        put(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_is_somebodys(tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.ipynb").touch()
    assert put(tmp_path).path == f"{NAME}-2.ipynb"
    assert (tmp_path / f"{NAME}.ipynb").read_bytes() == b""


@pytest.mark.parametrize(
    ("output", "says"),
    [("gone/b.ipynb", "No such file"), ("file/b.ipynb", "Not a directory")],
)
def test_no_such_folder(tmp_path: Path, output: str, says: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotPublish, match=says):
        put(tmp_path, output=output)


def test_the_mode_is_the_users(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        (tmp_path / "a.ipynb").touch(0o666)
        put(tmp_path)
    finally:
        os.umask(mask)
    assert (tmp_path / f"{NAME}.ipynb").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("stem", ["x" * 249, "é" * 124, "{}%'\" \\", "\udcff"])
def test_any_name_that_fits(tmp_path: Path, stem: str) -> None:
    for number, data in enumerate([b"one", b"two"]):
        path = put(tmp_path, data, f"{stem}.ipynb").path
        assert path == f"{stem}.ipynb" if number == 0 else path.endswith("-2.ipynb")
    assert {p.read_bytes() for p in tmp_path.iterdir()} == {b"one", b"two"}


# Links out of the workspace -------------------------------------------------------------------


def test_only_listed_folders_are_reached_by_links(tmp_path: Path) -> None:
    root, outside = tmp_path / "workspace", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "out").symlink_to(outside)
    with pytest.raises(CannotPublish, match="out of the workspace"):
        put(root, output="out/b.ipynb")
    assert put(root, output="out/b.ipynb", roots=[outside]).path == "out/b.ipynb"
    assert (outside / "b.ipynb").read_bytes() == b"one"


def test_a_folder_that_becomes_a_link_out_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link is put there after the path was judged, and before the folder is opened."""
    root, outside = tmp_path / "workspace", tmp_path / "outside"
    (root / "dir" / "deep").mkdir(parents=True)
    (outside / "deep").mkdir(parents=True)
    judge = Workspace.real

    def judge_then_swap(workspace: Workspace, path: str) -> Path:
        real = judge(workspace, path)
        if path == "dir/deep":
            (root / "dir").rename(root / "was")
            (root / "dir").symlink_to(outside)
        return real

    monkeypatch.setattr(Workspace, "real", judge_then_swap)
    with pytest.raises(CannotPublish):
        publish(Workspace(root), "dir/deep/a.ipynb", None, NAME, io.BytesIO(b"one"))
    assert list((outside / "deep").iterdir()) == []


# More than one publisher, and killed ones -----------------------------------------------------


def test_many_at_once_publish_one(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4) as pool:
        found = {f.result().path for f in [pool.submit(put, tmp_path, LARGE) for _ in range(24)]}
    assert found == {f"{NAME}.ipynb"}
    assert [p.name for p in tmp_path.iterdir()] == [f"{NAME}.ipynb"]


def test_of_many_different_ones_each_gets_a_name(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4) as pool:
        several = [pool.submit(put, tmp_path, b"%d" % number) for number in range(12)]
        assert len({future.result().path for future in several}) == 12
    assert {p.read_bytes() for p in tmp_path.iterdir()} == {b"%d" % n for n in range(12)}


def test_drafts_are_swept_once_nobody_holds_them(tmp_path: Path) -> None:
    kept = tmp_path / ".jupyter-to-job-mine.tmp"
    kept.touch()
    folder = os.open(tmp_path, os.O_RDONLY)
    for number in range(2):
        lock = tmp_path / f".jupyter-to-job-{number:016}.tmp"
        lock.touch()
        if number:
            left = lock.with_name(f"{lock.name}.d")
            (left / "below").mkdir(parents=True)
            (left / "below" / "file").touch()
            (left / "link").symlink_to(kept)
    for age, number in ((0, 2), (2 * LEFTOVER_SECONDS, 3)):  # folders of an earlier version
        earlier = tmp_path / f".jupyter-to-job-{number:016}.tmp"
        (earlier / "below").mkdir(parents=True)
        os.utime(earlier, (time.time() - age,) * 2)
    young = f".jupyter-to-job-{2:016}.tmp"
    with draft_file(folder) as (file, _), draft_folder(folder) as (made, _):
        remove_drafts(folder)
        names = {file, made, made.removesuffix(".d"), kept.name, young}
        assert {p.name for p in tmp_path.iterdir()} == names
    assert {p.name for p in tmp_path.iterdir()} == {kept.name, young}
    os.close(folder)


def test_nobody_begins_with_a_draft_that_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its maker may not have locked it yet, and then makes another one."""
    left = tmp_path / f".jupyter-to-job-{'0' * 16}.tmp"
    left.touch()
    really, refused = os.unlink, []

    def unlink(name: str, *, dir_fd: int) -> None:
        with left.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                refused.append(name)
        really(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", unlink)
    folder = os.open(tmp_path, os.O_RDONLY)
    remove_drafts(folder)
    os.close(folder)
    assert left.name in refused and not left.exists()


@pytest.mark.parametrize("has_folder", [True, False])
def test_without_locks_the_age_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_folder: bool
) -> None:
    monkeypatch.setattr(fcntl, "flock", refuse(errno.ENOLCK))
    lock = tmp_path / f".jupyter-to-job-{'0' * 16}.tmp"
    lock.touch()
    drafts = [lock]
    if has_folder:  # which is filled longer than an hour
        drafts.append(lock.with_name(f"{lock.name}.d"))
        drafts[1].mkdir()
        os.utime(lock, (0, 0))
    folder = os.open(tmp_path, os.O_RDONLY)
    remove_drafts(folder)
    assert sorted(tmp_path.iterdir()) == drafts
    os.utime(drafts[-1], (0, 0))
    remove_drafts(folder)
    assert list(tmp_path.iterdir()) == []
    os.close(folder)


PUBLISHER = """
import io, os, sys
from pathlib import Path
from jupyter_to_job.workspace import Workspace, publish
if {without_links}:
    def link(source, target, *, src_dir_fd, dst_dir_fd):
        taken = os.access(target, os.F_OK, dir_fd=dst_dir_fd, follow_symlinks=False)
        raise OSError(17 if taken else 1, 'no')
    os.link = link
step = 0
def stop(event, arguments):
    # Stops before each thing that it does to the file system, until it is told to go on.
    global step
    if event in ('open', 'os.link', 'os.remove', 'os.scandir', 'fcntl.flock'):
        step += 1
        if step == {step}:
            Path('stopped').touch()
            while True:
                pass
data = Path('../data').read_bytes()
sys.addaudithook(stop)
publish(Workspace(Path('.')), 'a.ipynb', None, '{name}', io.BytesIO(data))
"""


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_killed_at_any_step(tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before each of its calls in turn; whoever comes next leaves one whole result."""
    (tmp_path / "data").write_bytes(LARGE)
    if not links:
        without_links(monkeypatch)
    for step in range(1, 100):
        root = tmp_path / f"workspace{step}"
        root.mkdir()
        code = PUBLISHER.format(step=step, name=NAME, without_links=not links)
        process = subprocess.Popen([sys.executable, "-c", code], cwd=root)
        until(lambda: process.poll() is not None or (root / "stopped").exists(), "a step")  # noqa: B023
        if process.poll() is not None:
            assert process.returncode == 0
            assert step > 4
            return
        process.send_signal(signal.SIGKILL)
        process.wait()
        (root / "stopped").unlink()
        assert put(root, LARGE).path == f"{NAME}.ipynb"
        assert [(p.name, p.read_bytes() == LARGE) for p in root.iterdir()] == [
            (f"{NAME}.ipynb", True)
        ]
    raise AssertionError("it never ended")


@pytest.mark.parametrize("seed", [20261101])
def test_killed_at_random(tmp_path: Path, seed: int) -> None:
    """Ten publishers of one result, each killed after some milliseconds; the last one is not."""
    rng = random.Random(seed)
    (tmp_path / "data").write_bytes(LARGE * 4)
    root = tmp_path / "workspace"
    root.mkdir()
    code = PUBLISHER.format(step=0, name=NAME, without_links=False)
    for _ in range(10):
        process = subprocess.Popen([sys.executable, "-c", code], cwd=root)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0.1, 0.25))
        process.kill()
        process.wait()
    put(root, LARGE * 4)
    assert [p.name for p in root.iterdir()] == [f"{NAME}.ipynb"]


# What can never be published at ---------------------------------------------------------------


@pytest.mark.parametrize(
    "output", ["../b.ipynb", "/b.ipynb", "x" * 256, "x" * 256 + "/", "../b/", "a\0b"]
)
def test_an_output_that_can_never_be(tmp_path: Path, output: str) -> None:
    with pytest.raises(BadInput):
        resolve_output(Workspace(tmp_path), output)


@pytest.mark.parametrize(
    ("output", "resolved"),
    [
        ("b.ipynb", "b.ipynb"), ("b", "b"), ("gone/b.ipynb", "gone/b.ipynb"),
        ("there", "there/"), ("there/", "there/"), ("gone/", "gone/"), (".", "./"), ("", "./"),
    ],
)  # fmt: skip
def test_what_an_output_means_is_decided_once(tmp_path: Path, output: str, resolved: str) -> None:
    (tmp_path / "there").mkdir()
    assert resolve_output(Workspace(tmp_path), output) == resolved


def test_a_folder_stays_a_folder_while_it_is_gone(tmp_path: Path) -> None:
    with pytest.raises(CannotPublish, match="No such file"):
        put(tmp_path, output="there/")
    (tmp_path / "there").touch()
    with pytest.raises(CannotPublish, match="Not a directory"):
        put(tmp_path, output="there/")
    (tmp_path / "b.ipynb").mkdir()
    assert put(tmp_path, output="b").path == "b-2.ipynb"
