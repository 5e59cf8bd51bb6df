"""One job from the command line, and what the command says about it."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.retention import Policy, enforce

from .. import configured_kernels, notebooks
from ..processes import kill, until
from .cli import Cli

SHOWS = "print([(type(v).__name__, v) for v in (epochs, rate, flag, none, text, nested)])"
DEFAULTS = "epochs, rate, flag, none, text, nested = 1, 1.0, False, 0, '', {}"


def test_submit_and_wait(cli: Cli) -> None:
    source = notebooks.write(
        cli.workspace / "dir" / "Train model.ipynb", notebooks.parameters(DEFAULTS), SHOWS
    )
    before = source.read_bytes()
    given = ["epochs", "5"], ["rate", "1e-3"], ["flag", "true"], ["none", "None"]
    options = [word for pair in given for word in ("-p", *pair)]
    options += ["-p", "nested", '{"a": [1, null]}', "-r", "text", "5"]
    ran = cli.run("submit", "dir/Train model.ipynb", *options, "--wait")
    assert ran.returncode == 0, ran.stderr
    (path,) = ran.stdout.splitlines()
    assert Path(path).parent == source.parent
    assert Path(path).name.startswith("train-model-")
    assert eval(notebooks.printed(Path(path))) == [
        ("int", 5),
        ("float", 0.001),
        ("bool", True),
        ("NoneType", None),
        ("str", "5"),
        ("dict", {"a": [1, None]}),
    ]
    assert source.read_bytes() == before
    assert "succeeded" in ran.stderr


def test_a_kernel_of_a_configured_manager_runs(cli: Cli, tmp_path: Path) -> None:
    """One that Jupyter's configuration names for its server: no folder of kernels has it."""
    modules, config = tmp_path / "modules", tmp_path / "config"
    modules.mkdir()
    config.mkdir()
    shutil.copy(str(configured_kernels.__file__), modules / "more_kernels.py")
    cli.variables |= {"PYTHONPATH": str(modules), "JUPYTER_CONFIG_DIR": str(config)}
    manager = {"kernel_spec_manager_class": "more_kernels.OneMore"}
    (config / "jupyter_server_config.json").write_text(json.dumps({"ServerApp": manager}))
    source = cli.workspace / "a.ipynb"
    notebooks.write(source, configured_kernels.CELL, kernel=configured_kernels.NAME)
    ran = cli.run("submit", "a.ipynb", "--wait")
    assert ran.returncode == 0, ran.stderr
    assert notebooks.printed(Path(ran.stdout.strip())) == configured_kernels.PRINTS
    assert configured_kernels.SECRET not in cli.run("show", cli.json("list")[0]["name"]).stdout


def test_what_jupyter_s_configuration_prints_is_no_answer(cli: Cli, tmp_path: Path) -> None:
    """Nor does it matter that the file ends: the command goes on."""
    cli.variables["JUPYTER_CONFIG_DIR"] = str(tmp_path)
    (tmp_path / "jupyter_server_config.py").write_text("print('hello')\nraise SystemExit")
    notebooks.write(cli.workspace / "a.ipynb", "1")
    ran = cli.run("submit", "a.ipynb", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["notebook"] == "a.ipynb"


def test_more_output_than_is_kept_is_told(cli: Cli) -> None:
    """On the terminal, in the job and in the delivered notebook; and the job has succeeded."""
    cli.variables["JUPYTER_TO_JOB_OUTPUT_CAP"] = "100Ki"
    notebooks.write(cli.workspace / "a.ipynb", "for n in range(1000): print(n, 'x' * 1000)", "1")
    ran = cli.run("submit", "a.ipynb", "--wait")
    assert ran.returncode == 0, ran.stderr
    assert "of its output was dropped, over the cap of 100 KiB" in ran.stderr
    job = cli.json("list")[0]
    assert (job["state"], job["reason"]) == ("succeeded", None)
    assert "of its output was dropped" in job["message"]
    printed = notebooks.printed(Path(ran.stdout.strip()))
    assert "of this cell's output" in printed and "999 x" in printed and "500 x" not in printed
    assert "of this cell's output" in cli.run("logs", job["name"]).stdout


def test_json(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "import os; print(os.environ['TOKEN'])", "1 / 0")
    job = cli.json("submit", "a.ipynb", "-e", "TOKEN=s3cret", "--wait", code=1)
    assert (job["state"], job["reason"]) == ("failed", "CellError")
    assert job["notebook"] == "a.ipynb"
    assert job["delivery"] == {
        "state": "delivered",
        "path": f"{job['name']}.ipynb",
        "message": None,
    }
    assert job["progress"] == {"cells_done": 1, "cells_total": 2, "current_cell": None, "cells": 0}
    assert job["usage"]["memory_peak"] > 0
    assert job["submitted"] <= job["started"] <= job["finished"]
    assert "s3cret" not in json.dumps(job)
    assert cli.json("show", job["name"]) == job
    assert cli.json("list") == [job]
    assert cli.json("wait", job["name"], code=1) == job


def test_a_cell_that_raises(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "print('kept')", "1 / 0", "print('never')")
    ran = cli.run("submit", "a.ipynb", "--wait")
    assert ran.returncode == 1
    assert "CellError" in ran.stderr and "ZeroDivisionError" in ran.stderr
    result = Path(ran.stdout.strip())
    assert notebooks.printed(result) == "kept\n"
    assert "An Exception was encountered" in notebooks.banner(result)
    assert notebooks.read(result).cells[-1].outputs == []


def test_the_working_directory_is_the_notebooks(cli: Cli) -> None:
    notebooks.write(cli.workspace / "dir" / "a.ipynb", "import sibling; open('made', 'w').close()")
    (cli.workspace / "dir" / "sibling.py").write_text("")
    assert cli.json("submit", "dir/a.ipynb", "--wait")["state"] == "succeeded"
    assert (cli.workspace / "dir" / "made").exists()


def test_a_notebook_outside_of_the_workspace(cli: Cli, tmp_path: Path) -> None:
    source = notebooks.write(tmp_path / "elsewhere" / "a.ipynb", "print(1)")
    ran = cli.run("submit", str(source), "--wait")
    assert ran.returncode == 0, ran.stderr
    assert Path(ran.stdout.strip()).parent == source.parent


def test_paths_of_another_workspace_are_relative_to_the_commands(cli: Cli, tmp_path: Path) -> None:
    source = notebooks.write(tmp_path / "elsewhere" / "a.ipynb", "print(1)")
    (source.parent / "data.csv").write_text("1")
    options = ("--output", "../elsewhere/out/", "-i", "../elsewhere/data.csv")
    queued = cli.json("submit", "../elsewhere/a.ipynb", *options)
    job = cli.json("submit", "../elsewhere/a.ipynb", *options, "--wait")
    for submitted in (queued, job):
        assert (cli.workspace / submitted["notebook"]).samefile(source)
        assert submitted["output"] == "../elsewhere/out/"
        assert submitted["inputs"] == ["../elsewhere/data.csv"]
    assert cli.result(job).exists()
    assert job == cli.json("wait", job["name"])


def test_logs(cli: Cli) -> None:
    name = cli.submit_waiting()
    assert cli.run("logs", name).stdout == "before\n"
    following = cli.start("logs", name, "--follow")
    cli.release()
    assert following.communicate(timeout=60) == (
        "before\nafter\nend\n",
        f"{name} succeeded\n",
    )


def test_a_piped_log_has_lines_as_they_ended_up(cli: Cli) -> None:
    bar = "for n in range(5):\n    print(f'\\r{n} of 4', end='')\nprint()\nprint('an end', end='')"
    notebooks.write(cli.workspace / "a.ipynb", bar)
    name = cli.json("submit", "a.ipynb", "--wait")["name"]
    assert cli.run("logs", name).stdout == "4 of 4\nan end"
    assert cli.run("logs", name, "--follow").stdout == "4 of 4\nan end"


def test_an_interrupted_wait_leaves_the_job(cli: Cli) -> None:
    name = cli.submit_waiting()
    (dispatcher,) = cli.dispatchers()
    kill(dispatcher)
    waiting = cli.start("wait", name)
    assert waiting.stderr is not None
    assert waiting.stderr.readline() == f"{name} running\n"
    until(cli.dispatchers, "a dispatcher that whoever waits has started")
    waiting.send_signal(signal.SIGINT)
    assert waiting.communicate(timeout=60)[1].strip().endswith(f"wait {name}")
    assert waiting.returncode == 130
    cli.release()
    assert cli.json("wait", name)["state"] == "succeeded"


def test_cancel(cli: Cli) -> None:
    name = cli.submit_waiting()
    ran = cli.run("cancel", name)
    assert ran.returncode == 0, ran.stderr
    job = cli.json("wait", name, code=1)
    assert (job["state"], job["reason"], job["cancel_requested"]) == ("cancelled", None, False)
    assert notebooks.printed(cli.result(job)) == "before\n"
    assert notebooks.banner(cli.result(job))
    assert cli.run("cancel", name).returncode == 0


def test_delete(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "print(1)")
    job = cli.json("submit", "a.ipynb", "--wait")
    assert cli.run("delete", job["name"]).returncode == 0
    assert cli.run("show", job["name"]).returncode == 3
    assert cli.json("list") == []
    assert cli.result(job).exists()


def test_a_job_that_is_deleted_while_it_is_waited_for(cli: Cli) -> None:
    name = cli.submit_waiting()
    waiting = cli.start("wait", name)
    assert waiting.stderr is not None
    assert waiting.stderr.readline() == f"{name} running\n"
    assert cli.run("delete", name).stdout == f"{name} is ended and deleted\n"
    assert "It was deleted meanwhile." in waiting.communicate(timeout=60)[1]
    assert waiting.returncode == 3


@pytest.mark.parametrize("arguments", [("wait", "--json"), ("wait",)])
def test_others_are_waited_for_when_one_is_deleted(cli: Cli, arguments: tuple[str, ...]) -> None:
    first, second = cli.submit_waiting(), cli.submit_waiting()
    waiting = cli.start(*arguments, first, second)
    assert waiting.stderr is not None
    assert waiting.stderr.readline() == f"{first} running\n"
    assert cli.run("delete", first).returncode == 0
    cli.release()
    out, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 3
    assert f"There is no job '{first}'. It was deleted meanwhile." in err
    job = cli.json("show", second)
    assert job["state"] == "succeeded"
    if "--json" in arguments:
        assert [told["name"] for told in json.loads(out)] == [second]
    else:
        assert out.splitlines() == [str(cli.result(job))]


def test_a_job_that_was_cleared(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "print(1)")
    name = cli.json("submit", "a.ipynb", "--wait")["name"]
    assert enforce(FileExchange(cli.exchange), Policy(0), time.time() + 1) == [name]
    for command in (("rerun", name), ("logs", name), ("logs", name, "--follow")):
        ran = cli.run(*command)
        assert (ran.returncode, ran.stdout) == (3, "")
        assert f"{name}: Kept for" in ran.stderr and f"delivered as {name}.ipynb" in ran.stderr
        assert "Did you mean" not in ran.stderr and "deleted" not in ran.stderr


def test_the_same_key_again(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "print(1)")
    names = {cli.submit("a.ipynb", "--idempotency-key", "once") for _ in range(2)}
    assert len(names) == 1
    assert cli.run("submit", "a.ipynb", "--idempotency-key", "once", "-p", "x", "1").returncode == 2


def test_the_same_key_for_notebooks_of_two_folders(cli: Cli) -> None:
    """Whatever folder the command runs in, the key is for the file that is meant."""
    key = ("--idempotency-key", "once")
    notebooks.write(cli.workspace / "p1" / "train.ipynb", "1")
    for folder in ("p2", "elsewhere"):
        shutil.copytree(cli.workspace / "p1", cli.workspace / folder)
    first, second, other = (
        replace(cli, workspace=cli.workspace / folder) for folder in ("p1", "p2", "elsewhere")
    )
    names = [each.submit("train.ipynb", *key) for each in (first, second)]
    assert len(set(names)) == 2
    again = other.run("submit", "../p1/train.ipynb", "../p2/train.ipynb", *key)
    assert again.stdout.split() == names
    assert cli.submit("p2/train.ipynb", *key) == names[1]
    assert len(cli.json("list")) == 2
    swept = [each.json("submit", "train.ipynb", "--sweep", "-p", "a", "[1, 2]", *key)
             for each in (first, second)]  # fmt: skip
    assert len({job["name"] for jobs in swept for job in jobs}) == 4
    assert len({job["group"] for jobs in swept for job in jobs}) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("submit", "a.ipynb", "-f", "enormous"), 2, "enormous"),
        (("submit", "a.ipynb", "-d", "abacus"), 2, "abacus"),
        (("submit", "a.ipynb", "--max-runtime", "soon"), 2, "soon"),
        (("submit", "a.ipynb", "-e", "NOVALUE"), 2, "NOVALUE"),
        (("submit", "a.ipynb", "--idempotency-key", ""), 2, "key is empty"),
        (("submit", "a.ipynb", "--priority", "101"), 2, "101"),
        (("submit", "a.ipynb", "--params-file", "missing.yaml"), 2, "missing.yaml"),
        (("submit", "a.ipynb", "--params-file", "text.ipynb"), 2, "holds no parameters"),
        (("submit", "a.ipynb", "--params-file", "cut.yaml"), 2, "JSON: line 2, column 2: expected"),
        (("submit", "a.ipynb", "-p", "a b", "1"), 2, "'a b' cannot be the name"),
        (("submit", "a.ipynb", "--output", "a.ipynb/"), 2, "Cannot write a.ipynb"),
        (("submit", "aa.ipynb"), 2, "Did you mean a.ipynb?"),
        (("submit", "missing.ipynb"), 2, "missing.ipynb"),
        (("submit", "text.ipynb"), 2, "no notebook"),
        (("submit", "kernel.ipynb"), 2, "no-such-kernel"),
        (("submit",), 2, "NOTEBOOK"),
        (("frobnicate",), 2, "frobnicate"),
        (("submt",), 2, "Did you mean 'submit'?"),
        (("submit", "a.ipynb", "-f", "smal"), 2, "Did you mean 'small'?"),
        (("submit", "script.py"), 2, "script.py is no notebook"),
        (("submit", "a.ipynb", "missing.ipynb"), 2, "missing.ipynb"),
        (("submit", "empty"), 2, "no notebook in empty"),
        (("submit", "b*.ipynb"), 2, "No notebook matches b*.ipynb"),
        (("submit", "a.ipynb", "kernel.ipynb", "-f", "enormous"), 2, "enormous"),
        (("submit", "a.ipynb", "kernel.ipynb", "--output", "x.ipynb"), 2, "x.ipynb is no folder"),
        (("submit", "a.ipynb", "-i", "no-such-file"), 2, "no-such-file"),
        (("rerun", "train-abcd2345"), 3, "train-abcd2345"),
        (("cancel", "train-abcd2345"), 3, "train-abcd2345"),
        (("deliver", "train-abcd2345"), 3, "train-abcd2345"),
        (("delete", "train-abcd2345"), 3, "train-abcd2345"),
        (("show", "train-abcd2345"), 3, "train-abcd2345"),
        (("wait", "train-abcd2345"), 3, "train-abcd2345"),
        (("logs", "../etc"), 3, "../etc"),
        (("submit", "a.ipynb", "-f", "gpu-1"), 4, "nvidia.com/gpu"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_refused(cli: Cli, arguments: tuple[str, ...], code: int, says: str) -> None:
    cli.capacity = "cpu=64,memory=512Gi"
    notebooks.write(cli.workspace / "a.ipynb", "1")
    notebooks.write(cli.workspace / "kernel.ipynb", "1", kernel="no-such-kernel")
    (cli.workspace / "text.ipynb").write_text("text")
    (cli.workspace / "cut.yaml").write_text("a: [1, 2\nb: 3\n")
    (cli.workspace / "script.py").write_text("1")
    (cli.workspace / "empty").mkdir()
    ran = cli.run(*arguments)
    assert ran.returncode == code, ran.stderr
    assert says in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""
    assert not list(cli.exchange.glob("*-*")), "nothing was submitted"


def test_a_bad_setting_is_named(cli: Cli) -> None:
    cli.capacity = "cpu"
    ran = cli.run("list")
    assert ran.returncode == 2
    assert "JUPYTER_TO_JOB_CAPACITY='cpu'" in ran.stderr and "cpu=2" in ran.stderr


def test_a_kernel_that_no_document_can_hold_is_refused(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "jupyter" / "kernels" / "odd"
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text('{"argv": ["true"], "metadata": {"weight": NaN}}')
    cli.variables["JUPYTER_PATH"] = str(tmp_path / "jupyter")
    notebooks.write(cli.workspace / "odd.ipynb", "1", kernel="odd")
    ran = cli.run("submit", "odd.ipynb")
    assert ran.returncode == 2 and "kernel.json is not valid" in ran.stderr
    assert cli.json("list") == []


def test_what_can_be_chosen(cli: Cli) -> None:
    assert cli.json("flavors")["default"] == {"flavor": "small", "device": "cpu"}
    assert "small" in cli.run("flavors").stdout
    assert "Usage" in cli.run("--help").stdout


def test_an_isolated_job_writes_nothing_here(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "print(open('in.txt').read())", "open('made', 'w')")
    (cli.workspace / "in.txt").write_text("input")
    job = cli.json("submit", "a.ipynb", "--isolated", "-i", "in.txt", "--wait")
    assert job["isolated"] is True
    assert notebooks.printed(cli.result(job)) == "input\n"
    assert not (cli.workspace / "made").exists()
    until(lambda: list(cli.exchange.glob("*/attempt-1/artifacts/made")), "the artifact")


def test_nothing_of_the_submitter_leaks(cli: Cli) -> None:
    """Dispatcher, runner and kernel have the job's variables, and none of the submitter's."""
    cli.variables = {"AWS_SECRET_ACCESS_KEY": "not-for-jobs", "JUPYTER_TOKEN": "not-for-jobs"}
    name = cli.submit_waiting("-e", "MINE=for-this-job")
    runner = cli.runner(name)
    (dispatcher,) = cli.dispatchers()
    seen = [dispatcher, runner, *runner.children(recursive=True)]
    assert len(seen) >= 3
    for process in seen:
        environ = Path(f"/proc/{process.pid}/environ").read_bytes()
        assert b"not-for-jobs" not in environ, process
        assert "for-this-job" not in " ".join(process.cmdline())
    assert "for-this-job" not in cli.run("show", name, "--json").stdout
    cli.release()
    cli.json("wait", name)


def test_the_owner_is_the_user_of_the_operating_system(cli: Cli) -> None:
    """Whatever the variables say, from which anybody's jobs could be had."""
    notebooks.write(cli.workspace / "a.ipynb", "1")
    cli.variables |= {"LOGNAME": "mallory", "USER": "mallory"}
    job = cli.json("submit", "a.ipynb")
    assert job["owner"] == pwd.getpwuid(os.getuid()).pw_name != "mallory"
