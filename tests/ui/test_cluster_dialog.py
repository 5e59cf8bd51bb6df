"""JupyterLab where jobs go to a cluster: what the dialog tells, and why a job waits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from job_runner.protocol import times
from jupyter_to_job.backends.kubernetes.device_counts import PodRequests
from jupyter_to_job.backends.kubernetes.nodes import NodeRecord
from jupyter_to_job.controller.pod_planner import PodPlanner
from jupyter_to_job.domain.job import ClusterEvent
from jupyter_to_job.domain.preflight import Problem
from jupyter_to_job.exchange import FileExchange
from tests.gateways import FullCluster, context_of, serving
from tests.pretend_checks import PodsWithVolumes, PretendChecks, mounted_claim
from tests.ui.lab import DARK, Lab
from tests.ui.steps import (
    ask,
    asked,
    dialog,
    flavor,
    job_names,
    open_notebook,
    problems,
    row,
    send_button,
    show,
    told_name,
)

FULL = Problem(
    "over_quota",
    "The namespace's quota 'gpus' has no room now: the job asks for 1 nvidia.com/gpu, "
    "and 2 of 2 are in use.",
    "It waits until others have ended.",
    blocking=False,
)
REFUSED = Problem(
    "cluster_refuses",
    "A limit range of the namespace refuses it: maximum memory usage per Container is 4Gi, "
    "but limit is 8Gi.",
    "Choose another flavor or device, or ask your administrator.",
)


@pytest.fixture
def checks() -> PretendChecks:
    return PretendChecks(FULL)


@pytest.fixture
def pods() -> PodsWithVolumes:
    return PodsWithVolumes()


CATALOG = """
apiVersion: jupyter-to-job.io/v1
default: {flavor: small, device: cpu}
flavors:
  small: {title: Small, description: Quick checks, cpu: 1, memory: 2Gi, devices: [cpu]}
  medium: {title: Medium, cpu: 4, memory: 8Gi, max_runtime: 12h, devices: [cpu]}
  gpu-1: {title: One GPU, cpu: 4, memory: 16Gi, gpus: 1, max_runtime: 1d, devices: [t4, a100, spot]}
devices:
  cpu: {title: CPU}
  t4: {title: NVIDIA T4, resource: nvidia.com/gpu, isolation: full, node_selector: {product: T4}}
  a100: {title: NVIDIA A100, resource: nvidia.com/gpu, node_selector: {product: A100}}
  spot: {title: NVIDIA T4 of the cloud, resource: nvidia.com/gpu, node_selector: {product: none},
         autoscaled: true}
"""


def two_nodes() -> PodPlanner:
    """Return a planner that knows two nodes with four GPUs each, three of which are in use."""
    there = {"cpu": Decimal(16), "memory": Decimal(64 << 30), "nvidia.com/gpu": Decimal(4)}
    nodes = [
        NodeRecord(name, name, {"product": name}, capacity=there, allocatable=there)
        for name in ("T4", "A100")
    ]
    busy = PodRequests("others", "busy", "busy", "T4", {"nvidia.com/gpu": Decimal(3)})
    return PodPlanner(lambda: nodes, requests=lambda: [busy])


class PretendEvents:
    """Says the same of every job, in place of `RecentEvents`."""

    def __init__(self) -> None:
        self.found: list[ClusterEvent] | None = []

    def of(self, _name: str) -> list[ClusterEvent] | None:
        return self.found


def event(minutes_ago: float, reason: str, message: str) -> ClusterEvent:
    moment = datetime.now(timezone.utc) - timedelta(minutes=minutes_ago)
    return ClusterEvent(times.rfc3339(moment), reason, message)


@pytest.fixture
def events() -> PretendEvents:
    return PretendEvents()


@pytest.fixture
def lab(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    checks: Any,
    events: Any,
    pods: PodsWithVolumes,
) -> Iterator[Lab]:
    """A JupyterLab whose jobs go through a gateway to a cluster that has no room."""
    exchange = FileExchange(tmp_path / "controller")
    exchange.prepare()
    token = tmp_path / "token"
    token.write_text("ada")
    catalog = tmp_path / "flavors.yaml"
    catalog.write_text(CATALOG)
    made = context_of(
        exchange, identities=pods, catalog=catalog, planner=two_nodes(), backend=FullCluster
    )
    with (
        made as context,
        serving(replace(context, checks=checks, events=events)) as url,
    ):
        variables = {
            "JUPYTER_TO_JOB_GATEWAY": url,
            "JUPYTER_TO_JOB_GATEWAY_TOKEN_FILE": str(token),
        }
        base = tmp_path / "lab"
        base.mkdir()
        opened = Lab(base, variables=variables, settings=getattr(request, "param", {}))
        with opened.running() as server:
            yield server


@pytest.mark.parametrize("lab", [{}, DARK], ids=["light", "dark"], indirect=True)
def test_it_says_before_send_what_a_job_would_meet(
    request: pytest.FixtureRequest,
    lab: Lab,
    checks: PretendChecks,
    pods: PodsWithVolumes,
    open_lab: Callable[[], Page],
    screenshot: Callable[[str], None],
) -> None:
    theme = request.node.callspec.id.rpartition("-")[2]
    pods.mounts = [mounted_claim(lab.root, "ReadWriteOncePod")]
    lab.write("reports/study.ipynb", "import helpers", "print(helpers.WORD)")
    (lab.root / "reports" / "helpers.py").write_text("WORD = 'helped'")
    page = open_lab()
    panel = open_notebook(page, "reports", "study.ipynb")
    ask(page, panel)

    place = dialog(page).get_by_text(re.compile("^Isolated: the run works"))
    expect(place).to_contain_text("1 file goes along with the notebook.")
    expect(place).to_contain_text("come back in a folder beside the result.")
    left = problems(page).filter(has_text=f"{lab.root} stays behind")
    expect(left).to_contain_text("only one pod at a time may use its claim")
    expect(problems(page).filter(has_text="has no room now")).to_be_visible()
    expect(send_button(page)).to_be_enabled()  # it may pass
    screenshot(f"dialog-cluster-isolated-{theme}")

    checks.found = [REFUSED]
    flavor(page, "Medium").click()
    asked(page)
    expect(problems(page).filter(has_text="limit range")).to_be_visible()
    expect(send_button(page)).to_be_disabled()
    expect(send_button(page)).to_have_accessible_description(re.compile("limit range"))
    screenshot(f"dialog-cluster-refused-{theme}")

    checks.found, pods.mounts = [], [mounted_claim(lab.root, "ReadWriteMany")]
    flavor(page, "Small").click()
    asked(page)
    place = dialog(page).get_by_text(re.compile("^The run works in the notebook.s own folder."))
    expect(place).to_contain_text(f"sees these folders as you do here: {lab.root}.")
    expect(problems(page)).to_have_count(0)
    screenshot(f"dialog-cluster-mounted-{theme}")
    send_button(page).click()
    expect(dialog(page)).to_have_count(0)
    assert checks.asked[-1].isolated is False
    assert job_names(lab) == set()  # they are the controller's


def test_what_has_changed_before_send_is_shown_and_not_sent(
    lab: Lab, checks: PretendChecks, pods: PodsWithVolumes, open_lab: Callable[[], Page]
) -> None:
    """The claim comes along when the dialog says so, and stays behind a moment later."""
    checks.found, pods.mounts = [], [mounted_claim(lab.root, "ReadWriteMany")]
    lab.write("reports/study.ipynb", "import helpers", "print(helpers.WORD)")
    (lab.root / "reports" / "helpers.py").write_text("WORD = 'helped'")
    page = open_lab()
    ask(page, open_notebook(page, "reports", "study.ipynb"))
    expect(dialog(page).get_by_text(re.compile("^The run works in the notebook"))).to_be_visible()

    pods.mounts = [mounted_claim(lab.root, "ReadWriteOncePod")]
    send_button(page).click()
    changed = dialog(page).get_by_text("What the job would get has changed since you were told")
    expect(changed).to_contain_text("which folders the job sees")
    place = dialog(page).get_by_text(re.compile("^Isolated: the run works"))
    expect(place).to_contain_text("1 file goes along with the notebook.")
    expect(problems(page).filter(has_text=f"{lab.root} stays behind")).to_be_visible()

    send_button(page).click()
    expect(dialog(page)).to_have_count(0)
    expect(row(show(page), told_name(page))).to_be_visible()
    assert checks.asked[-1].isolated


@pytest.mark.parametrize("lab", [{}, DARK], ids=["light", "dark"], indirect=True)
def test_it_says_how_many_are_free_and_why_a_job_waits(
    request: pytest.FixtureRequest,
    lab: Lab,
    checks: PretendChecks,
    events: PretendEvents,
    open_lab: Callable[[], Page],
    screenshot: Callable[[str], None],
) -> None:
    theme = request.node.callspec.id.rpartition("-")[2]
    checks.found = []
    lab.write("reports/study.ipynb", "print('hello')")
    page = open_lab()
    panel = open_notebook(page, "reports", "study.ipynb")
    ask(page, panel)
    flavor(page, "One GPU").click()
    asked(page)
    counts = dialog(page).locator(".jp-ToJobDialog-free")
    expect(counts).to_have_text(
        ["1 of 4 free now", "4 of 4 free now", "0 free now, more are added when needed"]
    )
    screenshot(f"dialog-cluster-devices-{theme}")

    events.found = [
        event(2, "SuccessfulCreate", "Created pod: study-abcdefgh-x7k2p"),
        event(0.5, "FailedScheduling", FullCluster.says),
    ]
    send_button(page).click()
    expect(dialog(page)).to_have_count(0)
    name = told_name(page)
    line = row(show(page), name)
    expect(line.get_by_text("Queued", exact=True)).to_be_visible()
    line.get_by_text("Why it waits").click()
    told = line.locator(".jp-ToJob-wait li")
    expect(told).to_have_count(2)
    expect(told.first).to_contain_text("No machine can take it now.")
    expect(told.first).not_to_contain_text(FullCluster.says)  # the line above says it
    expect(told.last).to_contain_text("Its pod was created.")
    expect(line.get_by_text(re.compile(r"^Submitted at \d\d:\d\d, "))).to_be_visible()
    screenshot(f"panel-cluster-waits-{theme}")

    events.found = None
    line.get_by_text("Why it waits").click()
    expect(told).to_have_count(0)
    line.get_by_text("Why it waits").press("Enter")  # with the keyboard, too
    expect(line.get_by_text("The cluster does not answer now.")).to_be_visible()
