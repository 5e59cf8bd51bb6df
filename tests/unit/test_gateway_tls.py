"""HTTPS between a gateway and its clients: what they trust, and what happens with the certificate.

Agents and couriers get the authority's certificate in their manifests: see `test_manifest.py`.
"""

from __future__ import annotations

import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from jupyter_to_job.agent.gateway_connection import GatewayConnection
from jupyter_to_job.controller.certificate import Certificate
from jupyter_to_job.domain.errors import BadInput, Unavailable
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.gateway import Gateway

from ..cluster.box.pki import Pki
from ..gateways import context_of, serving
from . import exchanges

JOB = "train-abcdefgh"
pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the keys")


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    """Two authorities: the gateway's, and one that nobody asked."""
    made = Pki(tmp_path)
    made.authority("ca")
    made.authority("other")
    return made


@pytest.fixture
def secret(pki: Pki, tmp_path: Path) -> Path:
    """The folder with the mounted secret."""
    folder = tmp_path / "secret"
    folder.mkdir()
    issue(pki, folder, by="ca")
    return folder


def issue(pki: Pki, folder: Path, by: str) -> None:
    """Write a new certificate, and its authority's, as a renewed secret has them."""
    pki.issue("gateway", "/CN=gateway", "IP:127.0.0.1", by=by)
    shutil.copy(pki.certificate("gateway"), folder / "tls.crt")
    shutil.copy(pki.key("gateway"), folder / "tls.key")
    shutil.copy(pki.certificate(by), folder / "ca.crt")


@pytest.fixture
def certificate(secret: Path) -> Certificate:
    return Certificate(str(secret))


@pytest.fixture
def token(tmp_path: Path) -> Path:
    made = tmp_path / "token"
    made.write_text("ada")
    return made


@pytest.fixture
def url(tmp_path: Path, certificate: Certificate) -> Iterator[str]:
    exchange = FileExchange(tmp_path / "exchange")
    assert exchange.create(exchanges.request(JOB, owner="bob"), b"{}", {})
    with context_of(exchange) as context, serving(context, certificate.context) as address:
        yield address


def test_a_dev_pod_trusts_the_authority_that_it_was_told(url: str, token: Path, pki: Pki) -> None:
    answer = Gateway(url, token, str(pki.certificate("ca"))).call("GET", "jobs")
    assert answer.json()["jobs"] == []


@pytest.mark.parametrize("trusted", ["", "other"])
def test_a_dev_pod_sends_no_token_to_others(url: str, token: Path, pki: Pki, trusted: str) -> None:
    ca_file = str(pki.certificate(trusted)) if trusted else ""
    with pytest.raises(Unavailable, match="certificate verify failed") as caught:
        Gateway(url, token, ca_file).call("GET", "jobs")
    assert "JUPYTER_TO_JOB_GATEWAY_CA" in str(caught.value.hint)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_without_certificates_is_told(
    token: Path, tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "ca.crt"
    if content is not None:
        file.write_text(content)
    with pytest.raises(BadInput, match=f"certificates cannot be read: {file}"):
        Gateway("https://gateway", token, str(file))


def test_an_agent_trusts_the_authority_in_its_manifest(
    url: str, tmp_path: Path, certificate: Certificate
) -> None:
    token = tmp_path / "agents-token"
    token.write_text(f"{JOB}/pod-1")
    trusting = GatewayConnection(url, token, JOB, certificate.authority())
    assert b"".join(trusting.read("request.json"))
    with pytest.raises(Unavailable, match="certificate verify failed"):
        b"".join(GatewayConnection(url, token, JOB).read("request.json"))


def test_a_gateway_with_a_certificate_speaks_no_plain_http(url: str) -> None:
    with pytest.raises(OSError, match=r"closed|reset"):
        urlopen(url.replace("https", "http") + "/api/health", timeout=10)


def test_a_renewed_certificate_is_taken_up(
    url: str, token: Path, pki: Pki, certificate: Certificate, secret: Path
) -> None:
    issue(pki, secret, by="other")
    certificate.reload()
    assert Gateway(url, token, str(pki.certificate("other"))).call("GET", "jobs")
    assert certificate.authority() == pki.certificate("other").read_text()


def test_a_broken_secret_changes_nothing(
    url: str, token: Path, pki: Pki, certificate: Certificate, secret: Path
) -> None:
    shutil.copy(pki.key("other"), secret / "tls.key")  # of another certificate
    with pytest.raises(BadInput, match="cannot be used"):
        certificate.reload()
    assert Gateway(url, token, str(pki.certificate("ca"))).call("GET", "jobs")
    issue(pki, secret, by="other")
    certificate.reload()
    assert Gateway(url, token, str(pki.certificate("other"))).call("GET", "jobs")


def test_without_a_folder_it_is_plain_http() -> None:
    assert (Certificate("").context, Certificate("").authority()) == (None, "")


def test_proxies_of_the_environment_see_no_token(
    tmp_path: Path, token: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # where nobody listens
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    exchange = FileExchange(tmp_path / "exchange")
    exchange.prepare()
    with context_of(exchange) as context, serving(context) as url:
        assert Gateway(url, token).call("GET", "jobs").json()["jobs"] == []


def test_tls_is_not_older_than_1_2(certificate: Certificate) -> None:
    assert certificate.context is not None
    assert certificate.context.minimum_version >= ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("in_between", [None, "no certificate"], ids=["gone", "broken"])
def test_a_dev_pod_trusts_the_authority_that_is_in_its_file_now(
    url: str,
    token: Path,
    pki: Pki,
    certificate: Certificate,
    secret: Path,
    tmp_path: Path,
    in_between: str | None,
) -> None:
    """As long as its file is broken, it trusts the one that was there before."""
    ca_file = tmp_path / "trusted.crt"
    shutil.copy(pki.certificate("ca"), ca_file)
    gateway = Gateway(url, token, str(ca_file))

    def connect() -> Any:
        """Ask through a new connection, which is not kept."""
        return gateway.call("GET", "jobs", headers={"Connection": "close"}).json()["jobs"]

    with gateway.stream("GET", "events") as events:
        ca_file.unlink()
        if in_between is not None:
            ca_file.write_text(in_between)
        assert connect() == []
        issue(pki, secret, by="other")
        certificate.reload()
        with pytest.raises(Unavailable, match="certificate verify failed"):
            connect()
        renewed = tmp_path / "renewed.crt"
        shutil.copy(pki.certificate("other"), renewed)
        renewed.replace(ca_file)
        assert connect() == []
        assert next(events.iter_bytes())  # what had begun goes on
    issue(pki, secret, by="ca")
    certificate.reload()
    with pytest.raises(Unavailable, match="certificate verify failed"):
        connect()
