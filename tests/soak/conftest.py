"""Seeds, repetitions and the summary table of the soak."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from ..local.cli import Cli
from ..local.conftest import cli as cli  # the fixtures of the command line are these tests', too
from ..local.conftest import home as home
from .scene import Scene
from .tally import Tally

IN_FULL = 30
"""Scenarios of each kind from which on it is the soak, and not the share of it that CI runs."""
_TALLY = pytest.StashKey[Tally]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("soak")
    group.addoption("--soak-runs", type=int, default=3, help="scenarios of each kind")
    group.addoption("--soak-seed", type=int, default=None, help="repeat the run with this seed")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "heavy: run a tenth as often as the others")
    config.addinivalue_line("markers", "often: in the soak run twice as often as the others")
    seed = config.getoption("--soak-seed")
    config.stash[_TALLY] = Tally(int.from_bytes(os.urandom(3), "big") if seed is None else seed)


def pytest_report_header(config: pytest.Config) -> str:
    runs, seed = config.getoption("--soak-runs"), config.stash[_TALLY].seed
    return f"soak: again with --soak-runs {runs} --soak-seed {seed}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every test that draws its moments as often as asked for; a heavy one a tenth of that."""
    if "rng" in metafunc.fixturenames:
        asked = metafunc.config.getoption("--soak-runs")
        if metafunc.definition.get_closest_marker("heavy"):
            asked = max(1, asked // 10)
        if metafunc.definition.get_closest_marker("often") and asked >= IN_FULL:
            asked *= 2
        runs = range(asked)
        metafunc.parametrize("scenario", runs, ids=[f"run{n}" for n in runs])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call":
        row = item.config.stash[_TALLY].row(_kind(item))
        row.seconds += call.duration
        row.passed += report.passed
        row.failed += report.failed
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    terminalreporter.section("soak")
    for line in config.stash[_TALLY].lines():
        terminalreporter.write_line(line)


def _kind(item: pytest.Item) -> str:
    """Return the test's name without its repetition."""
    return item.name.removeprefix("test_").replace("_", " ").partition("[")[0]


@pytest.fixture
def in_full(request: pytest.FixtureRequest) -> bool:
    """Tell whether this is the soak, and not the share of it that CI has time for."""
    return bool(request.config.getoption("--soak-runs") >= IN_FULL)


@pytest.fixture
def scenario() -> int:
    """The number of this repetition; set by `pytest_generate_tests`."""
    return 0


@pytest.fixture
def rng(request: pytest.FixtureRequest, scenario: int) -> random.Random:
    """What every moment is drawn from: seed, kind and repetition decide it."""
    seed = request.config.stash[_TALLY].seed
    return random.Random(f"{seed} {_kind(request.node)} {scenario}")


@pytest.fixture
def met(request: pytest.FixtureRequest) -> Counter[str]:
    """What this kind's scenarios came across, for the table."""
    return request.config.stash[_TALLY].row(_kind(request.node)).met


@pytest.fixture
def scene(cli: Cli, tmp_path: Path) -> Iterator[Scene]:
    """A user with jobs, whose `list` is watched from beginning to end."""
    made = Scene(cli)
    yield made
    made.witness.stop()
