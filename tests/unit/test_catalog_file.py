"""The catalog in force while the admin edits: changes are seen, the last good one stays."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_to_job.domain.errors import BadCatalog
from jupyter_to_job.flavors import SHIPPED, CatalogFile, load_catalog, loader

from .test_catalog import GOOD


def with_cpu(amount: int) -> str:
    return GOOD.replace("cpu: 500m", f"cpu: {amount}")


def cpu(file: CatalogFile) -> str:
    return file.current().flavors["small"].cpu


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "flavors.yaml"
    path.write_text(with_cpu(1))
    return path


@pytest.fixture
def file(path: Path) -> CatalogFile:
    file = CatalogFile(lambda: path)
    assert cpu(file) == "1"
    return file


def write_in_place(path: Path, text: str) -> None:
    path.write_text(text)


def replace_file(path: Path, text: str) -> None:
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def write_same_size_and_time(path: Path, text: str) -> None:
    """What neither size nor modification time shows: an edit within a tick of the clock."""
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


@pytest.mark.parametrize("write", [write_in_place, replace_file, write_same_size_and_time])
def test_a_change_is_picked_up(
    path: Path, file: CatalogFile, write: Callable[[Path, str], None]
) -> None:
    for amount in range(2, 9):
        write(path, with_cpu(amount))
        assert cpu(file) == str(amount)
    assert file.problem is None


def test_a_config_map_is_swapped(tmp_path: Path) -> None:
    """As the kubelet does it: flavors.yaml -> ..data/flavors.yaml, and ..data is swapped."""
    folder = tmp_path / "mounted"
    folder.mkdir()

    def publish(version: str, text: str) -> None:
        (folder / version).mkdir()
        (folder / version / "flavors.yaml").write_text(text)
        (folder / "..data_tmp").symlink_to(version)
        (folder / "..data_tmp").replace(folder / "..data")

    publish("..1", with_cpu(1))
    (folder / "flavors.yaml").symlink_to("..data/flavors.yaml")
    file = CatalogFile(lambda: folder / "flavors.yaml")
    assert cpu(file) == "1"
    publish("..2", with_cpu(2))
    assert cpu(file) == "2"
    publish("..3", "broken: [")
    assert cpu(file) == "2" and file.problem is not None
    publish("..4", with_cpu(4))
    assert cpu(file) == "4" and file.problem is None


def test_nothing_is_parsed_while_nothing_changes(
    file: CatalogFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = file.current()
    monkeypatch.setattr(loader, "parse_catalog", None)
    assert all(file.current() is good for _ in range(10))


def test_a_broken_file_is_told_once_and_the_last_good_one_stays(
    path: Path, file: CatalogFile, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_text(GOOD.replace("gpus: 2", "gpus: two"))
    for _ in range(5):
        assert cpu(file) == "1"
    assert file.problem is not None and file.problem.faults[0].line == 5
    (told,) = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert f"{path}:5:" in told and "last good" in told

    path.write_text(GOOD.replace("gpus: 2", "gpus: three"))
    assert cpu(file) == "1"
    assert len([r for r in caplog.records if r.levelno == logging.WARNING]) == 2, "a new change"
    path.write_text(with_cpu(3))
    assert cpu(file) == "3" and file.problem is None


def delete_file(path: Path) -> None:
    path.unlink()


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_broken_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


@pytest.mark.parametrize(
    "happens", [delete_file, replace_by_folder, replace_by_pipe, replace_by_broken_link]
)
def test_a_file_that_cannot_be_read_any_more(
    path: Path,
    file: CatalogFile,
    caplog: pytest.LogCaptureFixture,
    happens: Callable[[Path], None],
) -> None:
    happens(path)
    for _ in range(5):
        assert cpu(file) == "1"
    assert file.problem is not None and "cannot be read" in file.problem.message
    assert len([r for r in caplog.records if r.levelno == logging.WARNING]) == 1
    with pytest.raises(BadCatalog, match="cannot be read"):
        load_catalog(path)
    path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
    path.write_text(with_cpu(7))
    assert cpu(file) == "7" and file.problem is None


def test_a_process_that_never_saw_a_good_one(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.write_text("broken: [")
    file = CatalogFile(lambda: path)
    file.log_problem()
    (told,) = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    assert f"{path}:2:1: This is no YAML" in told
    for _ in range(3):
        with pytest.raises(BadCatalog, match="no YAML"):
            file.current()
    path.write_text(with_cpu(2))
    assert cpu(file) == "2"


def test_where_it_is_may_change(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    places = [SHIPPED]
    file = CatalogFile(lambda: places[-1])
    assert file.current() == load_catalog()
    places.append(path)  # an admin puts one into Jupyter's config path
    assert cpu(file) == "1"
    path.unlink()
    places.append(SHIPPED)
    assert cpu(file) == "1", "one that is gone is missed, not replaced by the shipped one"
    assert file.problem is not None
    other.write_text(with_cpu(9))
    places.append(other)
    assert cpu(file) == "9" and file.problem is None


def test_threads_share_it(path: Path, file: CatalogFile) -> None:
    """Readers see only whole catalogs while a writer replaces and breaks the file."""
    seen: set[str] = set()
    stop = threading.Event()
    failed: list[BaseException] = []

    def look() -> None:
        try:
            while not stop.is_set():
                seen.add(cpu(file))
        except BaseException as error:
            failed.append(error)

    readers = [threading.Thread(target=look) for _ in range(3)]
    for reader in readers:
        reader.start()
    for amount in range(1, 20):
        replace_file(path, with_cpu(amount))
        path.write_text("broken: [")
    replace_file(path, with_cpu(20))
    stop.set()
    for reader in readers:
        reader.join(timeout=30)
    assert failed == []
    assert cpu(file) == "20"
    assert seen <= {str(n) for n in range(1, 21)}


def test_pydantic_is_loaded_with_the_first_catalog() -> None:
    """Most commands look at none, and importing it takes longer than all else they do."""
    code = (
        "import sys\n"
        "from jupyter_to_job.wiring import Settings, connect\n"
        "from jupyter_to_job.flavors import CatalogFile\n"
        "assert not {'pydantic', 'yaml'} & set(sys.modules)\n"
        "CatalogFile(Settings.load().catalog_path).current()\n"
        "assert {'pydantic', 'yaml'} <= set(sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
