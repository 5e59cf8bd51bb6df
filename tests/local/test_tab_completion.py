"""What Tab offers in bash, zsh and fish, by the protocol of the scripts that they load."""

from __future__ import annotations

import subprocess

import pytest

from .. import notebooks
from .cli import COMMAND, Cli


def answer(cli: Cli, shell: str, *words: str) -> list[str]:
    """Return the lines that a shell's script gets for the words, the last of which is typed."""
    ran = subprocess.run(
        [COMMAND],
        env={
            **cli.environment,
            "_JUPYTER_TO_JOB_COMPLETE": f"{shell}_complete",
            "COMP_WORDS": " ".join(["jupyter-to-job", *words]),
            "COMP_CWORD": words[-1] if shell == "fish" else str(len(words)),
        },
        cwd=cli.workspace,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stderr == ""
    return ran.stdout.splitlines()


def complete(cli: Cli, *words: str) -> list[str]:
    """Return what Tab offers in bash."""
    return [line.partition(",")[2] for line in answer(cli, "bash", *words) if line]


def test_tab_completes(cli: Cli) -> None:
    cli.capacity = "cpu=1,memory=2Gi"
    notebooks.write(cli.workspace / "a.ipynb", "1")
    names = [cli.submit("a.ipynb", "--name", name) for name in ("old", "new")]
    assert complete(cli, "show", "") == names[::-1]
    assert complete(cli, "cancel", names[0], "ne") == names[1:]
    assert complete(cli, "submit", "-f", "sm") == ["small"]
    assert "cpu" in complete(cli, "submit", "--device", "")
    assert complete(cli, "d") == ["deliver", "delete", "doctor"]
    assert "--follow" in complete(cli, "logs", "--")
    cli.variables["JUPYTER_TO_JOB_BACKEND"] = "abacus"
    assert complete(cli, "show", "") == []


@pytest.fixture
def notebook(cli: Cli) -> str:
    cell = notebooks.parameters("lr = 0.1  # step\nlayers = [2, 3]\nlabel = None")
    notebooks.write(cli.workspace / "train it.ipynb", cell)
    return "'train it.ipynb'"


def test_tab_completes_the_names_of_a_notebooks_parameters(cli: Cli, notebook: str) -> None:
    assert complete(cli, "submit", notebook, "-p", "") == ["lr", "layers", "label"]
    assert complete(cli, "submit", notebook, "--parameter", "la") == ["layers", "label"]
    assert complete(cli, "submit", notebook, "-f", "small", "-r", "lr") == ["lr"]
    given = ("submit", "-p", "lr", "0.5", notebook, "-r", "label", "x")
    assert complete(cli, *given, "-p", "") == ["layers"]
    assert complete(cli, *given, "-p", "layers", "") == []  # a value
    assert complete(cli, "submit", "-p", "") == []  # of which notebook, nobody knows yet
    assert complete(cli, "submit", "nowhere.ipynb", "-p", "") == []
    (cli.workspace / "broken.ipynb").write_text("{")
    assert complete(cli, "submit", "broken.ipynb", "-p", "") == []


def test_other_shells_show_the_defaults(cli: Cli, notebook: str) -> None:
    zsh = answer(cli, "zsh", "submit", notebook, "-p", "l")
    assert zsh == [
        "plain",
        "lr",
        "0.1 # step",
        "plain",
        "layers",
        "[2, 3]",
        "plain",
        "label",
        "None",
    ]
    fish = answer(cli, "fish", "submit", notebook, "-p", "l")
    assert fish == ["plain,lr\t0.1 # step", "plain,layers\t[2, 3]", "plain,label\tNone"]


def test_tab_completes_the_parameters_of_a_job(cli: Cli, notebook: str) -> None:
    name = cli.submit("train it.ipynb", "-p", "lr", "0.5", "-p", "seed", "7", "--group", "g")
    assert complete(cli, "rerun", name, "-p", "") == ["lr", "layers", "label", "seed"]
    assert complete(cli, "rerun", "--group", "g", "-p", "s") == ["seed"]
    assert complete(cli, "rerun", name, "--unset", "") == ["lr", "seed"]
    assert complete(cli, "rerun", "-p", "") == []
    (cli.workspace / "train it.ipynb").unlink()
    assert answer(cli, "fish", "rerun", name, "-p", "") == ["plain,lr\t0.5", "plain,seed\t7"]
    assert complete(cli, "submit", "--group", "") == ["g"]


def test_bash_itself_puts_the_name_into_the_line(cli: Cli, notebook: str) -> None:
    script = f"""
        eval "$(_JUPYTER_TO_JOB_COMPLETE=bash_source {COMMAND})"
        COMP_WORDS=(jupyter-to-job submit "'train it.ipynb'" -p la) COMP_CWORD=4
        _jupyter_to_job_completion {COMMAND}
        printf '%s\n' "${{COMPREPLY[@]}}"
    """
    ran = subprocess.run(
        ["bash", "-c", script],
        cwd=cli.workspace,
        env=cli.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stdout.split() == ["layers", "label"], ran.stderr
