"""The backends that the suite runs on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..processes import end_all
from .place import LocalPlace, MemoryPlace, Place

KINDS: dict[str, type[Place]] = {"memory": MemoryPlace, "local": LocalPlace}


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One home for all kernels: what IPython makes in it, it makes once."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        yield folder


@pytest.fixture(scope="session", params=KINDS)
def kind(request: pytest.FixtureRequest) -> type[Place]:
    """The backend, by its kind of place."""
    return KINDS[request.param]


@pytest.fixture
def make_place(kind: type[Place], tmp_path: Path, home: Path) -> Iterator[Callable[..., Place]]:
    """What makes a place; `hold` keeps its jobs `queued` or `running` until cancelled."""
    yield lambda hold=None: kind(tmp_path, hold)
    end_all(tmp_path)


@pytest.fixture
def place(make_place: Callable[..., Place]) -> Place:
    """A place of the test's own."""
    return make_place()


@pytest.fixture(scope="session")
def shared(
    kind: type[Place], tmp_path_factory: pytest.TempPathFactory, home: Path
) -> Iterator[Place]:
    """A place with one delivered job, for tests that only look."""
    folder = tmp_path_factory.mktemp("shared")
    place = kind(folder, None)
    place.decided(place.submit(inputs=("dir",)).name)
    yield place
    end_all(folder)
