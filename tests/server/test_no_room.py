"""A disk without room for the temporary files of large notebooks: said so, and nothing is left."""

from __future__ import annotations

import contextlib
import json
import resource
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat.v4 as v4
import pytest

from .test_routes import post, refusal
from .trees import tree

Fetch = Callable[..., Awaitable[Any]]
SOME = 3 << 20


@pytest.fixture(autouse=True)
def memory(exchange: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs no code: jobs have ended when they are answered."""
    monkeypatch.setenv("JUPYTER_TO_JOB_BACKEND", "memory")


@contextlib.contextmanager
def little_room() -> Iterator[None]:
    """Let no file of this process, or of its children, become larger than `SOME`."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SOME, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def notebook(source: str = "1", numbers: int = 0) -> dict[str, Any]:
    made = v4.new_notebook(cells=[v4.new_code_cell(source)])
    return {**made, "metadata": {"numbers": [0] * numbers}}


LONG = notebook(source="#" * 2 * SOME)
SPREAD = notebook(numbers=900_000)
"""Less than `SOME` as it is sent, and more as a file, with each number on a line."""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (LONG, "The body cannot be kept: File too large."),
        (SPREAD, "The body cannot be taken apart: "),
        (None, "large.ipynb cannot be looked at: File too large."),
    ],
)
async def test_a_large_notebook(
    content: dict[str, Any] | None, said: str, jp_fetch: Fetch, jp_root_dir: Path, exchange: Path
) -> None:
    (jp_root_dir / "large.ipynb").write_text(json.dumps(LONG))
    body: dict[str, Any] = {"notebook": "large.ipynb"}
    if content is not None:
        body["content"] = content
    before = tree(exchange, jp_root_dir)
    with little_room():
        status, error = await refusal(post(jp_fetch, "jobs", body=body))
    assert (status, error["code"]) == (503, "unavailable")
    assert error["message"].startswith(said) and "Make space in" in error["hint"]
    assert tree(exchange, jp_root_dir) == before
    assert (await post(jp_fetch, "jobs", body=body)).code == 201
