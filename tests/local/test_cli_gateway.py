"""`submit` behind a gateway: what the cluster says of it is printed beside the job's name."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupyter_to_job.domain.preflight import JobImage, Problem
from jupyter_to_job.exchange import FileExchange

from .. import notebooks
from ..gateways import FullCluster, context_of, serving
from ..ingress import ingress
from ..pretend_checks import PodsWithVolumes, PretendChecks, mounted_claim
from ..processes import until
from ..unit import exchanges
from .cli import Cli

IMAGE = JobImage("notebook:1", is_own=False, missing_kernels=("python3",))
PROBLEMS = (
    Problem("over_quota", "No room now.", "It waits.", blocking=False),
    Problem("over_quota", "The quota is too small.", "Ask."),
    Problem("no_node", "No node has it.", "It waits.", blocking=False),
)


@pytest.fixture
def says() -> PretendChecks:
    checks = PretendChecks(*PROBLEMS)
    checks.job_image = IMAGE
    return checks


@pytest.fixture
def pods() -> PodsWithVolumes:
    return PodsWithVolumes()


@pytest.fixture
def gateway(tmp_path: Path, cli: Cli, says: Any, pods: PodsWithVolumes) -> Iterator[None]:
    exchange = FileExchange(tmp_path / "controller")
    exchange.prepare()
    token = tmp_path / "token"
    token.write_text("ada")
    with context_of(exchange, identities=pods) as context:
        changed = replace(context, checks=says)
        with serving(changed) as url:
            cli.variables["JUPYTER_TO_JOB_GATEWAY"] = url
            cli.variables["JUPYTER_TO_JOB_GATEWAY_TOKEN_FILE"] = str(token)
            yield


PATIENT = """\
from jupyter_to_job.cli.main import main
from jupyter_to_job.workspace.suggesting import suggest
suggest.TIMEOUT = 60.0
main(prog_name="jupyter-to-job")
"""
"""The command, with all the time that it needs to find what a notebook reads."""


@pytest.mark.usefixtures("gateway")
def test_submit_says_what_the_cluster_says(
    cli: Cli, says: PretendChecks, pods: PodsWithVolumes
) -> None:
    pods.mounts = [mounted_claim(Path("/data"), "ReadWriteOncePod")]
    notebooks.write(cli.workspace / "a.ipynb", "import helpers")
    notebooks.write(cli.workspace / "b.ipynb", "1")
    (cli.workspace / "helpers.py").write_text("")
    cli.command = (sys.executable, "-c", PATIENT)
    ran = cli.run("submit", "a.ipynb", "b.ipynb")
    assert ran.returncode == 0
    assert len(ran.stdout.split()) == 2
    told = [line for line in ran.stderr.splitlines() if not line.endswith("submitted")]
    assert told == [
        "Isolated: it works in a scratch folder, with the files that are sent.",
        "Warning: /data stays behind: only one pod at a time may use its claim data. "
        "Send the files that the notebook needs from there as inputs.",
        "Warning: The quota is too small. Ask.",
        "Warning: No node has it. It waits.",
        "Warning: An earlier job did not find the kernel 'python3' in the image notebook:1. "
        "Choose another kernel in the notebook, or a flavor with another image.",
        "Warning: a.ipynb: it seems to need helpers.py: send them with --input.",
    ]
    assert len(says.asked) == 1  # for the whole batch
    assert "works in      a scratch folder" in cli.run("show", ran.stdout.split()[0]).stdout


@pytest.mark.usefixtures("gateway")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["a.ipynb", "-i", "data"], r"The input data/caf\udce9.csv is not UTF-8"),
        (["caf\udce9.ipynb"], r"The notebook caf\udce9.ipynb is not UTF-8"),
        (["a.ipynb", "-e", "SECRET=x\udce9"], "The variable SECRET is not UTF-8"),
        (["a.ipynb", "-p", "lr", "\udce9"], "The parameter lr is not UTF-8"),
        (["a.ipynb", "-p", "lr", r'["\ud800", 1]', "--sweep"], "The parameter lr is not UTF-8"),
        (["a.ipynb", "--name", "caf\udce9"], r"The name caf\udce9 is not UTF-8"),
        (["a.ipynb", "--output", "caf\udce9/"], r"The output caf\udce9/ is not UTF-8"),
        (["a.ipynb", "--idempotency-key", "café"], "characters of ASCII"),
    ],
    ids=["input", "notebook", "variable", "parameter", "sweep", "name", "output", "key"],
)
def test_what_is_not_utf8_is_refused_before_anything_is_sent(
    cli: Cli, tmp_path: Path, arguments: list[str], says: str
) -> None:
    for name in ("a.ipynb", "caf\udce9.ipynb"):
        notebooks.write(cli.workspace / name, "1")
    (cli.workspace / "data").mkdir()
    (cli.workspace / "data" / "caf\udce9.csv").write_text("1")
    before = sorted(cli.workspace.iterdir())
    ran = cli.run("submit", *arguments)
    assert (ran.returncode, ran.stdout) == (2, ""), ran.stderr
    assert says in ran.stderr and "Traceback" not in ran.stderr and "SECRET=" not in ran.stderr
    assert list((tmp_path / "controller").glob(".blobs/*/*")) == []
    assert sorted(cli.workspace.iterdir()) == before


@pytest.mark.usefixtures("gateway")
def test_a_job_cannot_submit_another_and_says_so(cli: Cli, tmp_path: Path) -> None:
    """Its container has the gateway's address and no token."""
    notebooks.write(cli.workspace / "a.ipynb", "1")
    del cli.variables["JUPYTER_TO_JOB_GATEWAY_TOKEN_FILE"]
    cli.variables["JUPYTER_TO_JOB_ATTEMPT"] = str(tmp_path / "job" / "attempt-1")
    for command in ("submit", "a.ipynb"), ("list",):
        ran = cli.run(*command)
        assert (ran.returncode, ran.stdout) == (5, "")
        assert "A job on a cluster has no token" in ran.stderr
        assert "Run the command where you submitted this job." in ran.stderr


@pytest.mark.usefixtures("gateway")
def test_a_mounted_folder(cli: Cli, pods: PodsWithVolumes) -> None:
    pods.mounts = [mounted_claim(cli.workspace, "ReadWriteMany")]
    notebooks.write(cli.workspace / "a.ipynb", "import helpers")
    (cli.workspace / "helpers.py").write_text("")
    told = cli.run("submit", "a.ipynb").stderr
    assert (
        f"It works in the notebook's own folder. It sees as you do here: {cli.workspace}." in told
    )
    assert "helpers" not in told


@pytest.mark.usefixtures("gateway")
def test_a_key_stays_the_jobs_when_its_result_is_among_the_inputs(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "1")
    (cli.workspace / "data.csv").write_text("1")
    common = ("submit", "a.ipynb", "-i", ".", "--idempotency-key", "k", "--wait")
    job = cli.json(*common)
    assert cli.result(job).is_file()
    assert cli.json(*common)["name"] == job["name"]
    assert len(cli.json("list")) == 1
    sweep = (*common, "--sweep", "-p", "lr")
    first = cli.json(*sweep, "[1, 2]")
    again = cli.json(*sweep, "[1, 2, 3]")
    assert [each["name"] for each in again[:2]] == [each["name"] for each in first]
    assert len(again) == 3 and len(cli.json("list")) == 4

    key = ("submit", "a.ipynb", "--idempotency-key", "of-a-day")
    (cli.workspace / "other.csv").write_text("1")
    assert cli.run(*key, "-i", "data.csv").returncode == 0
    for inputs in ((), ("-i", "other.csv")):
        refused = cli.run(*key, *inputs)
        assert refused.returncode == 2 and "belongs to another submission" in refused.stderr


def test_who_waits_takes_no_page_of_an_ingress_for_a_deletion(cli: Cli, tmp_path: Path) -> None:
    """It answers for the gateway while a controller starts again."""
    notebooks.write(cli.workspace / "a.ipynb", "1")
    exchange = FileExchange(tmp_path / "controller")
    exchange.prepare()
    token = tmp_path / "token"
    token.write_text("ada")
    cli.variables["JUPYTER_TO_JOB_GATEWAY_TOKEN_FILE"] = str(token)
    with (
        context_of(exchange, backend=FullCluster) as context,
        serving(context) as url,
        ingress(url) as proxy,
    ):
        cli.variables["JUPYTER_TO_JOB_GATEWAY"] = proxy.url
        name = cli.submit("a.ipynb")
        process = cli.start("wait", name, "--json")
        until(lambda: context.feed.is_watched(name), "somebody waits")
        proxy.is_away = lambda *_: True
        until(lambda: sum(proxy.pages.values()) > 1 or process.poll(), "pages")
        proxy.is_away = lambda *_: False
        exchanges.end(exchange.directory(name))
        context.core.backend.notify(name)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    job = json.loads(out)
    assert (job["name"], job["state"]) == (name, "succeeded")
    assert "deleted" not in err


@pytest.mark.usefixtures("gateway")
def test_a_sweep_with_a_choice_that_never_passes_submits_nothing(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "1")
    ran = cli.run("submit", "a.ipynb", "--grid", "-f", "gpu-1", "-f", "small", "-d", "t4")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "Flavor 'small' has no device 't4'." in ran.stderr
    assert cli.json("list") == []
