"""The index changes how fast a list is and nothing else, whatever happens to it."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import random
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from job_runner.protocol import documents, layout
from jupyter_to_job.backends.memory import MemoryBackend
from jupyter_to_job.domain.job import DeliveryState
from jupyter_to_job.exchange import FileExchange, files, index, stamps
from jupyter_to_job.exchange.filesystem import is_network
from jupyter_to_job.exchange.index import Index, IndexRow
from jupyter_to_job.flavors import load_catalog
from jupyter_to_job.service.jobs import JobService, ServiceContext
from jupyter_to_job.service.submitting.submission import Caller

from ..processes import until
from . import exchanges

NAMES = [f"train-{a}{b}aaaaaa" for a in "abc" for b in "abcd"]


@pytest.fixture
def exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileExchange:
    """An exchange of twelve delivered jobs; nothing waits for clocks of file systems."""
    monkeypatch.setattr(stamps, "RACY", 0.05)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    if is_network(tmp_path):
        pytest.skip("there is no index on a network file system")
    found = FileExchange(tmp_path / "exchange")
    for number, name in enumerate(NAMES):
        exchanges.settle(found, name, submitted=f"2026-11-21T09:30:{number:02}.000Z")
    time.sleep(0.1)
    return found


def service(exchange: FileExchange) -> JobService:
    """A service of a new process's kind: nothing is remembered."""
    return JobService(
        ServiceContext(exchange, MemoryBackend(exchange), load_catalog), Caller("me", "/w")
    )


def list_names(exchange: FileExchange) -> list[str]:
    page = service(exchange).find(limit=500)
    assert page.next is None
    return [job.name for job in page.jobs]


def file_of(exchange: FileExchange) -> Path:
    (path,) = (exchange.root / ".index").glob("settled-*.sqlite")
    return path


@pytest.fixture
def reads(exchange: FileExchange, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of jobs whose request was read from the directory."""
    read: list[str] = []
    request = FileExchange.request

    def counted(self: FileExchange, job: str) -> object:
        read.append(job)
        return request(self, job)

    monkeypatch.setattr(FileExchange, "request", counted)
    return read


def test_the_second_list_reads_no_directory(exchange: FileExchange, reads: list[str]) -> None:
    first = service(exchange).find(limit=500).jobs
    assert len(reads) == len(NAMES)
    reads.clear()
    assert service(exchange).find(limit=500).jobs == first
    assert reads == []
    assert [j.name for j in first] == NAMES[::-1]


def test_only_what_changed_is_read_again(exchange: FileExchange, reads: list[str]) -> None:
    list_names(exchange)
    exchange.remove(NAMES[3])
    exchanges.settle(exchange, "new-aaaaaaaa", submitted="2026-11-21T09:31:00.000Z")
    document = {"message": "changed"}
    documents.write_document(exchange.root / NAMES[5] / "held.json", document)
    reads.clear()
    assert list_names(exchange) == ["new-aaaaaaaa", *(n for n in NAMES[::-1] if n != NAMES[3])]
    assert sorted(reads) == sorted(["new-aaaaaaaa", NAMES[5]])


def test_from_held_to_delivered(exchange: FileExchange) -> None:
    directory = exchanges.add(exchange, "held-aaaaaaaa")
    exchanges.end(directory)
    documents.write_document(directory / "held.json", {"message": "The folder is gone."})
    time.sleep(0.1)
    for _ in range(2):
        assert service(exchange).find(limit=500).jobs[-1].delivery.state is DeliveryState.HELD
    exchanges.deliver(directory)
    for _ in range(2):
        job = service(exchange).find(limit=500).jobs[-1]
        assert (job.name, job.delivery.state) == ("held-aaaaaaaa", DeliveryState.DELIVERED)
        time.sleep(0.1)


def test_a_name_that_is_used_again_is_another_job(exchange: FileExchange) -> None:
    list_names(exchange)
    exchange.remove(NAMES[0])
    exchanges.add(exchange, NAMES[0], flavor="other")
    found = {job.name: job for job in service(exchange).find(limit=500).jobs}
    assert (found[NAMES[0]].flavor, found[NAMES[0]].state.value) == ("other", "queued")


def _remove(path: Path) -> None:
    path.unlink()


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _write_garbage(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(path.stat().st_size))


def _write_zeros(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = bytes(len(data) - 4096)
    path.write_bytes(data)


def _other_version(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 1")


def _other_table(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE settled RENAME COLUMN state TO status")


def _no_table(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE settled")


def _write_wrong_rows(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("UPDATE settled SET state = 'failed', owner = 'eve'")
        database.execute("UPDATE settled SET document = replace(document, 'small', 'large')")


def _write_blobs(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("UPDATE settled SET document = CAST(document AS BLOB)")


def _write_no_utf_8(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("UPDATE settled SET owner = CAST(x'ff' AS TEXT)")


@pytest.mark.parametrize(
    "damage",
    [
        _remove,
        _empty,
        _truncate,
        _write_garbage,
        _write_zeros,
        _other_version,
        _other_table,
        _no_table,
        _write_wrong_rows,
        _write_blobs,
        _write_no_utf_8,
    ],
)
def test_damaged(exchange: FileExchange, reads: list[str], damage: Callable[[Path], None]) -> None:
    whole = service(exchange).find(limit=500).jobs
    damage(file_of(exchange))
    for _ in range(3):
        assert service(exchange).find(limit=500).jobs == whole
    reads.clear()
    assert service(exchange).find(limit=500).jobs == whole
    assert reads == []  # it was built again


def test_any_flipped_byte(exchange: FileExchange) -> None:
    """Not one answer is wrong, wherever a byte of the file was changed."""
    whole = service(exchange).find(limit=500).jobs
    good = file_of(exchange).read_bytes()
    draw = random.Random(7)
    for _ in range(60):
        data = bytearray(good)
        data[draw.randrange(len(data))] ^= draw.randrange(1, 256)
        file_of(exchange).write_bytes(data)
        assert service(exchange).find(limit=500).jobs == whole


def test_a_folder_that_cannot_be_written_is_done_without(exchange: FileExchange) -> None:
    (exchange.root / ".index").write_text("in the way")
    assert list_names(exchange) == NAMES[::-1]


def test_a_lock_that_is_never_given_back_is_waited_for_once(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_names(exchange)
    monkeypatch.setattr(index, "BUSY_TIMEOUT", 0.05)
    jobs = service(exchange)
    waits: list[float] = []
    connect = sqlite3.connect

    def counted(*arguments: object, **options: object) -> sqlite3.Connection:
        waits.append(index.BUSY_TIMEOUT)
        return connect(*arguments, **options)  # type: ignore[call-overload, no-any-return]

    with contextlib.closing(connect(file_of(exchange), isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(sqlite3, "connect", counted)
        for _ in range(5):
            assert [job.name for job in jobs.find(limit=500).jobs] == NAMES[::-1]
        assert len(waits) == 1
        other.execute("ROLLBACK")
    monkeypatch.setattr(index, "RETRY_INTERVAL", 0.0)
    assert list_names(exchange) == NAMES[::-1] and len(waits) == 2


def test_not_on_a_network_file_system(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "is_network", lambda _: True)
    assert list_names(exchange) == NAMES[::-1]
    assert not (exchange.root / ".index").exists()


def test_it_is_private_and_has_no_secrets(exchange: FileExchange) -> None:
    exchanges.settle(exchange, "secret-aaaaaaaa", env={"TOKEN": "very secret"})
    time.sleep(0.1)
    list_names(exchange)
    files = list((exchange.root / ".index").iterdir())
    assert files and all(p.stat().st_mode & 0o077 == 0 for p in files)
    assert all(b"very secret" not in p.read_bytes() for p in files)


def test_text_that_is_no_utf8_and_large_rows_are_left_out(exchange: FileExchange) -> None:
    exchanges.settle(exchange, "odd-aaaaaaaa", source="/w/\udcff.ipynb")
    exchanges.settle(exchange, "large-aaaaaaaa", parameters={"text": "x" * index.MAX_ROW})
    time.sleep(0.1)
    for _ in range(2):
        assert len(list_names(exchange)) == len(NAMES) + 2
    with sqlite3.connect(file_of(exchange)) as database:
        assert database.execute("SELECT count(*) FROM settled").fetchone() == (len(NAMES),)


def test_what_is_gone_is_forgotten(exchange: FileExchange) -> None:
    list_names(exchange)
    for name in NAMES[:10]:
        exchange.remove(name)
    exchanges.settle(exchange, "new-aaaaaaaa")
    time.sleep(0.1)
    list_names(exchange)
    with sqlite3.connect(file_of(exchange)) as database:
        assert database.execute("SELECT count(*) FROM settled").fetchone() == (len(NAMES) - 9,)


def test_two_versions_of_the_package_have_an_index_each(
    exchange: FileExchange, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    list_names(exchange)
    own = file_of(exchange)
    with monkeypatch.context() as patch:
        patch.setattr(index, "_VERSION", 1)
        patch.setattr(index, "FILE", "settled-1.sqlite")
        list_names(exchange)
    reads.clear()
    assert list_names(exchange) == NAMES[::-1]
    assert reads == []
    for path in (exchange.root / ".index").iterdir():
        os.utime(path, (time.time() - index.UNUSED_SECONDS - 1,) * 2)
    exchange.remove_leftovers()
    assert file_of(exchange) == own


# Processes ----------------------------------------------------------------------------------


def _list_for_ever(root: Path) -> None:
    """List, forgetting the index every time: there is always somebody who writes it."""
    stamps.RACY = 0.05
    exchange = FileExchange(root)
    while True:
        list_names(exchange)
        for path in (root / ".index").glob("settled-*.sqlite"):
            path.unlink(missing_ok=True)


def _list_often(root: Path, times: int) -> None:
    stamps.RACY = 0.05
    for _ in range(times):
        assert list_names(FileExchange(root)) == NAMES[::-1]


@pytest.fixture
def spawn() -> Iterator[Callable[..., multiprocessing.Process]]:
    started: list[multiprocessing.Process] = []

    def start(target: Callable[..., None], *arguments: object) -> multiprocessing.Process:
        process = multiprocessing.get_context("fork").Process(target=target, args=arguments)
        process.start()
        started.append(process)  # type: ignore[arg-type]
        return process  # type: ignore[return-value]

    yield start
    for process in started:
        process.kill()
        process.join()


def test_writers_that_are_killed(
    exchange: FileExchange, spawn: Callable[..., multiprocessing.Process]
) -> None:
    draw = random.Random(3)
    for _ in range(12):
        writer = spawn(_list_for_ever, exchange.root)
        until((exchange.root / ".index").exists, "a writer is at work")
        time.sleep(draw.random() / 20)
        assert writer.pid is not None
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        assert list_names(exchange) == NAMES[::-1]


def test_several_processes_at_once(
    exchange: FileExchange, spawn: Callable[..., multiprocessing.Process]
) -> None:
    spawn(_list_for_ever, exchange.root)
    readers = [spawn(_list_often, exchange.root, 15) for _ in range(4)]
    for reader in readers:
        reader.join(60)
        assert reader.exitcode == 0


# The file system ----------------------------------------------------------------------------

MOUNTS = """\
22 1 0:20 / / rw,relatime - overlay overlay rw
30 22 0:30 / /home rw - nfs4 server:/home rw,vers=4.2
31 30 0:31 / /home/me/local rw - ext4 /dev/sda1 rw
32 22 0:32 / /mnt/with\\040space rw shared:1 - cifs //server/share rw
33 22 0:33 / /mnt/sshfs rw - fuse.sshfs me@host: rw
34 22 0:34 / /mnt/usb rw - fuseblk /dev/sdb1 rw
35 22 0:35 / /mnt/scratch rw - lustre mds@tcp:/scratch rw
36 22 0:36 / /mnt/top rw - nfs server:/old rw
37 22 0:37 / /mnt/top rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("path", "network"),
    [
        ("/", False), ("/tmp", False), ("/home/me", True), ("/home/me/local/x", False),
        ("/homes", False), ("/mnt/with space/x", True), ("/mnt/sshfs", True),
        ("/mnt/usb/x", False), ("/mnt/scratch/me", True), ("/mnt/top/x", False),
    ],
)  # fmt: skip
def test_network_file_systems_are_known(path: str, network: bool, tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert is_network(Path(path), mounts) is network


def test_what_is_not_known_counts_as_network(tmp_path: Path) -> None:
    assert is_network(tmp_path, tmp_path / "no mountinfo here")


def test_a_row_is_the_whole_job(exchange: FileExchange) -> None:
    job = service(exchange).get(NAMES[0])
    row = IndexRow.of(job, stamp="1", source="/w/train.ipynb", workspace="/w")
    assert row.job() == job
    assert set(json.loads(row.document)) == set(job.to_json())
    found = Index(exchange)
    found.write([row], {NAMES[0]})
    assert found.read([NAMES[0]]) == {}  # no directory has this stamp
    assert (exchange.root / NAMES[0] / layout.REQUEST).exists()
