"""A workspace, and the command line in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..processes import end_all
from .cli import Cli


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One home for all kernels: what IPython makes in it, it makes once."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def cli(tmp_path: Path, home: Path) -> Iterator[Cli]:
    """The command line in a workspace of its own, with an exchange of its own."""
    made = Cli(tmp_path / "workspace", tmp_path / "exchange", home)
    made.workspace.mkdir()
    yield made
    made.end()
    end_all(tmp_path)
