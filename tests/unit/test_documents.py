"""Documents of a job's directory: whole or not there, first writer wins, private."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job_runner.protocol import documents

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("job")


@given(fields=st.dictionaries(st.text().filter(lambda key: key != "v"), values, max_size=4))
def test_what_was_written_is_read(folder: Path, fields: dict[str, Any]) -> None:
    documents.write_document(folder / "request.json", fields)
    assert documents.read_document(folder / "request.json") == {"v": 1, **fields}


def test_lone_surrogates_survive(folder: Path) -> None:
    documents.write_document(folder / "request.json", {"text": "\ud800"})
    assert documents.read_document(folder / "request.json") == {"v": 1, "text": "\ud800"}


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff", b'{"v": 2}', b"{}", b'"v"', b"[" * 100_000]
)
def test_what_cannot_be_read_says_so(folder: Path, content: bytes) -> None:
    path = folder / "outcome.json"
    path.write_bytes(content)
    with pytest.raises(documents.DocumentError, match=r"outcome\.json"):
        documents.read_document(path)


def test_what_is_not_there_is_none(folder: Path) -> None:
    assert documents.read_document(folder / "missing.json") is None


def test_once_is_once(tmp_path: Path) -> None:
    path = tmp_path / "delivery.json"
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda n: documents.write_document_once(path, {"n": n}), range(8)))
    assert won.count(True) == 1
    assert documents.read_document(path) == {"v": 1, "n": won.index(True)}
    assert [p.name for p in tmp_path.iterdir()] == ["delivery.json"]
    assert path.stat().st_mode & 0o777 == 0o600


def write_and_be_killed(path: Path) -> None:
    """Write a document once, in a process that is killed when all but its name is there."""
    pid = os.fork()
    if pid == 0:
        os.link = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        try:
            documents.write_document_once(path, {"by": "killed"})
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def test_who_writes_once_clears_away_what_a_killed_writer_left(tmp_path: Path) -> None:
    write_and_be_killed(tmp_path / "delivery.json")
    write_and_be_killed(tmp_path / "outcome.json")
    assert len(list(tmp_path.iterdir())) == 2
    assert documents.write_document_once(tmp_path / "delivery.json", {"by": "next"})
    left = [path.name for path in tmp_path.iterdir() if path.name != "delivery.json"]
    assert [name.startswith(".outcome.json.") for name in left] == [True]


def test_a_slower_writer_is_told_that_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, link = tmp_path / "delivery.json", os.link

    def overtaken(draft: Path, target: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        assert documents.write_document_once(path, {"by": "faster"})
        link(draft, target)

    monkeypatch.setattr(os, "link", overtaken)
    assert not documents.write_document_once(path, {"by": "slower"})
    assert documents.read_document(path) == {"v": 1, "by": "faster"}
    assert [found.name for found in tmp_path.iterdir()] == ["delivery.json"]
