"""The cluster's certificates and the credential files made from them."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True)
class Pki:
    """A directory with `<name>.crt` and `<name>.key` for each name; `ca` signs all the others."""

    directory: Path

    def certificate(self, name: str) -> Path:
        """Path of a certificate."""
        return self.directory / f"{name}.crt"

    def key(self, name: str) -> Path:
        """Path of a private key."""
        return self.directory / f"{name}.key"

    def authority(self, name: str) -> None:
        """A self-signed authority."""
        self._request(name, f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def issue(self, name: str, subject: str, addresses: str = "", by: str = "ca") -> None:
        """A client's certificate; a server's too where `addresses` (subjectAltName) is given."""
        usage = "clientAuth,serverAuth" if addresses else "clientAuth"
        extensions = [f"extendedKeyUsage={usage}", "basicConstraints=critical,CA:FALSE"]
        if addresses:
            extensions.append(f"subjectAltName={addresses}")
        arguments = [part for extension in extensions for part in ("-addext", extension)]
        signer = ("-CA", str(self.certificate(by)), "-CAkey", str(self.key(by)))
        self._request(name, subject, *signer, *arguments)

    def _request(self, name: str, subject: str, *arguments: str) -> None:
        files = ("-keyout", str(self.key(name)), "-out", str(self.certificate(name)))
        answer = subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                *CURVE,
                "-days",
                "30",
                "-subj",
                subject,
                *files,
                *arguments,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if answer.returncode:
            raise RuntimeError(f"openssl could not make {name}: {answer.stderr}")

    def kubeconfig(self, name: str, server: str, path: Path) -> Path:
        """Write a kubeconfig that holds everything it needs, for the client certificate `name`."""

        def inline(file: Path) -> str:
            return base64.b64encode(file.read_bytes()).decode()

        user = {
            "client-certificate-data": inline(self.certificate(name)),
            "client-key-data": inline(self.key(name)),
        }
        cluster = {"server": server, "certificate-authority-data": inline(self.certificate("ca"))}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "box", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "box", "context": {"cluster": "box", "user": name}}],
            "current-context": "box",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(document, indent=1))
        return path


def create(directory: Path, server_addresses: list[str], nodes: Mapping[str, IPv4Address]) -> Pki:
    """All that a cluster needs; `server_addresses` are where the API server is reached.

    A node's certificate has the node's name. `nodes` are the addresses by name.
    """
    directory.mkdir()
    pki = Pki(directory)
    pki.authority("ca")
    pki.authority("front-proxy-ca")
    alternatives = [f"IP:{a}" if a[0].isdigit() else f"DNS:{a}" for a in server_addresses]
    pki.issue("apiserver", "/CN=kube-apiserver", ",".join(alternatives))
    for name, address in nodes.items():
        pki.issue(name, f"/O=system:nodes/CN=system:node:{name}", f"IP:{address}")
    pki.issue("apiserver-kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client")
    pki.issue("front-proxy-client", "/CN=front-proxy-client", by="front-proxy-ca")
    for administrator in ("admin", "coredns"):
        pki.issue(administrator, f"/O=system:masters/CN={administrator}")
    for component in ("kube-controller-manager", "kube-scheduler", "kube-proxy"):
        pki.issue(component, f"/CN=system:{component}")
    # Its key signs service-account tokens; its certificate carries the key that verifies them.
    pki.authority("service-accounts")
    return pki
