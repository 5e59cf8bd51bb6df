"""k8s/monitoring: alerts and dashboard ask for metrics that there are, and fire when they should.

Prometheus' own tool decides what is valid. Where it is missing, its tests say so.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client import generate_latest

from jupyter_to_job.controller.metrics import Metrics

from .. import monitoring
from ..docs.pages import page

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is missing: apt-get install prometheus (packages.txt)"
)
OPERATIONS = page("docs/operations.md")


def promtool(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    assert PROMTOOL is not None
    return subprocess.run(
        [PROMTOOL, *arguments], input=stdin, capture_output=True, text=True, check=False
    )


def families() -> dict[str, str]:
    """Return the type of each metric by its name, as a scrape says it."""
    text = generate_latest(Metrics().registry).decode()
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))


def sample_names() -> set[str]:
    """Return every name under which a sample of some metric can be asked for."""
    names = set()
    for name, kind in families().items():
        suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        names |= {name + suffix for suffix in suffixes}
    return names


@needs_promtool
def test_the_rules_are_valid() -> None:
    checked = promtool("check", "rules", "--lint=all", "--lint-fatal", str(monitoring.RULES))
    assert checked.returncode == 0, checked.stdout + checked.stderr


@needs_promtool
def test_each_alert_fires_when_it_should() -> None:
    checked = promtool("test", "rules", str(monitoring.RULES_TEST))
    assert checked.returncode == 0, checked.stdout + checked.stderr


@needs_promtool
@pytest.mark.parametrize("alert", [rule["alert"] for rule in monitoring.alerts()])
def test_the_tests_of_the_rules_notice_an_alert_that_never_fires(
    alert: str, tmp_path: Path
) -> None:
    document = yaml.safe_load(monitoring.RULES.read_text())
    for rule in document["groups"][0]["rules"]:
        if rule["alert"] == alert:
            rule["expr"] = f"({rule['expr']}) and vector(0) > 1"
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(document))
    shutil.copy(monitoring.RULES_TEST, tmp_path)
    checked = promtool("test", "rules", str(tmp_path / monitoring.RULES_TEST.name))
    assert checked.returncode != 0
    assert alert in checked.stdout + checked.stderr


@needs_promtool
def test_the_queries_of_the_dashboard_are_valid(tmp_path: Path) -> None:
    rules = [
        {"record": f"query{number}", "expr": query}
        for number, (_, query) in enumerate(monitoring.dashboard_queries())
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    checked = promtool("check", "rules", str(file))
    assert checked.returncode == 0, checked.stdout + checked.stderr


@needs_promtool
def test_prometheus_has_nothing_against_the_metrics() -> None:
    ours = "".join(
        line
        for line in generate_latest(Metrics().registry).decode().splitlines(keepends=True)
        if "jupyter_to_job" in line
    )
    checked = promtool("check", "metrics", stdin=ours)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_dashboard_and_alerts_ask_for_metrics_that_there_are() -> None:
    queries = [query for _, query in monitoring.dashboard_queries()]
    queries += [rule["expr"] for rule in monitoring.alerts()]
    asked = set().union(*map(monitoring.metrics_in, queries))
    assert len(asked) > 20
    assert asked - sample_names() == set()


def test_every_metric_of_ours_is_on_the_dashboard() -> None:
    asked = set().union(*(monitoring.metrics_in(q) for _, q in monitoring.dashboard_queries()))
    for name, kind in families().items():
        if name.startswith("jupyter_to_job") and not name.endswith("_info"):
            samples = {f"{name}_bucket", f"{name}_count"} if kind == "histogram" else {name}
            assert samples & asked, f"{name} is on no panel"


def test_panels_do_not_overlap_and_say_what_they_show() -> None:
    panels = json.loads(monitoring.DASHBOARD.read_text())["panels"]
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        rows = range(place["y"], place["y"] + place["h"])
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in rows}
        assert not cells & taken and place["x"] + place["w"] <= 24
        taken |= cells
        assert panel["type"] == "row" or panel["description"]
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_every_metric_is_documented_and_no_other() -> None:
    documented = OPERATIONS.first_names("### Metrics")
    ours = {name for name in families() if name.startswith("jupyter_to_job")}
    assert set(documented) == ours
    assert len(documented) == len(ours)


def test_every_label_is_documented() -> None:
    rows = {row[0].strip("`"): row for row in OPERATIONS.table("### Metrics")}
    labels = {m._name: m._labelnames for m in vars(Metrics()).values() if hasattr(m, "_labelnames")}
    for name, row in rows.items():
        known = labels.get(name.removesuffix("_total").removesuffix("_info"), ())
        named = tuple(re.findall(r"`(\w+)`", row[1]))
        assert named == (("version",) if name.endswith("_info") else tuple(known)), name


def test_every_alert_says_what_to_do() -> None:
    names = [rule["alert"] for rule in monitoring.alerts()]
    assert OPERATIONS.first_names("### Alerts") == names
    assert all(len(row[-1]) > 40 for row in OPERATIONS.table("### Alerts"))


def test_the_operators_rules_are_the_same() -> None:
    """After a change: `scripts/manifests`."""
    assert monitoring.OPERATOR_RULE.read_text() == monitoring.operator_rule()


def test_no_metric_has_a_label_for_owners_or_jobs() -> None:
    known = {"state", "reason", "flavor", "device", "check", "queue", "resource", "verb", "code"}
    known |= {"method", "route"}
    labels = [set(m._labelnames) for m in vars(Metrics()).values() if hasattr(m, "_labelnames")]
    assert set().union(*labels) <= known
