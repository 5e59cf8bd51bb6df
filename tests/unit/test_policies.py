"""The policies of k8s/ are written in the CEL of the oldest Kubernetes that we support."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from jupyter_to_job.backends.kubernetes.records import QUEUE_LABEL
from jupyter_to_job.cli.checks.cluster.versions import OLDEST, OLDEST_TESTED

ROOT = Path(__file__).parents[2]
POLICIES = sorted((ROOT / "k8s" / "policies").glob("*.yaml"))
VARIABLE = r"\s*\w+\s*,"
SINCE = {
    r"\b(ip|isIP|cidr|isCIDR)\(": 30,
    r"\bformat\.|\.(fieldSelector|labelSelector)\(": 31,
    r"\.(transformList|transformMap|transformMapEntry|existsOne)\(": 32,
    rf"\.(all|exists|exists_one)\({VARIABLE}{VARIABLE}": 32,
    r"\b(semver|isSemver)\(": 33,
    r"\blists\.|\.(distinct|first|flatten|last|reverse|slice|sort|sortBy)\(": 34,
}
"""What came to CEL in which minor version: k8s.io/apiserver/pkg/cel/environment/base.go.

A server takes new objects only with what its predecessor has, too.
"""


def expressions(value: Any) -> Iterator[str]:
    """Yield every expression of a document."""
    if isinstance(value, list):
        for each in value:
            yield from expressions(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key.lower().endswith("expression") and isinstance(each, str):
                yield each
            else:
                yield from expressions(each)


def too_new(expression: str) -> list[str]:
    """Return what the oldest Kubernetes does not know of an expression."""
    found = (re.search(pattern, expression) for pattern, since in SINCE.items() if since >= OLDEST)
    return [match[0] for match in found if match]


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_the_oldest_kubernetes_knows_every_function(path: Path) -> None:
    found = [e for document in yaml.safe_load_all(path.read_text()) for e in expressions(document)]
    assert found or path.stem == "kustomization"
    assert {e: names for e in found if (names := too_new(e))} == {}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a.transformList(i, v, v)", [".transformList("]),
        ("a.exists(i, v, i == v)", [".exists(i, v,"]),
        ("a.all( key , value , true)", [".all( key , value ,"]),
        ("a.existsOne(v, v == 1)", [".existsOne("]),
        ("a.sort().join(', ')", [".sort("]),
        ("a.exists(v, v in [1, 2]) && a.all(v, f(v, v))", []),
        ("a.map(v, v > 1, v).filter(v, v < 3).exists_one(v, v == 2)", []),
    ],
)
def test_what_is_too_new(expression: str, expected: list[str]) -> None:
    assert too_new(expression) == expected


def variable(policy: str, name: str) -> list[str]:
    """Return a variable of a policy that is a list of texts."""
    document, _ = yaml.safe_load_all((ROOT / "k8s" / "policies" / f"{policy}.yaml").read_text())
    (expression,) = (v["expression"] for v in document["spec"]["variables"] if v["name"] == name)
    return re.findall(r"'([^']*)'", expression)


def test_what_gives_a_share_or_a_queue_is_kept() -> None:
    """tests/cluster/test_own_jobs.py sees it refused."""
    kept = variable("own-jobs", "shares")
    assert {QUEUE_LABEL, *variable("no-devices", "annotations")} <= {*kept}


def test_the_guide_names_the_versions_that_are_checked() -> None:
    guide = (ROOT / "docs" / "install.md").read_text()
    assert f"Kubernetes 1.{OLDEST} or newer; it is tested with 1.{OLDEST_TESTED}." in guide
