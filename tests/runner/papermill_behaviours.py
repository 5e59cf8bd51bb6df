"""What papermill documents of a run, one row each, and where ours differs on purpose.

docs/papermill.md shows these rows; `tests/docs` holds the page to them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .jobs import stream
from .papermill_examples import BANNER_TAG, TYPES, Ran

_UNSET = object()
_NO_TIMES = {"duration": False, "end_time": False, "start_time": False}
_TIMES = {"duration": True, "end_time": True, "start_time": True}
_STRING = 'it\'s "q" \\ $HOME `x`\nü☃𝄞'
_RECORD = {"default_parameters", "duration", "end_time", "environment_variables", "exception"}
_RECORD |= {"input_path", "output_path", "parameters", "start_time", "version"}


@dataclass(frozen=True)
class Behaviour:
    """What papermill `says`, seen by `look` in what became of `example`.

    `ours` is what the runner does instead where it differs, `engine` what papermill does with our
    engine where that differs from its own; both for a reason that stands in docs/papermill.md.
    """

    says: str
    example: str
    look: Callable[[Ran], Any]
    papermill: Any
    ours: Any = _UNSET
    engine: Any = _UNSET

    @property
    def differs(self) -> bool:
        """Tell whether ours is not papermill's."""
        return self.ours is not _UNSET or self.engine is not _UNSET

    def expected(self, side: int) -> Any:
        """Return what is right for papermill (0), the runner (1) and our engine (2)."""
        own = (_UNSET, self.ours, self.engine)[side]
        return self.papermill if own is _UNSET else own


def _tagged(tag: str) -> Callable[[Ran], list[tuple[int, str]]]:
    """Cells with a tag: (place among all cells, source)."""

    def look(ran: Ran) -> list[tuple[int, str]]:
        cells = enumerate(ran.result.cells)
        return [(n, cell.source) for n, cell in cells if tag in cell.metadata.get("tags", ())]

    return look


def _statuses(ran: Ran) -> list[str]:
    return [cell.metadata.papermill.status for cell in ran.cells]


def _of_run(*keys: str) -> Callable[[Ran], list[Any]]:
    return lambda ran: [ran.result.metadata.papermill[key] for key in keys]


def _of_cell(index: int) -> Callable[[Ran], dict[str, Any]]:
    """papermill's metadata of a cell, with times reduced to whether they are there."""

    def look(ran: Ran) -> dict[str, Any]:
        seen = dict(ran.cells[index].metadata.papermill)
        return {**seen, **{key: seen[key] is not None for key in _TIMES}}

    return look


def _counts(ran: Ran) -> list[int | None]:
    return [cell.execution_count for cell in ran.cells if cell.cell_type == "code"]


def _printed(index: int) -> Callable[[Ran], str]:
    return lambda ran: stream(ran.cells[index])


def _code(ran: Ran) -> int:
    return ran.code


def _banners(ran: Ran) -> int:
    return len(_tagged(BANNER_TAG)(ran))


def _ending(ran: Ran) -> tuple[int, int, list[str]]:
    """Exit code, cells of the banner, statuses."""
    return ran.code, _banners(ran), _statuses(ran)


def _marked(ran: Ran) -> tuple[int, list[str]]:
    """Exit code, and the sources from the mark on."""
    sources = [cell.source for cell in ran.result.cells]
    return ran.code, sources[max(n for n, _ in _tagged(BANNER_TAG)(ran)) + 1 :]


def _warnings(ran: Ran) -> list[str]:
    lines = ran.stderr.splitlines()
    return [line for line in lines if line.startswith(("Passed unknown", "Input notebook does"))]


_STYLE = "color:red; font-family:Helvetica Neue, Helvetica, Arial, sans-serif; font-size:2em;"
_LINK = "'<a href=\"#papermill-error-cell\">In [2]</a>'"
_MESSAGE = f'<span style="{_STYLE}">An Exception was encountered at {_LINK}.</span>'
_ANCHOR = (
    f'<span id="papermill-error-cell" style="{_STYLE}">'
    "Execution using papermill encountered an exception here and stopped:</span>"
)

BEHAVIOURS = [
    Behaviour(
        "parameters go into a cell tagged `injected-parameters` after the one tagged `parameters`",
        "simple_execute",
        _tagged("injected-parameters"),
        [(1, '# Parameters\nmsg = "hello"\nextra = 1\n')],
    ),
    Behaviour(
        "the cell tagged `parameters` stays as it is",
        "simple_execute",
        _tagged("parameters"),
        [(0, "msg = None")],
    ),
    Behaviour("the cells after it see the new values", "simple_execute", _printed(2), "hello\n"),
    Behaviour(
        "a parameter that the notebook does not declare is warned of and passed all the same",
        "simple_execute",
        _warnings,
        ["Passed unknown parameter: extra"],
    ),
    Behaviour(
        "without the tag they go to the top, with a warning",
        "no_parameters",
        lambda ran: (ran.result.cells[0].metadata.tags, _warnings(ran)[-1]),
        (["injected-parameters"], "Input notebook does not contain a cell with tag 'parameters'"),
    ),
    Behaviour(
        "a value that looks like a number, a boolean or None becomes one",
        "no_parameters",
        lambda ran: [ast.literal_eval(stream(cell)) for cell in ran.cells[2:10]],
        [_STRING, 3, -2.5, 1000.0, True, False, None, "text"],
    ),
    Behaviour(
        "a file of parameters may hold lists and objects, and null",
        "no_parameters",
        lambda ran: ast.literal_eval(stream(ran.cells[10])),
        (TYPES["list"], TYPES["dict"]),
    ),
    Behaviour(
        "parameters are written in the kernel's language",
        "bash",
        lambda ran: (ran.cells[1].source, stream(ran.cells[2])),
        (
            "# Parameters\nword='it'\"'\"'s \"q\" $HOME'\nflag=true\nnothing=\n",
            'it\'s "q" $HOME|true|\n',
        ),
    ),
    Behaviour(
        "without parameters nothing is injected", "broken", _tagged("injected-parameters"), []
    ),
    Behaviour(
        "what was injected before is replaced; a second cell tagged `parameters` is like others",
        "ran_before",
        lambda ran: [cell.source for cell in ran.result.cells if cell.cell_type == "code"],
        ["a = 1\nb = 2", "# Parameters\na = 9\n", "print(a, b)", "a = 7", "print(a)"],
    ),
    Behaviour("a former run's banner is removed", "ran_before", _banners, 0),
    Behaviour(
        "old outputs, counts and cells' metadata are cleared",
        "ran_before",
        lambda ran: (_printed(2)(ran), _counts(ran), "own" in ran.cells[2].metadata.papermill),
        ("9 2\n", [1, 2, 3, 4, 5], False),
    ),
    Behaviour(
        "the notebook's own `papermill` metadata is kept and renewed",
        "ran_before",
        _of_run("own", "version", "parameters", "exception"),
        [1, "1.0", {"a": 9}, None],
    ),
    Behaviour(
        "nbformat 3 and older 4 are upgraded, cells get ids",
        "nb_version_3",
        lambda ran: (
            ran.result.nbformat,
            ran.result.nbformat_minor,
            all(cell.id for cell in ran.result.cells),
            ran.result.cells[1].source,
            set(ran.result.metadata) - {"jupyter_to_job"},
        ),
        (4, 5, True, "## title", {"kernelspec", "language_info", "papermill"}),
    ),
    Behaviour(
        "`metadata.papermill` tells of the run, with these keys",
        "simple_execute",
        lambda ran: set(ran.result.metadata.papermill),
        _RECORD,
    ),
    Behaviour(
        "among them the paths and the parameters, as they were given",
        "simple_execute",
        _of_run("input_path", "output_path", "parameters", "exception"),
        ["in.ipynb", "out/result.ipynb", {"msg": "hello", "extra": 1}, None],
    ),
    Behaviour(
        "each cell has its own, of text and empty cells too",
        "simple_execute",
        lambda ran: [_of_cell(index)(ran) for index in range(6)],
        [{**_TIMES, "exception": False, "status": "completed"}] * 6,
    ),
    Behaviour("every cell has tags", "simple_execute", lambda ran: ran.cells[3].metadata.tags, []),
    Behaviour(
        "code cells are counted as the kernel does, empty ones are not sent",
        "simple_execute",
        _counts,
        [1, 2, 3, None],
    ),
    Behaviour(
        "`language_info` is what the kernel says",
        "bash",
        lambda ran: ran.result.metadata.language_info.name,
        "bash",
    ),
    Behaviour(
        "at the first error the run ends: that cell failed, those behind it are pending",
        "broken",
        _statuses,
        ["completed", "completed", "completed", "failed", "pending", "pending"],
    ),
    Behaviour(
        "the failed cell keeps its outputs and its times, and says that there was an exception",
        "broken",
        lambda ran: ([o.output_type for o in ran.cells[3].outputs], _of_cell(3)(ran)),
        (
            ["display_data", "display_data", "error"],
            {**_TIMES, "exception": True, "status": "failed"},
        ),
    ),
    Behaviour(
        "the cells behind it have no outputs and no times",
        "broken",
        lambda ran: (ran.cells[5].outputs, ran.cells[5].execution_count, _of_cell(5)(ran)),
        ([], None, {**_NO_TIMES, "exception": None, "status": "pending"}),
    ),
    Behaviour(
        "an error banner stands at the top, and a mark before the cell that it links to",
        "broken",
        _tagged(BANNER_TAG),
        [(0, _MESSAGE), (4, _ANCHOR)],
    ),
    Behaviour(
        "the run's metadata says that there was an exception",
        "broken",
        _of_run("exception"),
        [True],
    ),
    Behaviour("an error in a cell is exit code 1", "broken", _code, 1),
    Behaviour("success is exit code 0", "simple_execute", _code, 0),
    Behaviour(
        "a display is updated where it stands, `clear_output` clears, streams are joined",
        "outputs",
        lambda ran: [
            [o.get("name") or o.data["text/plain"] for o in cell.outputs] for cell in ran.cells[:3]
        ],
        [["'after'", "stdout", "stderr", "'value'"], [], ["stdout"]],
    ),
    Behaviour(
        "a cell tagged `skip-execution` is passed by",
        "outputs",
        lambda ran: (ran.cells[4].outputs, _statuses(ran)[4]),
        ([], "completed"),
    ),
    Behaviour(
        "`-k` overrules the kernel that the notebook names; `--cwd` is where it works",
        "nb_version_3",
        lambda ran: (_printed(0)(ran), ran.result.metadata.kernelspec.name),
        ("work\n", "missing"),
    ),
    Behaviour(
        "after an error that `%run` or `%%capture` catches later cells run, and the run failed",
        "run_file",
        lambda ran: (*_marked(ran), _printed(2)(ran)),
        (1, ["%run train.py", "print('next')", "end"], "next\n"),
    ),
    Behaviour(
        "of several such cells the banner links to the last",
        "shown_errors",
        lambda ran: (_marked(ran)[0], len(_marked(ran)[1]), _banners(ran)),
        (1, 3, 2),
    ),
    Behaviour(
        "an error that `clear_output` removes does not count",
        "excused_errors",
        _ending,
        (0, 0, ["completed"] * 3),
    ),
    Behaviour(
        "`\\r` and `\\b` are kept in streams as they came",
        "outputs",
        _printed(3),
        "a\rb\n",
        ours="b\n",
        engine="b\n",
    ),
    Behaviour(
        "a cell tagged `raises-exception` goes on, and the run counts as failed in the end",
        "raises_exception",
        _ending,
        (1, 2, ["completed"] * 3),
        ours=(0, 0, ["completed"] * 3),
    ),
    Behaviour(
        "`-p` values are read as Python would read numbers; JSON is text",
        "raises_exception",
        lambda ran: ran.cells[0].source,
        '# Parameters\na = "true"\nb = "[1]"\nc = 7\nd = float(\'nan\')\n',
        ours='# Parameters\na = True\nb = [1]\nc = "007"\nd = "nan"\n',
    ),
    Behaviour(
        "`sys.exit(0)` ends the run early, and it counts as succeeded",
        "sysexit0",
        _ending,
        (0, 0, ["completed", "failed", "pending"]),
        ours=(1, 2, ["completed", "failed", "pending"]),
    ),
    Behaviour(
        "`sys.exit(0)` in the last cell leaves that cell failed and the text behind it pending",
        "last_sysexit0",
        _ending,
        (0, 0, ["completed", "failed", "pending"]),
        ours=(0, 0, ["completed"] * 3),
        engine=(0, 0, ["completed"] * 3),
    ),
    Behaviour(
        "after `sys.exit(0)` in a cell tagged `raises-exception` the run goes on",
        "tagged_sysexit0",
        _ending,
        (0, 0, ["completed", "completed", "completed"]),
        ours=(1, 2, ["completed", "failed", "pending"]),
        engine=(1, 0, ["completed", "failed", "pending"]),
    ),
    Behaviour(
        "`sys.exit(1)` ends the run early, and it counts as failed",
        "sysexit1",
        _ending,
        (1, 2, ["completed", "failed", "pending"]),
    ),
    Behaviour(
        "a cell whose error `%run` or `%%capture` catches counts as completed in the metadata",
        "shown_errors",
        lambda ran: (_statuses(ran), _of_run("exception")(ran)),
        (["completed"] * 5, [None]),
        ours=(["completed", "completed", "failed", "completed", "completed"], [True]),
    ),
    Behaviour(
        "the banner has the same words for every failure",
        "sysexit1",
        lambda ran: "An Exception was encountered" in ran.result.cells[0].source,
        True,
        ours=False,
    ),
    Behaviour(
        "a kernel that died leaves its cell and the rest completed, and no banner",
        "dead",
        _ending,
        (138, 0, ["completed", "completed", "completed"]),
        ours=(4, 2, ["completed", "failed", "pending"]),
        engine=(138, 0, ["completed", "failed", "pending"]),
    ),
    Behaviour(
        "a notebook that names no kernel is refused",
        "no_kernelspec",
        lambda ran: (ran.code, ran.result is None),
        (1, True),
        ours=(0, False),
    ),
    Behaviour(
        "in a language whose parameters papermill cannot read, all of them are called unknown",
        "bash",
        lambda ran: [w for w in _warnings(ran) if w.startswith("Passed")],
        [f"Passed unknown parameter: {name}" for name in ("word", "flag", "nothing")],
        ours=[],
    ),
    Behaviour(
        "cells' `metadata.execution` holds the times of the kernel's messages",
        "simple_execute",
        lambda ran: "execution" in ran.cells[0].metadata,
        True,
        ours=False,
        engine=False,
    ),
]
