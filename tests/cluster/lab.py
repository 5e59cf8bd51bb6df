"""JupyterLab in a dev pod, which a browser on this machine reaches at the pod's own address."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, Route

from tests.cluster.box.boot import T4, Box
from tests.cluster.box.cluster import Cluster
from tests.cluster.box.images import Images, build_single_user
from tests.cluster.box.volumes import Volume
from tests.cluster.product import HOME, TEAM, DevPod, dev_pod_manifest, start_pod
from tests.cluster.side_by_side import once
from tests.ui.chromium import chromium, window
from tests.ui.lab import QUIET
from tests.ui.steps import visit

WORK = f"{HOME}/work"
PORT = 8888
TOKEN = "a-token-of-the-tests"  # the pod lives as long as the tests, on a network of this machine
COMMAND = [
    *("jupyter", "lab", "--no-browser", "--ip=0.0.0.0", f"--port={PORT}"),
    *(f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={WORK}"),
    "--LabApp.expose_app_in_browser=True",
]
OFFERED = {"small": ("cpu",), "gpu-1": ("any", "t4", "a100")}
"""Flavors and devices of the tests' catalog that an administrator would offer."""


@once
def single_user_image(cluster: Cluster) -> str:
    """Return the image with JupyterLab, which the cluster has afterwards."""
    if not isinstance(cluster, Box):
        return os.environ.get("JUPYTER_TO_JOB_SINGLE_USER_IMAGE", "jupyter-to-job/single-user:test")
    archive = cluster.run_dir / "single-user.tar"
    name = build_single_user(archive)
    cluster.load_image(archive)
    archive.unlink()  # containerd has its own copy
    name_by_digest(cluster, name)
    return name


def name_by_digest(box: Box, image: str) -> None:
    """Have an image known by its digest, too, as if it came from a registry."""
    full = f"docker.io/{image}"
    digest = box.node.image_digest(full)
    for node in box.nodes:
        node.name_image(full, f"{full.rpartition(':')[0]}@{digest}")


@once
def start_lab(cluster: Cluster) -> DevPod:
    """Start JupyterLab in a dev pod of Grace, whose notebooks are on a claim of one node."""
    claim = "claim-grace"
    if isinstance(cluster, Box):  # where nobody provisions volumes
        cluster.add_volume(claim, "ReadWriteOnce", claim=f"{TEAM}/{claim}", node=T4.name)
    cluster.apply(Volume(claim, Path(), ("ReadWriteOnce",), f"{TEAM}/{claim}").claim_manifest())
    dev_pod = start_pod(cluster, lab_manifest(single_user_image(cluster), claim, "grace"))
    be_quiet(dev_pod)
    return dev_pod


def lab_manifest(image: str, claim: str, user: str) -> dict[str, Any]:
    """Return a dev pod that runs JupyterLab on a claim; it has the claim's name."""
    pod = dev_pod_manifest(Images(notebook=image), TEAM, claim, user, claim)
    (container,) = pod["spec"]["containers"]
    container["command"] = COMMAND
    container["readinessProbe"] = {"httpGet": {"path": "/api", "port": PORT}, "periodSeconds": 1}
    return pod


def address(dev_pod: DevPod) -> str:
    """Return where this machine reaches JupyterLab of a dev pod."""
    pod = dev_pod.cluster.get("pod", dev_pod.name, dev_pod.namespace)
    return f"http://{pod['status']['podIP']}:{PORT}"


def be_quiet(dev_pod: DevPod) -> None:
    """Have JupyterLab not ask whether it may fetch news."""
    for plugin, values in QUIET.items():
        path = f"{HOME}/.jupyter/lab/user-settings/{plugin}.jupyterlab-settings"
        dev_pod.write(path, json.dumps(values))


@contextmanager
def opened(dev_pod: DevPod, name: str) -> Iterator[Page]:
    """Open JupyterLab of a dev pod in a browser."""
    with chromium() as browser, window(browser, name) as page:
        page.route("**/jupyter-to-job/api/flavors*", offer)
        visit(page, f"{address(dev_pod)}/lab?reset&token={TOKEN}")
        yield page


def offer(route: Route) -> None:
    """Leave out of the dialog what only tests ask for: its pictures are for people."""
    response = route.fetch()
    catalog = response.json()
    for name in set(catalog["flavors"]) - set(OFFERED):
        del catalog["flavors"][name]
    for name, flavor in catalog["flavors"].items():
        flavor["devices"] = [device for device in flavor["devices"] if device in OFFERED[name]]
    route.fulfill(response=response, json=catalog)
