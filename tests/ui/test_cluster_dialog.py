"""The dialog where jobs go to a cluster: what the run would see, and what would refuse it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from jupyter_to_job.domain.preflight import Problem
from jupyter_to_job.exchange import FileExchange
from tests.gateways import context_of, serving
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
    send_button,
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


@pytest.fixture
def lab(
    request: pytest.FixtureRequest, tmp_path: Path, checks: Any, pods: PodsWithVolumes
) -> Iterator[Lab]:
    """A JupyterLab whose jobs go through a gateway."""
    exchange = FileExchange(tmp_path / "controller")
    exchange.prepare()
    token = tmp_path / "token"
    token.write_text("ada")
    with (
        context_of(exchange, identities=pods) as context,
        serving(replace(context, checks=checks)) as url,
    ):
        variables = {
            "JUPYTER_TO_JOB_GATEWAY": url,
            "JUPYTER_TO_JOB_GATEWAY_TOKEN_FILE": str(token),
        }
        base = tmp_path / "lab"
        base.mkdir()
        made = Lab(base, variables=variables, settings=getattr(request, "param", {}))
        with made.running() as server:
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
