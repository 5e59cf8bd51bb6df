"""Which pods a NetworkPolicy of k8s/network is about, as the API server's selectors say.

The box enforces none. So the API server checks each policy in a dry run, and tells for each of its
selectors which pods it has.
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any

import yaml

from tests.cluster.box.cluster import Cluster
from tests.cluster.product import NAMESPACE, ROOT, TEAM

Pod = tuple[str, str]
"""Namespace and name."""
FOLDERS = {"gateway": NAMESPACE, "couriers": TEAM, "jobs": TEAM, "doctor": TEAM}
"""The folders of k8s/network, and the namespace that each is for here."""


def policy_of(cluster: Cluster, folder: str) -> Any:
    """Return the policy of a folder as the API server would store it."""
    path = ROOT / "k8s" / "network" / folder
    manifest = yaml.safe_load(cluster.kubectl("kustomize", str(path)))
    manifest["metadata"]["namespace"] = FOLDERS[folder]
    return cluster.create(manifest, trial=True)


def selected(cluster: Cluster, policy: Any) -> set[Pod]:
    """Return the pods whose traffic a policy is about."""
    return pods(cluster, policy["metadata"]["namespace"], policy["spec"]["podSelector"])


def peers(cluster: Cluster, namespace: str, among: list[Any]) -> set[Pod]:
    """Return the pods that peers select, in a policy of this namespace."""
    found: set[Pod] = set()
    for peer in among:
        if "ipBlock" in peer:
            continue
        names = [namespace]
        if "namespaceSelector" in peer:
            selector = _as_text(peer["namespaceSelector"])
            names = [n["metadata"]["name"] for n in cluster.items("namespaces", selector=selector)]
        for name in names:
            found |= pods(cluster, name, peer.get("podSelector", {}))
    return found


def pods(cluster: Cluster, namespace: str, selector: Any) -> set[Pod]:
    """Return the pods of a namespace that a selector has."""
    found = cluster.items("pods", namespace, _as_text(selector))
    return {(namespace, pod["metadata"]["name"]) for pod in found}


def admits_address(among: list[Any], address: str) -> bool:
    """Tell whether one of the peers is a block with this address."""
    blocks = [peer["ipBlock"] for peer in among if "ipBlock" in peer]
    return any(
        ip_address(address) in ip_network(block["cidr"])
        and not any(ip_address(address) in ip_network(e) for e in block.get("except", []))
        for block in blocks
    )


def ports(rules: list[Any]) -> set[tuple[str, int]]:
    """Return protocols and ports of rules that are for every address."""
    return {
        (port["protocol"], port["port"])
        for rule in rules
        if "to" not in rule and "from" not in rule
        for port in rule["ports"]
    }


def _as_text(selector: Any) -> str:
    """Return a selector of labels as the API takes it in a query; "" has all."""
    parts = [f"{key}={value}" for key, value in selector.get("matchLabels", {}).items()]
    for each in selector.get("matchExpressions", []):
        values = f"({','.join(each.get('values', []))})"
        parts.append(
            {
                "Exists": each["key"],
                "DoesNotExist": f"!{each['key']}",
                "In": f"{each['key']} in {values}",
                "NotIn": f"{each['key']} notin {values}",
            }[each["operator"]]
        )
    return ",".join(parts)
