"""What our network policies leave open; tests/cluster asks an API server whom they select."""

from __future__ import annotations

import pytest

from ..pretend_api_server import K8S, shipped

FOLDERS = sorted(path.parent.name for path in (K8S / "network").glob("*/policy.yaml"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_dns_is_reached_at_the_ports_of_its_pods(folder: str) -> None:
    """A policy counts the port behind the Service: OpenShift's is no 53."""
    spec = shipped(f"network/{folder}/policy.yaml")["NetworkPolicy"]["spec"]
    anywhere = [p for rule in spec["egress"] if "to" not in rule for p in rule["ports"]]
    found = {(port.get("protocol", "TCP"), port["port"]) for port in anywhere}
    assert found >= {("UDP", 53), ("TCP", 53), ("UDP", 5353), ("TCP", 5353)}


def test_each_folder_has_its_policy() -> None:
    assert FOLDERS == ["couriers", "doctor", "gateway", "jobs"]
