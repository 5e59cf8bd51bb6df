"""One cluster for all tests of a run, and our images on it."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path

import pytest

from tests.cluster.box.boot import Box
from tests.cluster.box.cluster import Cluster
from tests.cluster.box.images import Images, build_images
from tests.cluster.box.programs import build_programs
from tests.cluster.box.requirements import CannotRunError, check
from tests.cluster.product import DevPod, install, start_dev_pod
from tests.cluster.scenes import keep_worker
from tests.cluster.side_by_side import MARK, Lanes, arrange, told

KUBECONFIG = "JUPYTER_TO_JOB_KUBECONFIG"
LANES = pytest.StashKey[Lanes]()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The box, booted once and gone at the end; or the cluster that the variable names."""
    directory = tmp_path_factory.mktemp("cluster")
    if kubeconfig := os.environ.get(KUBECONFIG):
        program = shutil.which("kubectl") or build_programs() / "kubectl"
        yield Cluster(Path(program), Path(kubeconfig).absolute(), directory)
        return
    with Box.boot(directory) as box:
        yield box


@pytest.fixture(scope="session")
def box(cluster: Cluster) -> Box:
    """The box, for tests that reach below the API, or take something away."""
    if not isinstance(cluster, Box):
        pytest.skip(f"needs the box, and {KUBECONFIG} names another cluster")
    return cluster


@pytest.fixture(scope="session")
def images(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Images:
    """Names of our images, made from this checkout; a cluster that is not the box has them."""
    if not isinstance(cluster, Box):
        own = Images()
        return Images(
            os.environ.get("JUPYTER_TO_JOB_NOTEBOOK_IMAGE", own.notebook),
            os.environ.get("JUPYTER_TO_JOB_CONTROLLER_IMAGE", own.controller),
        )
    archive = tmp_path_factory.mktemp("images") / "images.tar"
    images = build_images(archive)
    cluster.load_image(archive)
    archive.unlink()  # containerd has its own copy
    return images


@pytest.fixture(scope="session")
def dev_pod(cluster: Cluster, images: Images) -> DevPod:
    """A dev pod beside an installed controller."""
    install(cluster, images)
    return start_dev_pod(cluster, images, cpu="300m")


@pytest.fixture(scope="session")
def kept_worker(box: Box) -> Box:
    """The box, whose worker takes no pods but those of pretend A100s until `give_worker_back`."""
    keep_worker(box)
    return box


@pytest.fixture(scope="session")
def lanes(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Lanes]:
    """The tests that run side by side; none of them runs any more when the cluster ends."""
    assert cluster
    with closing(Lanes(request)) as lanes:
        request.config.stash[LANES] = lanes
        yield lanes


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests that run side by side first, and those that look back last.

    Where the box cannot run, one skip says so.
    """
    own = [item for item in items if item.path.is_relative_to(Path(__file__).parent)]
    arrange(items)
    items.sort(key=_number_of_last)
    if not own or KUBECONFIG in os.environ:
        return
    try:
        check()
    except CannotRunError as error:
        first, *others = own
        first.add_marker(pytest.mark.skip(str(error)))
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]


def _number_of_last(item: pytest.Item) -> int:
    mark = item.get_closest_marker("last")
    return 0 if mark is None else mark.args[0] if mark.args else 1


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Let a test that runs beside others wait for its end there."""
    lanes = pyfuncitem.funcargs.get("lanes")
    if not isinstance(lanes, Lanes):
        return None
    lanes.wait(pyfuncitem)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a failure what the cluster looked like then: it is gone when somebody looks."""
    report = yield
    lanes = getattr(item, "funcargs", {}).get("lanes")
    if call.when == "call" and isinstance(lanes, Lanes):
        report.duration = lanes.seconds(item) or report.duration
    cluster = getattr(item, "funcargs", {}).get("cluster")
    if report.failed and isinstance(cluster, Cluster):
        report.sections.append(("cluster", cluster.snapshot()))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how long the tests took that ran side by side, and how long the others."""
    lanes = terminalreporter.config.stash.get(LANES, None)
    if lanes is None:
        return
    alone: defaultdict[str, float] = defaultdict(float)
    for report in chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport) and MARK not in report.keywords:
            alone[report.nodeid] += report.duration
    terminalreporter.section("time")
    terminalreporter.write_line(lanes.summary())
    terminalreporter.write_line(f"alone: {told(alone)}")
