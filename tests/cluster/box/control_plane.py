"""etcd, API server, controller manager and scheduler: their flags and their order."""

from __future__ import annotations

import http.client
import ssl
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.box.audit import AuditLog
from tests.cluster.box.node import LEASE_SECONDS
from tests.cluster.box.pki import Pki
from tests.cluster.box.sandbox import Sandbox
from tests.cluster.box.slot import Slot
from tests.cluster.box.wait import wait_for

API_PORT = 6443
# Tokens for anything but the API server name their audience; this is the API server's own.
ISSUER = "https://kubernetes.default.svc.cluster.local"
LOCAL = f"https://127.0.0.1:{API_PORT}"


@dataclass(frozen=True)
class ControlPlane:
    """Starts the four programs in a sandbox; `programs` is where they were built."""

    sandbox: Sandbox
    slot: Slot
    programs: Path
    pki: Pki
    audit: AuditLog

    @property
    def url(self) -> str:
        """The API server's, for everybody."""
        return f"https://{self.sandbox.cable.inner}:{API_PORT}"

    def start(self) -> None:
        """Until `/readyz` says yes, with controller manager and scheduler started after that.

        Raises `ProgramError` with the log of what ended, or `TimeoutError` with the API server's.
        """
        self.sandbox.start("etcd", self._etcd())
        self.start_api_server()
        # Earlier, the controller manager ends on a 403: the default roles are not made yet.
        for name in ("kube-controller-manager", "kube-scheduler"):
            self.sandbox.start(name, self._manager(name))

    def start_api_server(self) -> None:
        """Start it, and wait until it is ready; again, after `kill_api_server`."""
        self.sandbox.start("kube-apiserver", self._api_server())
        try:
            wait_for("the API server is ready", self._is_ready, timeout=60)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.sandbox.tail('kube-apiserver')}") from None

    def kill_api_server(self) -> None:
        """Kill it: its connections break, and nobody listens at its address."""
        self.sandbox.kill("kube-apiserver")

    def _is_ready(self) -> bool:
        for name in ("etcd", "kube-apiserver"):
            self.sandbox.check_running(name)
        context = ssl.create_default_context(cafile=str(self.pki.certificate("ca")))
        context.load_cert_chain(self.pki.certificate("admin"), self.pki.key("admin"))
        address = str(self.sandbox.cable.inner)
        connection = http.client.HTTPSConnection(address, API_PORT, context=context, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def _etcd(self) -> list[str]:
        client = "http://127.0.0.1:2379"
        return [
            *("etcd", f"--data-dir={self.sandbox.run_dir / 'etcd'}", "--name=box"),
            *(f"--listen-client-urls={client}", f"--advertise-client-urls={client}"),
            "--listen-peer-urls=http://127.0.0.1:2380",
            "--initial-advertise-peer-urls=http://127.0.0.1:2380",
            "--initial-cluster=box=http://127.0.0.1:2380",
            # Tests beside this fill the disk's queue, and nobody needs the data after a power cut.
            "--unsafe-no-fsync",
        ]

    def _api_server(self) -> list[str]:
        pki = self.pki
        return [
            str(self.programs / "kube-apiserver"),
            "--etcd-servers=http://127.0.0.1:2379",
            f"--advertise-address={self.sandbox.cable.inner}",
            f"--secure-port={API_PORT}",
            f"--service-cluster-ip-range={self.slot.service_network}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            f"--client-ca-file={pki.certificate('ca')}",
            f"--tls-cert-file={pki.certificate('apiserver')}",
            f"--tls-private-key-file={pki.key('apiserver')}",
            f"--service-account-issuer={ISSUER}",
            f"--api-audiences={ISSUER}",
            f"--service-account-key-file={pki.certificate('service-accounts')}",
            f"--service-account-signing-key-file={pki.key('service-accounts')}",
            f"--kubelet-certificate-authority={pki.certificate('ca')}",
            f"--kubelet-client-certificate={pki.certificate('apiserver-kubelet-client')}",
            f"--kubelet-client-key={pki.key('apiserver-kubelet-client')}",
            # Without it logs and exec look the node's name up in a DNS that is not there.
            "--kubelet-preferred-address-types=InternalIP",
            f"--requestheader-client-ca-file={pki.certificate('front-proxy-ca')}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={pki.certificate('front-proxy-client')}",
            f"--proxy-client-key-file={pki.key('front-proxy-client')}",
            "--enable-aggregator-routing=true",
            *self.audit.flags(),
        ]

    def _manager(self, name: str) -> list[str]:
        config = self.pki.kubeconfig(name, LOCAL, self.pki.directory / f"{name}.kubeconfig")
        command = [
            str(self.programs / name),
            f"--kubeconfig={config}",
            f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}",
            "--leader-elect=false",
            # The default rates make a fresh cluster wait 6 seconds for its service accounts.
            *("--kube-api-qps=1000", "--kube-api-burst=2000"),
        ]
        if name == "kube-controller-manager":
            command += [
                f"--root-ca-file={self.pki.certificate('ca')}",
                f"--service-account-private-key-file={self.pki.key('service-accounts')}",
                "--use-service-account-credentials=true",
                # A silent node is NotReady after this time: 50 s by default.
                f"--node-monitor-grace-period={2 * LEASE_SECONDS}s",
            ]
        return command
