"""Sweeps on the command line: many runs of a notebook in one group, and their results."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from typing import Any

import pandas as pd
import pytest
from nbformat.v4 import new_code_cell

from .. import notebooks
from ..processes import BOUND, until
from .cli import WAITING_CELL, Cli

CATALOG = """\
apiVersion: jupyter-to-job.io/v1
default: {flavor: small, device: cpu}
flavors:
  small: {cpu: 0.5, memory: 1Gi, devices: [cpu], env: {SIZE: small}}
  large: {cpu: 1, memory: 2Gi, devices: [cpu], env: {SIZE: large}}
devices:
  cpu: {}
"""
TRAIN = """\
import os
from jupyter_to_job import record
size = os.environ['SIZE']
if (seed, depth, size) == (4, 2, 'large') and not os.path.exists('mended'):
    raise ValueError('unlucky')
record('accuracy', 1 - lr + seed / 100 + depth / 1000)
record('size', size)
"""
AT_ONCE = 4
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJR"
    "U5ErkJggg=="
)


def write_train(cli: Cli) -> None:
    (cli.workspace / "flavors.yaml").write_text(CATALOG)
    cli.variables["JUPYTER_TO_JOB_CATALOG"] = str(cli.workspace / "flavors.yaml")
    cli.capacity = "cpu=8,memory=64Gi"
    defaults = notebooks.parameters("lr = 1.0\nseed = 0\ndepth = 1")
    notebooks.write(cli.workspace / "train.ipynb", defaults, TRAIN)


def write_quick(cli: Cli, *names: str) -> None:
    for name in names or ("quick",):
        notebooks.write(cli.workspace / f"{name}.ipynb", notebooks.parameters("a = 0"), "print(a)")


def run_long(cli: Cli, *arguments: str) -> tuple[int, str]:
    """Run a command that waits for a whole sweep; return its exit code and what it told."""
    process = cli.start(*arguments)
    _, told = process.communicate(timeout=10 * BOUND)
    return process.returncode, told


def rows_of(cli: Cli, *arguments: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = cli.json("results", *arguments)["rows"]
    return rows


def in_python(cli: Cli, code: str) -> str:
    """What Python prints that a user runs in the workspace."""
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cli.workspace, env=cli.environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return ran.stdout


@pytest.mark.timeout(900)
def test_sixty_runs_are_compared_and_what_failed_runs_again(cli: Cli) -> None:
    write_train(cli)
    ran = cli.run(
        "submit", "train.ipynb", "--grid", "-p", "lr", "[0.1, 0.2, 0.3]", "-p", "seed",
        "[0, 1, 2, 3, 4]", "-p", "depth", "[1, 2]", "-f", "small", "-f", "large",
        "--group", "night", "--group-limit", str(AT_ONCE),
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.splitlines()[0] == (
        "60 jobs in the group night: 1 notebook, 3 lr, 5 seed, 2 depth, 2 flavor."
    )
    assert len(set(ran.stdout.split())) == 60
    assert run_long(cli, "wait", "--group", "night")[0] == 1

    jobs = cli.json("list", "--group", "night")
    assert {job["group"] for job in jobs} == {"night"}
    assert most_at_once(jobs) <= AT_ONCE
    failed = {job["name"] for job in jobs if job["state"] == "failed"}
    assert len(failed) == 3
    assert [row["accuracy"] for row in rows_of(cli, "--group", "night") if row["accuracy"]] == [
        pytest.approx(1 - j["parameters"]["lr"] + j["parameters"]["seed"] / 100
                      + j["parameters"]["depth"] / 1000)
        for j in reversed(jobs) if j["state"] == "succeeded"
    ]  # fmt: skip

    (cli.workspace / "mended").touch()
    again = cli.run("rerun", "--group", "night", "--failed")
    assert again.returncode == 0 and len(again.stdout.split()) == 3
    assert run_long(cli, "wait", "--group", "night")[0] == 0
    assert "None of them has failed" in cli.run("rerun", "--group", "night", "--failed").stderr
    rows = rows_of(cli, "--group", "night")
    assert len(rows) == 60 and not {row["job"] for row in rows} & failed
    points = {(r["lr"], r["seed"], r["depth"], r["flavor"], r["size"]) for r in rows}
    assert len(points) == 60
    assert {(row["flavor"], row["size"]) for row in rows} == {("small",) * 2, ("large",) * 2}
    check_best(cli, rows)
    check_exports(cli, rows)

    deleted = cli.run("delete", "--group", "night")
    assert deleted.returncode == 0 and len(deleted.stdout.splitlines()) == 63
    assert cli.run("results", "--group", "night").returncode == 3


def most_at_once(jobs: list[dict[str, Any]]) -> int:
    """How many of these jobs ran at the same time, at most."""
    moments = [(job["started"], 1) for job in jobs] + [(job["finished"], -1) for job in jobs]
    running, most = 0, 0
    for _, change in sorted(moments):
        running += change
        most = max(most, running)
    return most


def check_best(cli: Cli, rows: list[dict[str, Any]]) -> None:
    top = max(row["accuracy"] for row in rows)
    found = cli.json("results", "--group", "night", "--best", "max:accuracy")
    assert next(r["accuracy"] for r in found["rows"] if r["job"] == found["best"]) == top
    table = cli.run(
        "results", "--group", "night", "--best", "max:accuracy", "--sort", "max:accuracy"
    ).stdout.splitlines()
    assert table[0].split()[:6] == ["job", "flavor", "lr", "seed", "depth", "accuracy"]
    marked = [line.split() for line in table if line.startswith("*")]
    assert [line[1] for line in marked] == [found["best"]]
    shown = [float(line.removeprefix("*").split()[5]) for line in table[1:]]
    assert shown == sorted(shown, reverse=True) and len(shown) == 60
    wrong = cli.run("results", "--group", "night", "--sort", "acuracy")
    assert wrong.returncode == 2 and "Did you mean 'accuracy'?" in wrong.stderr


def check_exports(cli: Cli, rows: list[dict[str, Any]]) -> None:
    """CSV, Parquet and the frame are the same table as the JSON."""
    text = cli.run("results", "--group", "night", "--csv").stdout
    assert [row["job"] for row in csv.DictReader(io.StringIO(text))] == [r["job"] for r in rows]
    from_csv = pd.read_csv(io.StringIO(text))
    assert cli.run("results", "--group", "night", "--parquet", "night.parquet").returncode == 0
    from_parquet = pd.read_parquet(cli.workspace / "night.parquet")
    in_python(
        cli, "import jupyter_to_job; jupyter_to_job.results('night').to_pickle('night.pickle')"
    )
    frame = pd.read_pickle(cli.workspace / "night.pickle")
    expected = pd.DataFrame(rows).replace({None: float("nan")})
    for found in (from_csv, from_parquet, frame):
        pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    assert frame.groupby("lr")["accuracy"].count().to_dict() == {0.1: 20, 0.2: 20, 0.3: 20}


def test_a_repeated_sweep_makes_only_what_is_missing(cli: Cli) -> None:
    write_quick(cli)
    common = ("submit", "quick.ipynb", "--sweep", "--idempotency-key", "k")
    first = cli.run(*common, "-p", "a", "[1, 2]")
    again = cli.run(*common, "-p", "a", "[3, 2, 1]")
    assert first.returncode == again.returncode == 0
    names = first.stdout.split()
    assert again.stdout.split()[1:] == names[::-1]
    groups = {job["group"] for job in cli.json("list")}
    assert len(groups) == 1 and next(iter(groups)).startswith("quick-sweep-")
    assert len(cli.json("list")) == 3


def test_what_its_group_holds_back_says_so_and_is_cancelled(cli: Cli) -> None:
    notebooks.write(cli.workspace / "waits.ipynb", notebooks.parameters("a = 0"), WAITING_CELL)
    names = cli.run(
        "submit", "waits.ipynb", "--sweep", "-p", "a", "[1, 2, 3]", "--group", "slow",
        "--group-limit", "1",
    ).stdout.split()  # fmt: skip
    cli.until_printed(names[0], "before")
    write_quick(cli)
    other = cli.submit("quick.ipynb")  # nobody else is held back
    assert cli.json("wait", other)["state"] == "succeeded"
    held = cli.json("show", names[2])
    assert (held["state"], held["reason"], held["position"]) == ("queued", "GroupLimit", None)
    assert "At most 1 job of the group slow" in held["message"]
    listed = cli.run("list", "--group", "slow")
    assert "queued (GroupLimit)" in listed.stdout
    assert "slow: 3 jobs: 2 queued, 1 running." in listed.stderr
    assert cli.run("list", "-q", "--state", "queued", "waits-*").stdout.split() == names[:0:-1]

    cancelled = cli.run("cancel", "--group", "slow").stdout.splitlines()
    assert [line.split()[0] for line in cancelled] == names[::-1]  # none begins in between
    assert run_long(cli, "wait", "--group", "slow")[0] == 1
    jobs = cli.json("list", "--group", "slow")
    assert {job["state"] for job in jobs} == {"cancelled"}
    assert [job["started"] is not None for job in jobs] == [False, False, True]
    assert "All of them have ended." in cli.run("cancel", "--group", "slow").stderr


@pytest.mark.parametrize("way", [(), ("--current",)], ids=["as it was", "as it is now"])
def test_a_rerun_keeps_to_the_limit_of_its_group(cli: Cli, way: tuple[str, ...]) -> None:
    cli.capacity = "cpu=8,memory=64Gi"
    name = cli.submit_waiting("--group", "slow", "--group-limit", "1")
    again = cli.run("rerun", name, *way).stdout.strip()
    until(lambda: (seen := cli.json("show", again))["reason"] or seen["started"], "it is decided")
    job = cli.json("show", again)
    assert (job["state"], job["reason"], job["started"]) == ("queued", "GroupLimit", None)
    cli.release()
    assert cli.run("wait", name, again).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-p", "a", "[1, 2]", "-p", "b", "[1, 2]", "--sweep"], "--grid combines them all"),
        (["-p", "a", "[1, 2]", "-p", "b", "[1, 2, 3]", "--zip"], "a has 2, b has 3"),
        (["-p", "a", "1", "--grid"], "Nothing has several values for --grid"),
        (["-f", "small", "-f", "large"], "--flavor was given several times"),
        (["-p", "a", "[1, 2]", "--sweep", "-f", "smal"], "Did you mean 'small'?"),
        (["-p", "a", "[1, 2]", "--sweep", "--group", "a b"], "cannot be the name of a group"),
        (["-p", "a", "[1, 2]", "--sweep", "--idempotency-key", ""], "key is empty"),
        (["--group-limit", "2"], "needs a group"),
        (["--params-file", "rows.csv"], "line 3 has another number of values"),
        (["--params-file", "rows.jsonl"], "row 2 holds no parameters"),
        (["--params-file", "deep.jsonl"], "nested deeper"),
        (["--params-file", "empty.yaml"], "has no rows"),
        (["--params-file", "good.yaml", "-p", "b", "[1, 2]", "-f", "small", "-f", "large"],
         "Add --grid or --zip"),
    ],
)  # fmt: skip
def test_a_sweep_that_is_not_clear_submits_nothing(
    cli: Cli, arguments: list[str], says: str
) -> None:
    write_quick(cli)
    (cli.workspace / "rows.csv").write_text("a,b\n1,2\n3\n")
    (cli.workspace / "rows.jsonl").write_text('{"a": 1}\n[2]\n')
    (cli.workspace / "deep.jsonl").write_text('{"a": ' + "[" * 10_000)
    (cli.workspace / "empty.yaml").write_text("[]")
    (cli.workspace / "good.yaml").write_text("- {a: 1}\n- {a: 2}\n")
    ran = cli.run("submit", "quick.ipynb", *arguments)
    assert ran.returncode == 2 and says in ran.stderr, ran.stderr
    assert cli.json("list") == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("rows.csv", '\ufeffa,b,c\n1,x,5\n2.5,"[1, 2]",5\n,y,5\n'),
        ("rows.jsonl", '{"a": 1, "b": "x"}\n\n{"a": 2.5, "b": [1, 2]}\n{"b": "y"}\n'),
        ("rows.json", '[{"a": 1, "b": "x", "c": 5}, {"a": 25e-1, "b": [1, 2]}, {"b": "y"}]'),
        ("rows.yaml", "- {a: 1, b: x, c: 5}\n- {a: 2.5, b: [1, 2]}\n- {b: y}\n"),
    ],
)
def test_a_row_of_a_file_is_a_job(cli: Cli, file: str, text: str) -> None:
    write_quick(cli)
    (cli.workspace / file).write_text(text, encoding="utf-8")
    jobs = cli.json("submit", "quick.ipynb", "--params-file", file, "-p", "c", "3")
    assert [job["parameters"] for job in jobs] == [
        {"a": 1, "b": "x", "c": 3}, {"a": 2.5, "b": [1, 2], "c": 3}, {"b": "y", "c": 3},
    ]  # fmt: skip
    assert len({job["group"] for job in jobs}) == 1


def test_json_lines_end_where_json_says(cli: Cli) -> None:
    """Unicode has more line ends than JSON, which may have them inside of a text."""
    write_quick(cli)
    prompts = ["one\u2028two", "one\u2029two", "one\x85two"]
    lines = [json.dumps({"prompt": prompt}, ensure_ascii=False) for prompt in prompts]
    (cli.workspace / "rows.jsonl").write_text("\r\n".join(lines), encoding="utf-8", newline="")
    jobs = cli.json("submit", "quick.ipynb", "--params-file", "rows.jsonl")
    assert [job["parameters"]["prompt"] for job in jobs] == prompts


def test_names_and_patterns(cli: Cli) -> None:
    write_quick(cli, "apple", "pear", "plum")
    names = cli.run("submit", "*.ipynb", "--group", "fruit").stdout.split()
    assert cli.run("wait", "p*").returncode == 0
    assert cli.run("wait", "--group", "fruit", "apple-*").returncode == 0
    assert cli.run("list", "-q", "pe*", names[0]).stdout.split() == [names[1], names[0]]
    for arguments in (["wait", "x*"], ["cancel", "--group", "other"], ["delete", "zz-[a-z]*"]):
        assert cli.run(*arguments).returncode == 3
    assert cli.run("cancel").returncode == 2
    again = cli.run("rerun", "p*", "--wait", "--json")
    assert [job["rerun_of"] for job in json.loads(again.stdout)] == names[1:]
    deleted = cli.run("delete", "p*")
    assert len(deleted.stdout.splitlines()) == 4
    assert cli.run("list", "-q").stdout.split() == names[:1]


def test_a_terminal_is_asked_above_ten(cli: Cli) -> None:
    write_quick(cli, *(f"n{number:02}" for number in range(11)))
    seen = cli.on_terminal("submit", "n*.ipynb")
    seen.until_shown(r"11 jobs: 11 notebooks\.\s+Submit 11 jobs\? \[y/N\]")
    seen.press(b"n\n")
    assert "Nothing was done." in seen.until_ended()
    assert cli.json("list") == []
    seen = cli.on_terminal("submit", "n*.ipynb", "--yes", rows=40)
    seen.until_ended()
    assert len(cli.json("list")) == 11
    assert cli.run("delete", "*").returncode == 0  # nobody can be asked


def test_every_way_to_record_a_metric(cli: Cli) -> None:
    tagged = new_code_cell("2 * 0.25", metadata={"tags": ["metric:half"]})
    notebooks.write(
        cli.workspace / "a.ipynb",
        "import base64, numpy, pandas\nfrom IPython.display import Image, display\n"
        "from jupyter_to_job import record\n"
        f"record('curve', Image(base64.b64decode('{PIXEL}')))\n"
        "record('loss', numpy.float32(0.5)); record('nothing', float('nan'))\n"
        "record('shape', numpy.array([1, 2])); record('text', 'ä'); record('loss', 0.25)\n"
        "scrap = {'name': 'glued', 'data': 3, 'encoder': 'json', 'version': 1}\n"
        "display({'application/scrapbook.scrap.json+json': scrap}, raw=True)",
        tagged,
        "record('frame', object())",
    )
    job = cli.json("submit", "a.ipynb", "--wait", code=1)
    assert job["reason"] == "CellError" and "object is neither a number" in job["message"]
    cells = {name: metric.pop("cell") for name, metric in job["metrics"].items()}
    assert job["metrics"] == {
        "curve": {"value": None, "picture": "image/png"},
        "loss": {"value": 0.25, "picture": None},
        "nothing": {"value": None, "picture": None},
        "shape": {"value": [1, 2], "picture": None},
        "text": {"value": "ä", "picture": None},
        "glued": {"value": 3, "picture": None},
        "half": {"value": 0.5, "picture": None},
    }
    assert cells["half"] == 1 and set(cells.values()) == {0, 1}
    shown = cli.run("show", job["name"]).stdout
    assert "Metrics" in shown and "curve         image/png" in shown
    cells_of_result = notebooks.read(cli.result(job)).cells
    outputs = [o for cell in cells_of_result for o in cell.get("outputs", ())]
    pictures = [o.data["image/png"] for o in outputs if "image/png" in o.get("data", {})]
    assert [picture.strip() for picture in pictures] == [PIXEL]


def test_a_notebook_without_metrics_and_packages_that_are_missing(cli: Cli) -> None:
    write_quick(cli)
    cli.json("submit", "quick.ipynb", "--group", "g", "--wait")
    (row,) = rows_of(cli, "--group", "g")
    assert row["seconds"] > 0 and row["memory_peak"] > 0
    ran = cli.run("results", "--group", "g", "--parquet", "missing/x.parquet")
    assert ran.returncode == 2
    assert "Cannot write missing/x.parquet: No such file or directory." in ran.stderr
    (cli.workspace / "pyarrow.py").write_text("raise ImportError('gone')")
    cli.variables["PYTHONPATH"] = str(cli.workspace)
    ran = cli.run("results", "--group", "g", "--parquet", "x.parquet")
    assert ran.returncode == 2 and "jupyter-to-job[results]" in ran.stderr
    (cli.workspace / "pandas.py").write_text("raise ImportError('gone')")
    code = (
        "import jupyter_to_job\ntry: jupyter_to_job.results('g')\nexcept ImportError as e: print(e)"
    )
    assert "jupyter-to-job[results]" in in_python(cli, code)
