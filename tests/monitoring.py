"""What k8s/monitoring is made of, for its tests; `scripts/manifests` writes the operator's rules.

The rules are written once, as Prometheus reads them: its operator wants the same in an object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[1] / "k8s" / "monitoring"
RULES, RULES_TEST = FOLDER / "rules.yaml", FOLDER / "rules-test.yaml"
DASHBOARD = FOLDER / "dashboard.json"
OPERATOR_RULE = FOLDER / "operator" / "prometheus-rule.yaml"
_METRIC = re.compile(r"\b(?:jupyter_to_job|process|python)_[a-z_]+\b")
_PLACEHOLDERS = {"$__rate_interval": "5m", "$job": ".+", "$instance": ".+"}


def operator_rule() -> str:
    """Return the text of the PrometheusRule with our rules."""
    manifest = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "jupyter-to-job", "namespace": "jupyter-to-job"},
        "spec": yaml.safe_load(RULES.read_text()),
    }
    head = "# Written by scripts/manifests from ../rules.yaml.\n"
    return head + yaml.safe_dump(manifest, sort_keys=False, width=100)


def alerts() -> list[dict[str, Any]]:
    """Return the alerts of our rules."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def dashboard_queries() -> Iterator[tuple[str, str]]:
    """Yield title and query of everything that the dashboard asks, as Prometheus would get it."""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            query = target["expr"]
            for placeholder, value in _PLACEHOLDERS.items():
                query = query.replace(placeholder, value)
            yield panel["title"], query


def metrics_in(query: str) -> set[str]:
    """Return the names of metrics that a query has."""
    return set(_METRIC.findall(query))


if __name__ == "__main__":
    OPERATOR_RULE.write_text(operator_rule())
