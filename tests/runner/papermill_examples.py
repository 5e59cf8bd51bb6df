"""Small notebooks after papermill's public examples, run by papermill, by us, and by our engine.

papermill is the oracle: what it made of a notebook in this very session is what ours is held to.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_markdown_cell, new_notebook, new_output, new_raw_cell

from .jobs import BOUND, RUNNER, code

PAPERMILL, OURS, ENGINE = SIDES = ("papermill", "job_runner", "papermill --engine job_runner")
_COMMANDS = {
    PAPERMILL: [sys.executable, "-m", "papermill", "--no-progress-bar"],
    OURS: [*RUNNER, "run"],
    ENGINE: [sys.executable, "-m", "papermill", "--no-progress-bar", "--engine", "job_runner"],
}
# jupyter_client chooses a kernel's ports before the kernel binds them, and another process may take
# one meanwhile. papermill ends with such words then. Our runner holds the ports that it chose.
_NO_KERNEL = ("Kernel died before replying to kernel_info", "Kernel didn't respond in")
PARAMETERS_FILE = "parameters.json"
BANNER_TAG = "papermill-error-cell-tag"
TYPES = {"list": [1, "a", None, True, 2.5, []], "dict": {"k": {"x": 1}, "none": None}}
_WORDS = ('it\'s "q" \\ $HOME `x`\nü☃𝄞', "3", "-2.5", "1e3", "True", "False", "None", "text")
GIVEN = tuple(word for n, value in enumerate(_WORDS) for word in ("-p", f"p{n}", value))
_COPIES = ("--log-output", "--stdout-file", "stdout.txt", "--stderr-file", "stderr.txt")
_SHOWS = """\
import sys
from IPython.display import clear_output, display
handle = display("before", display_id=True)
print("out", flush=True)
print("err", file=sys.stderr, flush=True)
"value"
"""

_FAILS = "from IPython.display import clear_output\nget_ipython().run_cell('1 / 0')\n"


@dataclass(frozen=True)
class Example:
    """A notebook and how it is run; `only` adds a side's own options, by its name."""

    notebook: str
    given: tuple[str, ...] = ()
    file: Mapping[str, Any] | None = None
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Ran:
    """What a side made of an example: exit code, words on stderr, files."""

    code: int
    stderr: str
    folder: Path

    @cached_property
    def result(self) -> Any:
        """The notebook, which must be valid; None if there is none."""
        path = self.folder / "out" / "result.ipynb"
        if not path.exists():
            return None
        nbformat.validate(json.loads(path.read_text()))
        return nbformat.read(path, as_version=4)

    @property
    def cells(self) -> list[Any]:
        """The cells without the banner's."""
        return [c for c in self.result.cells if BANNER_TAG not in c.metadata.get("tags", ())]

    def outputs(self, name: str) -> str | None:
        """The text of a file in the folder; None if it is not there."""
        path = self.folder / name
        return path.read_text() if path.exists() else None


def document(*cells: Any, kernel: str | None = "python3", language: str = "python") -> Any:
    made = new_notebook(cells=[code(c) if isinstance(c, str) else c for c in cells])
    if kernel:
        made.metadata.kernelspec = {"name": kernel, "display_name": kernel, "language": language}
    return made


def text(*cells: Any, **spec: Any) -> str:
    return str(nbformat.writes(document(*cells, **spec)))


def _ran_before() -> str:
    """A result of papermill's in nbformat 4.4: to be run again, with other parameters."""
    banner = {"tags": [BANNER_TAG]}
    made = document(
        new_markdown_cell("<span>An Exception was encountered</span>", metadata=banner),
        code("a = 1\nb = 2", "parameters"),
        code("# Parameters\na = 5", "injected-parameters"),
        new_markdown_cell("<span>here</span>", metadata=banner),
        code("print(a, b)"),
        code("a = 7", "parameters"),
        code("print(a)"),
    )
    made.cells[4].outputs = [new_output("stream", text="old output\n")]
    made.cells[4].execution_count = 77
    made.cells[4].metadata.papermill = {"status": "failed", "exception": True, "own": 1}
    made.metadata.papermill = {
        "parameters": {"a": 5},
        "version": "1.0",
        "exception": True,
        "own": 1,
    }
    made.metadata.orig_nbformat = 4
    made.nbformat_minor = 4
    for cell in made.cells:
        del cell["id"]
    return json.dumps(made)


_V3 = {
    "nbformat": 3,
    "nbformat_minor": 0,
    "metadata": {"kernelspec": {"name": "missing", "language": "python", "display_name": "M"}},
    "worksheets": [
        {
            "cells": [
                {
                    "cell_type": "code",
                    "language": "python",
                    "input": ["import os\n", "print(os.path.basename(os.getcwd()))"],
                    "outputs": [],
                    "metadata": {},
                },
                {"cell_type": "heading", "level": 2, "source": ["title"], "metadata": {}},
            ]
        }
    ],
}

EXAMPLES = {
    "simple_execute": Example(
        text(
            code("msg = None", "parameters"),
            "#papermill_description=DESC\nprint(msg)",
            new_markdown_cell("words"),
            "",
            new_raw_cell("raw"),
        ),
        ("-p", "msg", "hello", "-p", "extra", "1"),
    ),
    "no_parameters": Example(
        text("msg = None", *(f"print(repr(p{n}))" for n in range(8)), "print(repr((list, dict)))"),
        GIVEN,
        file=TYPES,
    ),
    "ran_before": Example(_ran_before(), ("-p", "a", "9")),
    "nb_version_3": Example(
        json.dumps(_V3),
        ("--cwd", "work"),
        only={PAPERMILL: ("-k", "python3"), OURS: ("--kernel", "python3")},
    ),
    "broken": Example(
        text(
            new_markdown_cell("A cell that makes counts differ from indices."),
            "print('good')",
            new_markdown_cell("text"),
            "display('a')\ndisplay('b')\nassert False",
            new_markdown_cell("after"),
            "print('no')",
        )
    ),
    "raises_exception": Example(
        text(code("1 / 0", "raises-exception"), "print('on')"),
        ("-p", "a", "true", "-p", "b", "[1]", "-p", "c", "007", "-p", "d", "nan"),
    ),
    "sysexit0": Example(text("import sys", "sys.exit(0)", "print('no')")),
    "last_sysexit0": Example(text("import sys", "sys.exit(0)", new_markdown_cell("end"))),
    "tagged_sysexit0": Example(
        text("import sys", code("sys.exit(0)", "raises-exception"), "print('on')")
    ),
    "sysexit1": Example(text("import sys", "sys.exit(1)", "print('no')")),
    "run_file": Example(
        text(
            "%%writefile train.py\nraise RuntimeError('loss is nan')",
            "%run train.py",
            "print('next')",
            new_markdown_cell("end"),
        )
    ),
    "shown_errors": Example(
        text(
            "get_ipython().run_cell('1 / 0');",
            "%%capture\n1 / 0",
            f"{_FAILS}clear_output(wait=True)",
            "print('next')",
            new_markdown_cell("end"),
        )
    ),
    "excused_errors": Example(
        text(
            f"{_FAILS}clear_output()",
            f"{_FAILS}clear_output(wait=True)\nprint('next')",
            "get_ipython().run_cell('raise SystemExit(0)')",
        )
    ),
    "dead": Example(text("print('kept')", "import os; os.kill(os.getpid(), 9)", "print('no')")),
    "outputs": Example(
        text(
            _SHOWS,
            "handle.update('after')",
            "for n in range(3):\n    clear_output(wait=True)\n    print(n)",
            "print('a\\rb')",
            code("print('skipped')", "skip-execution"),
        ),
        only=dict.fromkeys(
            (PAPERMILL, ENGINE),
            ("--log-output", "--stdout-file", "stdout.txt", "--stderr-file", "stderr.txt"),
        ),
    ),
    "no_kernelspec": Example(text("print(1)", kernel=None)),
    "bash": Example(
        text(
            code("word=a", "parameters"),
            'echo "$word|$flag|$nothing"',
            kernel="bash",
            language="bash",
        ),
        ("-p", "word", 'it\'s "q" $HOME', "-p", "flag", "True", "-p", "nothing", "None"),
    ),
}


WITH_ENGINE = frozenset(
    [
        "simple_execute",
        "broken",
        "raises_exception",
        "sysexit0",
        "last_sysexit0",
        "tagged_sysexit0",
        "sysexit1",
        "run_file",
        "shown_errors",
        "excused_errors",
        "dead",
        "outputs",
    ]
)
"""Examples that our engine in papermill runs, too; in the others its code has no part."""


def run_all(folder: Path, data: str) -> dict[tuple[str, str], Ran]:
    """Run every example on every side, a few at once; `data`: Jupyter's folder with bash in it."""
    keys = [(n, s) for n in EXAMPLES for s in SIDES if s != ENGINE or n in WITH_ENGINE]

    def run_one(key: tuple[str, str]) -> Ran:
        return _run(folder / f"{key[0]}-{SIDES.index(key[1])}", *key, data=data)

    with ThreadPoolExecutor(3) as pool:
        return dict(zip(keys, pool.map(run_one, keys), strict=True))


def _run(folder: Path, name: str, side: str, *, data: str) -> Ran:
    ran = _run_once(folder, name, side, data=data)
    if side == PAPERMILL and any(words in ran.stderr for words in _NO_KERNEL):
        ran = _run_once(folder / "again", name, side, data=data)
    return ran


def _run_once(folder: Path, name: str, side: str, *, data: str) -> Ran:
    example = EXAMPLES[name]
    for made in ("out", "work"):
        (folder / made).mkdir(parents=True)
    (folder / "in.ipynb").write_text(example.notebook)
    files = ["in.ipynb", "out/result.ipynb"]
    if side == OURS:
        files = ["--input", files[0], "--output", files[1]]
    given = [*example.given, *example.only.get(side, ())]
    if example.file is not None:
        (folder / PARAMETERS_FILE).write_text(json.dumps(example.file))
        given += ["--parameters" if side == OURS else "--parameters_file", PARAMETERS_FILE]
    return run(side, folder, [*files, *given], JUPYTER_PATH=data)


def run(side: str, folder: Path, arguments: list[str], **env: str) -> Ran:
    """Run one side's command line in a folder."""
    done = subprocess.run(
        [*_COMMANDS[side], *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONWARNINGS": "ignore", **env},
        capture_output=True,
        text=True,
        timeout=BOUND * 2,
        check=False,
    )
    return Ran(done.returncode, done.stderr, folder)


def comparable(result: Any) -> Any:
    """Return a notebook without what differs from run to run, and without what docs/papermill.md
    says that one side has and the other has not: cells' `execution`, and our receipts.
    """
    made = json.loads(json.dumps(result))
    for holder in [made, *made["cells"]]:
        holder.pop("id", None)
        holder["metadata"].pop("execution", None)
        holder["metadata"].pop("jupyter_to_job", None)
        papermill = holder["metadata"].get("papermill", {})
        for key in ("start_time", "end_time", "duration"):
            papermill[key] = papermill.get(key) is not None
    for cell in made["cells"]:
        if "outputs" in cell:
            cell["outputs"] = _with_whole_streams(cell["outputs"])
    return json.loads(re.sub(r"0x[0-9a-f]{6,}|ipykernel_\d+/\d+", "<address>", json.dumps(made)))


def _with_whole_streams(outputs: list[Any]) -> list[Any]:
    """Return outputs with the pieces of a stream as one: a busy kernel sends a line in two."""
    whole: list[Any] = []
    for output in outputs:
        last = whole[-1] if whole else {}
        if output["output_type"] == "stream" and last.get("name") == output["name"]:
            last["text"] = "".join(last["text"]) + "".join(output["text"])
        else:
            whole.append(output)
    return whole
