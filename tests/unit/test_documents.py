"""Documents of a job's directory: whole or not there, first writer wins, private."""

from __future__ import annotations

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
