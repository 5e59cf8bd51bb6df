"""What a dialog is told before SEND, over HTTP. `benchmarks.server` measures how fast."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import nbformat.v4 as v4
import pytest

from jupyter_to_job.flavors import SHIPPED
from jupyter_to_job.workspace import suggest

from ..processes import BOUND
from . import openapi
from .test_routes import post, refusal

Fetch = Callable[..., Awaitable[Any]]


def write(root: Path, **metadata: Any) -> None:
    declared = "alpha: float = 0.1  # learning rate\nname = 'x'"
    cells = [
        v4.new_code_cell(declared, metadata={"tags": ["parameters"]}),
        v4.new_code_cell("%matplotlib inline\nimport numpy as np\nimport helpers"),
        v4.new_code_cell("df = pd.read_csv('data/train.csv')"),
        *[v4.new_code_cell(f"print({number})") for number in range(40)],
    ]
    notebook = v4.new_notebook(cells=cells, metadata=metadata)
    (root / "train.ipynb").write_text(json.dumps(notebook))
    (root / "helpers.py").write_text("x = 1\n")
    (root / "data").mkdir()
    (root / "data" / "train.csv").write_text("1,2\n")
    (root / "data" / "scratch.tmp").write_text("1,2\n")
    (root / ".jobignore").write_text("*.tmp\n")


async def preflight(fetch: Fetch, **asked: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (await post(fetch, "preflight", body={"notebook": "train.ipynb", **asked})).body
    )
    openapi.validate("Preflight", found)
    return found


async def test_all_of_it(
    jp_fetch: Fetch, jp_root_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[suggest.__module__], "TIMEOUT", BOUND)
    write(jp_root_dir, kernelspec={"name": "python3", "display_name": "Python 3"})
    found = await preflight(jp_fetch, inputs=["data"])
    assert found["problems"] == []
    assert found["kernel"] == "python3"
    assert found["inputs"] == [{"path": "data/train.csv", "size": 4}]
    assert (found["ignored"], found["input_cap"], found["results"]) == (1, 4 << 30, None)
    assert found["parameters"] == [
        {
            "name": "alpha",
            "type": "float",
            "default": "0.1",
            "value": 0.1,
            "help": "learning rate",
        },
        {"name": "name", "type": None, "default": "'x'", "value": "x", "help": ""},
    ]
    assert found["suggested"] == [
        {"path": "helpers.py", "size": 6, "why": "import helpers"},
        {"path": "data/train.csv", "size": 4, "why": "df = pd.read_csv('data/train.csv')"},
    ]


async def test_a_cell_of_thousands_of_terms(
    jp_fetch: Fetch, jp_root_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[suggest.__module__], "TIMEOUT", BOUND)
    write(jp_root_dir)
    generated = f"y = {' + '.join(['x'] * 2500)}\ndf = pd.read_csv('data/train.csv')"
    notebook = v4.new_notebook(cells=[v4.new_code_cell(generated)])
    (jp_root_dir / "train.ipynb").write_text(json.dumps(notebook))
    found = await preflight(jp_fetch)
    assert [item["path"] for item in found["suggested"]] == ["data/train.csv"]


async def test_what_would_be_refused(jp_fetch: Fetch, jp_root_dir: Path) -> None:
    write(jp_root_dir, kernelspec={"name": "cobol", "display_name": "COBOL"})
    (jp_root_dir / "shut").mkdir()
    for asked, code, blocking in (
        ({}, "no_kernel", True),
        ({"flavor": "huge"}, "unknown_choice", True),
        ({"device": "t5"}, "unknown_choice", True),
        ({"inputs": ["gone.csv"]}, "missing_input", True),
        ({"parameters": {"a b": 1}}, "bad_input", True),
        ({"parameters": {"beta": 1}}, "unknown_parameter", False),
        ({"output": "gone/x.ipynb"}, "not_writable", False),
        ({"output": "../x.ipynb"}, "bad_input", True),
        ({"output": "../x/"}, "bad_input", True),
        ({"output": "helpers.py/runs/"}, "not_writable", True),
        ({"expected_sha256": "0" * 64}, "stale", True),
        ({"notebook": "gone.ipynb"}, "bad_notebook", True),
    ):
        found = await preflight(jp_fetch, **asked)
        assert (code, blocking) in {(p["code"], p["blocking"]) for p in found["problems"]}, asked


@pytest.fixture
def folder_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_TO_JOB_RESULTS", "/server/{notebook}")


async def test_the_folder_of_results_by_the_settings_of_browser_and_server(
    folder_setting: None, jp_fetch: Fetch, jp_root_dir: Path
) -> None:
    """The browser's comes with each request; without it the server's counts."""
    write(jp_root_dir, kernelspec={"name": "python3", "display_name": "Python 3"})

    async def job_of(*path: str, **asked: Any) -> dict[str, Any]:
        made: dict[str, Any] = json.loads((await post(jp_fetch, *path, body=asked)).body)
        return made

    assert (await preflight(jp_fetch))["results"] == "server/train/"
    found = await preflight(jp_fetch, results="runs/{notebook}", output="own.ipynb")
    assert (found["results"], found["problems"]) == ("runs/train/", [])
    job = await job_of("jobs", notebook="train.ipynb", results="runs/{notebook}")
    assert (job["output"], job["asked"]["output"]) == ("runs/train/", None)
    rerun = ("jobs", job["name"], "rerun")
    assert (await job_of(*rerun, results="/later"))["output"] == "later/"
    assert (await job_of(*rerun))["output"] == "server/train/"
    (problem,) = (await preflight(jp_fetch, results="../out"))["problems"]
    assert (problem["code"], problem["blocking"]) == ("bad_input", True)


async def test_what_never_fits(jp_fetch: Fetch, jp_root_dir: Path) -> None:
    write(jp_root_dir)
    catalog = json.loads((await jp_fetch("jupyter-to-job", "api", "flavors")).body)["flavors"]
    for name, flavor in catalog.items():
        found = await preflight(jp_fetch, flavor=name)
        fits = flavor["unavailable_reason"] is None and flavor["allowed"]
        codes = {problem["code"] for problem in found["problems"]}
        assert fits != bool(codes & {"never_fits", "refused"}), (name, flavor, codes)


@pytest.fixture
def cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_TO_JOB_INPUT_CAP", "3")


async def test_inputs_over_the_cap_are_shown(cap: None, jp_fetch: Fetch, jp_root_dir: Path) -> None:
    write(jp_root_dir)
    found = await preflight(jp_fetch, inputs=["data/train.csv"])
    assert [problem["code"] for problem in found["problems"]] == ["too_large"]
    assert (found["inputs"], found["input_cap"]) == ([{"path": "data/train.csv", "size": 4}], 3)


@pytest.fixture
def own_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "flavors.yaml"
    path.write_text(SHIPPED.read_text())
    monkeypatch.setenv("JUPYTER_TO_JOB_CATALOG", str(path))
    return path


async def test_a_catalog_that_changes_before_send(
    own_catalog: Path, jp_fetch: Fetch, jp_root_dir: Path
) -> None:
    write(jp_root_dir, kernelspec={"name": "python3", "display_name": "Python 3"})
    plan = (await preflight(jp_fetch))["plan"]
    own_catalog.write_text(own_catalog.read_text().replace("cpu: 1,", "cpu: 0.5,"))
    body = {"notebook": "train.ipynb", "plan": plan}
    status, error = await refusal(post(jp_fetch, "jobs", body=body))
    assert (status, error["code"]) == (409, "plan_changed")
    assert error["message"] == "What the job would get has changed since you were told: the flavor."
    body["plan"] = (await preflight(jp_fetch))["plan"]
    assert (await post(jp_fetch, "jobs", body=body)).code == 201


async def test_where_nothing_can_be_chosen_there_is_no_plan(
    jp_fetch: Fetch, jp_root_dir: Path
) -> None:
    write(jp_root_dir)
    assert (await preflight(jp_fetch, flavor="enormous"))["plan"] is None


async def test_what_a_job_would_wait_for(
    jp_fetch: Fetch, jp_root_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(jp_root_dir)
    found = await preflight(jp_fetch)
    wait = found["wait"]
    assert (wait["before"], wait["needs"], wait["start"], wait["run"]) == (0, [], None, None)
    assert (await preflight(jp_fetch, flavor="nonsense"))["wait"] is None
