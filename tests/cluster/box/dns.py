"""The cluster's DNS: CoreDNS, as a program beside the control plane."""

from __future__ import annotations

import urllib.request
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from tests.cluster.box.pki import Pki
from tests.cluster.box.sandbox import Sandbox

DOMAIN = "cluster.local"
READY_PORT = 8181
# Short times to live: tests make Services, delete them, and make them again.
CONFIG = """\
.:53 {{
    errors
    ready :{port}
    kubernetes {domain} {{
        kubeconfig {kubeconfig}
        ttl 1
    }}
    cache 2
}}
"""


@dataclass(frozen=True)
class Dns:
    """Starts CoreDNS in a sandbox; pods ask it at `address`."""

    sandbox: Sandbox
    programs: Path
    pki: Pki

    @property
    def address(self) -> IPv4Address:
        """Of the server."""
        return self.sandbox.cable.inner

    def start(self, api_server: str) -> None:
        """Start it; the API server must be ready."""
        directory = self.sandbox.run_dir
        kubeconfig = self.pki.kubeconfig("coredns", api_server, directory / "coredns.kubeconfig")
        config = directory / "Corefile"
        config.write_text(CONFIG.format(port=READY_PORT, domain=DOMAIN, kubeconfig=kubeconfig))
        command = [str(self.programs / "coredns"), f"-conf={config}"]
        self.sandbox.start("coredns", command)

    def is_ready(self) -> bool:
        """Tell whether it knows the cluster's Services."""
        try:
            url = f"http://{self.address}:{READY_PORT}/ready"
            with _direct.open(url, timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


# Without the proxies that the environment names.
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
