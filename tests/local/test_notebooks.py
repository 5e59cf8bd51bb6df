"""Every kind of notebook that people have, through the command line: its result, or a clear error.

All of them are sent at once, as a batch of jobs; each test looks at one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from .. import notebooks
from ..processes import end_all
from .cli import Cli

PYTHON = {"name": "python3", "display_name": "Python 3", "language": "python"}
UPDATES = "for n in range(20001): print(f'\\r{n:6d}/20000', end='', flush=n % 100 == 0)\nprint()"
ERASED = (
    "print('spinning |', end='')\nfor c in '/-|' * 50: print('\\b' + c, end='')\nprint('\\bdone')"
)
JUNK = r"""
import sys, os, time
print('nul \x00 bell \x07 ansi \x1b[31mred\x1b[0m vertical \x0b end')
sys.stdout.flush()
os.write(1, b'\xff\xfe raw \x80\n')
time.sleep(1)  # a thread of the kernel reads it, and may be late
try:
    print('lone \udcff surrogate')
except UnicodeError as error:
    print(type(error))
print('kept')
"""
RAW = "\ufffd\ufffd raw \ufffd\n"
KEPT = "nul \0 bell \a ansi \x1b[31mred\x1b[0m vertical \v end\nlone \ufffd surrogate\nkept\n"


def notebook_text(*cells: Any, minor: int = 5, **metadata: Any) -> str:
    notebook = json.loads(nbformat.writes(new_notebook(cells=list(cells), metadata=metadata)))
    notebook["nbformat_minor"] = minor
    if minor < 5:
        for cell in notebook["cells"]:
            del cell["id"]
    return json.dumps(notebook)


def old_notebook() -> str:
    v3 = nbformat.v3
    cells = [v3.new_text_cell("markdown", "# Old"), v3.new_code_cell("print('ran', 6 * 7)")]
    worksheet = v3.new_worksheet(cells=cells)
    return str(v3.writes_json(v3.new_notebook(worksheets=[worksheet])))


RUNS = new_code_cell("print('ran', 6 * 7)")
NAMES = [
    'it\'s "quoted" {brace} {0} 100%d %s.ipynb',
    "héllo 你好 🚀.ipynb",
    "-dash $HOME `x` ;&|.ipynb",
    "a:b back\\slash #?.ipynb",
    "x" * 249 + ".ipynb",  # 255 bytes
]
GOOD = {
    "no kernel.ipynb": notebook_text(RUNS),
    "nbformat 3.ipynb": old_notebook(),
    **{
        f"nbformat 4.{minor}.ipynb": notebook_text(RUNS, minor=minor, kernelspec=PYTHON)
        for minor in range(6)
    },
    **{name: notebook_text(RUNS, kernelspec=PYTHON) for name in NAMES},
}
SILENT = {
    "no cells.ipynb": notebook_text(kernelspec=PYTHON),
    "text only.ipynb": notebook_text(
        new_markdown_cell("# T"), new_markdown_cell("x"), kernelspec=PYTHON
    ),
    "empty code.ipynb": notebook_text(new_code_cell(""), new_code_cell(" \n"), kernelspec=PYTHON),
}
OUTPUT = {
    "updates.ipynb": (UPDATES, " 20000/20000\n"),
    "erased.ipynb": (ERASED, "spinning done\n"),
    "junk.ipynb": (JUNK, KEPT),
}
REFUSED = {
    "broken.ipynb": "{",
    "empty.ipynb": "",
    "list.ipynb": "[]",
    "picture.ipynb": "\x89PNG",
    "no notebook.ipynb": '{"a": 1}',
}
MISSING = {
    "missing kernel.ipynb": notebook_text(RUNS, kernelspec={**PYTHON, "name": "no-such-kernel"})
}


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Iterator[Cli]:
    folder = tmp_path_factory.mktemp("notebooks")
    cli = Cli(folder / "workspace", folder / "exchange", home)
    cli.workspace.mkdir()
    yield cli
    cli.end()
    end_all(folder)


@pytest.fixture(scope="module")
def ended_jobs(cli: Cli) -> dict[str, dict[str, Any]]:
    """The jobs that were made of all notebooks that can be sent, by the notebook's name."""
    printing = {name: notebook_text(new_code_cell(source)) for name, (source, _) in OUTPUT.items()}
    sources = {**GOOD, **SILENT, **printing}
    for name, source in sources.items():
        (cli.workspace / name).write_text(source)
    submitted = [cli.start("submit", "--", name) for name in sources]
    names = []
    for process in submitted:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        names.append(out.strip())
    cli.run("wait", *names)
    jobs = [cli.json("show", name) for name in names]
    return dict(zip(sources, jobs, strict=True))


@pytest.mark.parametrize("name", GOOD, ids=lambda name: name[:30])
def test_it_runs(name: str, cli: Cli, ended_jobs: dict[str, dict[str, Any]]) -> None:
    job = ended_jobs[name]
    assert job["state"] == "succeeded", job
    assert notebooks.printed(cli.result(job)) == "ran 42\n"
    assert (cli.workspace / name).read_text() == GOOD[name]


@pytest.mark.parametrize("name", SILENT)
def test_nothing_to_run_is_a_success(
    name: str, cli: Cli, ended_jobs: dict[str, dict[str, Any]]
) -> None:
    job = ended_jobs[name]
    assert (job["state"], job["progress"]["cells_total"]) == ("succeeded", 0)
    sources = [c["source"] for c in json.loads(SILENT[name])["cells"]]
    assert [c.source for c in notebooks.read(cli.result(job)).cells] == [
        "".join(source) for source in sources
    ]


@pytest.mark.parametrize("name", OUTPUT)
def test_what_is_printed_is_as_jupyterlab_would_have_it(
    name: str, cli: Cli, ended_jobs: dict[str, dict[str, Any]]
) -> None:
    job = ended_jobs[name]
    assert job["state"] == "succeeded", job
    printed = notebooks.printed(cli.result(job))
    if name == "junk.ipynb":  # the kernel reads the raw bytes in a thread: they come at any place
        assert RAW in printed
        printed = printed.replace(RAW, "")
    assert printed == OUTPUT[name][1]


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_notebook_is_refused(name: str, cli: Cli) -> None:
    (cli.workspace / name).write_text(REFUSED[name], encoding="latin-1")
    ran = cli.run("submit", "--", name)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert name in ran.stderr and "Traceback" not in ran.stderr


def test_a_missing_kernel_is_named(cli: Cli) -> None:
    """Refused when it is sent, where the machine can know it; else the job says so."""
    ((name, source),) = MISSING.items()
    (cli.workspace / name).write_text(source)
    ran = cli.run("submit", "--wait", "--", name)
    assert ran.returncode in (1, 2)
    assert "no-such-kernel" in ran.stderr + ran.stdout
    assert "Traceback" not in ran.stderr
