"""One cluster for all tests of a run, and our images on it."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from tests.cluster.box.cluster import Cluster
from tests.cluster.box.images import Images, build_images
from tests.cluster.product import DevPod, install, start_dev_pod


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A real one-node cluster with two pretend GPUs; booted once, gone at the end."""
    with Cluster.boot(tmp_path_factory.mktemp("cluster"), gpus=2) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def images(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Images:
    """Names of our images, made from this checkout and known to the cluster's node."""
    archive = tmp_path_factory.mktemp("images") / "images.tar"
    images = build_images(archive)
    cluster.load_image(archive)
    archive.unlink()  # containerd has its own copy
    return images


@pytest.fixture(scope="session")
def dev_pod(cluster: Cluster, images: Images) -> DevPod:
    """A dev pod beside an installed controller."""
    install(cluster, images)
    return start_dev_pod(cluster, images)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a failure what the cluster looked like then: it is gone when somebody looks."""
    report = yield
    cluster = getattr(item, "funcargs", {}).get("cluster")
    if report.failed and isinstance(cluster, Cluster):
        report.sections.append(("cluster", cluster.snapshot()))
    return report
