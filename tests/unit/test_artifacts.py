"""What an isolated run created comes back: one folder, whole, once, and over nothing."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import pytest

from job_runner.attempt.artifacts import seal_artifacts
from job_runner.protocol import layout
from jupyter_to_job.domain.errors import TooLarge
from jupyter_to_job.workspace import CannotPublish, Workspace, open_regular
from jupyter_to_job.workspace.publishing import artifacts
from jupyter_to_job.workspace.publishing.artifacts import (
    Artifact,
    find_artifacts,
    publish_artifacts,
    scan_artifacts,
)

from ..processes import until

NAME = "train-abcd2345"


def fill(folder: Path, *paths: str) -> Path:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)
    return folder


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """What a run of dir/train.ipynb created, with the workspace's layout."""
    folder = fill(tmp_path / "made", "dir/model.pt", "dir/plots/1.png", "dir/plots/a b/2.png")
    return fill(folder, "other/log.txt", "plots")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "workspace" / "dir").mkdir(parents=True)
    return tmp_path / "workspace"


def find(made: Path, notebook: str = "dir/train.ipynb") -> list[Artifact]:
    def opener(path: str) -> BinaryIO:
        return open_regular(str(made / path), path)

    return find_artifacts(scan_artifacts(made), notebook, opener, "here")


def put(root: Path, made: Path) -> tuple[str, ...]:
    found = publish_artifacts(Workspace(root), f"dir/{NAME}.ipynb", NAME, find(made))
    assert found.lost == ()
    return found.paths


def files(root: Path) -> dict[str, str]:
    return {str(p.relative_to(root)): p.read_text() for p in root.rglob("*") if p.is_file()}


EXPECTED = {
    f"dir/{NAME}/model.pt": "dir/model.pt",
    f"dir/{NAME}/plots/1.png": "dir/plots/1.png",
    f"dir/{NAME}/plots/a b/2.png": "dir/plots/a b/2.png",
    f"dir/{NAME}/workspace/other/log.txt": "other/log.txt",
    f"dir/{NAME}/workspace/plots": "plots",
}


def test_they_keep_their_paths(root: Path, made: Path) -> None:
    (made / "dir" / "model.pt").chmod(0o700)
    (made / "link").symlink_to("/etc/hosts")
    assert put(root, made) == tuple(sorted(EXPECTED))
    assert files(root) == EXPECTED
    for path in ("model.pt", "plots/1.png"):
        source, copied = (made / "dir" / path).stat(), (root / "dir" / NAME / path).stat()
        assert copied.st_mode == source.st_mode


def test_a_folder_called_like_ours(root: Path, made: Path) -> None:
    fill(made, "dir/workspace/other/log.txt")
    assert f"dir/{NAME}/workspace-2/other/log.txt" in put(root, made)
    assert files(root)[f"dir/{NAME}/workspace/other/log.txt"] == "dir/workspace/other/log.txt"


def test_once(root: Path, made: Path) -> None:
    first = put(root, made)
    inode = (root / "dir" / NAME).stat().st_ino
    assert put(root, made) == first
    assert (root / "dir" / NAME).stat().st_ino == inode
    assert files(root) == EXPECTED


@pytest.mark.parametrize("kind", ["file", "empty folder", "folder", "changed", "link", "link out"])
def test_over_nothing(root: Path, made: Path, tmp_path: Path, kind: str) -> None:
    there = root / "dir" / NAME
    if kind == "file":
        there.write_text("mine")
    elif kind == "empty folder":
        there.mkdir()
    elif kind == "folder":
        fill(there, "mine")
    elif kind == "changed":
        put(root, made)
        (there / "model.pt").write_text("DIR/model.pt")
    else:
        target = root / "elsewhere" if kind == "link" else tmp_path / "outside"
        target.mkdir()
        there.symlink_to(target)
    before = files(root)
    assert put(root, made)[0] == f"dir/{NAME}-2/model.pt"
    assert {path: text for path, text in files(root).items() if path in before} == before
    assert not (tmp_path / "outside").exists() or not list((tmp_path / "outside").iterdir())


@pytest.mark.parametrize("has_digest", [False, True])
def test_of_a_file_that_a_process_still_writes_what_the_run_had_comes(
    root: Path, made: Path, has_digest: bool
) -> None:
    found = find(made)
    if has_digest:
        digests = {a: hashlib.sha256(a.open().read()).hexdigest() for a in found}
        found = [replace(a, sha256=digest) for a, digest in digests.items()]
    for _ in range(2):  # whoever publishes again finds them
        with (made / "dir/model.pt").open("a") as file:
            file.write("more")
        published = publish_artifacts(Workspace(root), f"dir/{NAME}.ipynb", NAME, found)
        assert (published.paths, published.lost) == (tuple(sorted(EXPECTED)), ())
        assert files(root) == EXPECTED


def test_the_seal_is_of_what_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that lives on writes meanwhile."""
    log = fill(tmp_path / layout.ARTIFACTS, "train.log") / "train.log"
    really = os.fsync

    def fsync(descriptor: int) -> None:
        really(descriptor)
        with log.open("a") as file:
            file.write("more")

    monkeypatch.setattr(os, "fsync", fsync)
    (record,) = seal_artifacts(tmp_path) or ()
    assert record.size == len("train.log")
    assert record.sha256 == hashlib.sha256(b"train.log").hexdigest()


def test_nothing_was_created(root: Path, tmp_path: Path) -> None:
    assert put(root, tmp_path / "nothing") == ()
    assert list((root / "dir").iterdir()) == []


def test_a_full_disk_leaves_nothing(
    root: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    really = os.fsync

    def fsync(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            full()
        really(descriptor)

    def full() -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(CannotPublish, match="No space"):
        put(root, made)
    assert list((root / "dir").iterdir()) == []
    assert put(root, made) == tuple(sorted(EXPECTED))


@pytest.fixture
def foreign_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let file systems ignore case, as an SMB share does, and have no colons, as vfat."""
    really_open, really_make = os.open, os.mkdir

    def names(folder: int) -> list[str]:
        return [path.name for path in Path(f"/proc/self/fd/{folder}").iterdir()]

    def check(name: Any, folder: int | None) -> None:
        if folder is not None and ":" in name:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        if folder is not None and name.lower() in (n.lower() for n in names(folder)):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))

    def open_file(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & os.O_CREAT:
            check(path, dir_fd)
        elif dir_fd is not None:
            path = next((n for n in names(dir_fd) if n.lower() == path.lower()), path)
        return really_open(path, flags, mode, dir_fd=dir_fd)

    def make_folder(path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        check(path, dir_fd)
        really_make(path, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", open_file)
    monkeypatch.setattr(os, "mkdir", make_folder)


@pytest.mark.usefixtures("foreign_names")
@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("Model.pt", ("model.pt",)),
        ("model.PT/a", ("model.pt",)),
        ("Plots", ("plots/1.png", "plots/a b/2.png")),
        ("10:00.csv", ("10:00.csv",)),
        ("10:00/a", ("10:00/a",)),
    ],
)
def test_a_name_that_the_folder_cannot_have_is_lost_alone(
    root: Path, made: Path, name: str, lost: tuple[str, ...]
) -> None:
    """The others are there, and whoever publishes again finds them."""
    fill(made, f"dir/{name}")
    result = f"dir/{NAME}.ipynb"
    found = publish_artifacts(Workspace(root), result, NAME, find(made))
    assert found.lost == lost
    assert files(root).keys() == set(found.paths)
    assert len(found.paths) + len(lost) == len(EXPECTED) + 1
    assert publish_artifacts(Workspace(root), result, NAME, find(made)) == found
    assert len(list((root / "dir").iterdir())) == 1


def test_a_name_that_is_too_long_is_lost_alone(root: Path, made: Path) -> None:
    """A manifest may come from another file system."""
    found = find(made)
    for name in ("x" * 256, f"{'x' * 256}/a"):
        found.append(replace(found[0], target=name))
    published = publish_artifacts(Workspace(root), f"dir/{NAME}.ipynb", NAME, found)
    assert published.lost == ("x" * 256, f"{'x' * 256}/a")
    assert files(root) == EXPECTED


def test_too_many(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "MAX_ARTIFACTS", 4)
    with pytest.raises(TooLarge, match="created 5 files"):
        find(made)
    monkeypatch.undo()
    monkeypatch.setattr(artifacts, "MAX_ARTIFACT_BYTES", 10)
    with pytest.raises(TooLarge, match="at most 10,000 files and 10 bytes"):
        find(made)


def test_many_at_once_publish_one(root: Path, made: Path) -> None:
    with ProcessPoolExecutor(4) as pool:
        found = {f.result() for f in [pool.submit(put, root, made) for _ in range(16)]}
    assert found == {tuple(sorted(EXPECTED))}
    assert files(root) == EXPECTED


OTHER_HOST = """
import fcntl, os, stat
from jupyter_to_job.workspace.publishing.drafts import remove_drafts
flock = fcntl.flock
def flock_of_files(descriptor, operation):
    # NFS carries the locks of files to other hosts, and those of folders to none.
    if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
        flock(descriptor, operation)
fcntl.flock = flock_of_files
remove_drafts(os.open('dir', os.O_RDONLY))
"""


def test_another_host_leaves_a_living_draft_alone(root: Path, made: Path) -> None:
    """It publishes in the same folder while files are copied."""
    found = find(made)
    variables = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}

    def open_late() -> BinaryIO:
        command = [sys.executable, "-c", OTHER_HOST]
        subprocess.run(command, cwd=root, env=variables, check=True)
        return found[-1].open()

    late = [*found[:-1], replace(found[-1], open=open_late)]
    published = publish_artifacts(Workspace(root), f"dir/{NAME}.ipynb", NAME, late)
    assert published.paths == tuple(sorted(EXPECTED)) and published.lost == ()
    assert files(root) == EXPECTED


PUBLISHER = """
import sys
from pathlib import Path
from jupyter_to_job.workspace import Workspace
from jupyter_to_job.workspace.publishing.artifacts import publish_artifacts
from tests.unit.test_artifacts import find
step = 0
def stop(event, arguments):
    # Stops before each thing that it does to the file system, until it is killed.
    global step
    if event in ('open', 'os.mkdir', 'os.rename', 'os.remove', 'os.rmdir', 'fcntl.flock'):
        step += 1
        if step == {step}:
            Path('../stopped').touch()
            while True:
                pass
found = find(Path('../made'))
sys.addaudithook(stop)
publish_artifacts(Workspace(Path('.')), 'dir/{name}.ipynb', '{name}', found)
"""


def test_killed_at_any_step(root: Path, made: Path, tmp_path: Path) -> None:
    """Killed before each of its calls in turn; whoever comes next leaves one whole folder."""
    for step in range(1, 200, 6):
        shutil.rmtree(root)
        (root / "dir").mkdir(parents=True)
        (tmp_path / "stopped").unlink(missing_ok=True)
        code = PUBLISHER.format(step=step, name=NAME)
        variables = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        process = subprocess.Popen([sys.executable, "-c", code], cwd=root, env=variables)
        stopped = tmp_path / "stopped"
        until(lambda: process.poll() is not None or stopped.exists(), "a step")  # noqa: B023
        ended = process.poll() is not None
        assert process.returncode in (None, 0)
        process.kill()
        process.wait()
        partly = {path for path in files(root) if path.startswith(f"dir/{NAME}")}
        assert partly in (set(), set(EXPECTED))
        put(root, made)
        assert files(root) == EXPECTED
        if ended:
            assert step > 20
            return
    raise AssertionError("it never ended")
