"""A run that prints more than it may: it goes on, and says how much is not there."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable

from job_runner.protocol import layout
from job_runner.protocol.log_text import log_text

from .jobs import BOUND, Job, banner, notebook, stream, until

KIB = 1 << 10
LIMIT = 300 * KIB
FLOOD = "print('begin')\nfor n in range(2000): print(n, 'x' * 1000)\nprint('end')"
ENDLESS = "print('begin')\nwhile True: print('x' * 1000)"


def test_the_run_goes_on_and_says_what_is_missing(job: Callable[..., Job]) -> None:
    loud = job(notebook(FLOOD, "print('result: 0.93')", "1 + 1"), output_limit=LIMIT)
    assert loud.run() == 0
    outcome, result = loud.outcome(), loud.result()
    said = r"1\.\d+ MiB of its output was dropped, over the cap of 300 KiB: print less,"
    assert (outcome.state, outcome.reason) == ("succeeded", None)
    assert re.match(said, str(outcome.message))
    first = stream(result.cells[0])
    assert first.startswith("begin\n0 x") and first.endswith("\nend\n")
    assert "reached its cap of 300 KiB" in first
    marker = re.search(r"\[\.\.\. (1\.\d+ MiB) of this cell's output \([\d,]+ messages\)", first)
    assert marker is not None and marker[1] in str(outcome.message)
    assert len(first) < LIMIT + 80 * KIB
    assert stream(result.cells[1]) == "result: 0.93\n"
    assert result.cells[2].outputs[0].data["text/plain"] == "2"
    assert banner(result) == []
    assert marker[0] in "".join(log_text(loud.records()))
    size = sum(file.stat().st_size for file in (loud.attempt() / layout.JOURNAL).iterdir())
    assert size < 2 * LIMIT


def test_endless_output_is_told_of_while_it_runs(job: Callable[..., Job]) -> None:
    """The journal stops growing; what stops the run finds all that there is to tell."""
    endless = job(notebook(ENDLESS), output_limit=LIMIT)
    process = endless.start()
    until(
        lambda: (
            (endless.attempt() / layout.JOURNAL).exists()
            and any(record["k"] == "dropped" for record in endless.records())
        ),
        "the record of a cap that is reached",
    )
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=BOUND) == 143
    outcome = endless.outcome()
    assert outcome.reason == "Terminated"
    assert "of its output was dropped, over the cap of 300 KiB" in str(outcome.message)
    text = stream(endless.result().cells[-1])
    assert text.startswith("begin\n") and "of this cell's output" in text
    assert "was dropped, over the cap" in banner(endless.result())[0]


def test_a_traceback_is_never_dropped(job: Callable[..., Job]) -> None:
    failing = job(notebook(f"{FLOOD}\n1 / 0"), output_limit=LIMIT)
    assert failing.run() == 1
    outputs = failing.result().cells[-1].outputs
    assert outputs[-1].ename == "ZeroDivisionError"
    assert outputs[-2].text.endswith("end\n")
    outcome = failing.outcome()
    assert outcome.reason == "CellError"
    assert "division by zero" in str(outcome.message) and "was dropped" in str(outcome.message)


def test_a_run_under_its_cap_is_as_without_one(job: Callable[..., Job]) -> None:
    runs = [job(notebook(FLOOD), output_limit=limit) for limit in (None, 10 << 20)]
    assert [run.run() for run in runs] == [0, 0]
    assert [run.outcome().message for run in runs] == [None, None]
    assert len({stream(run.result().cells[0]) for run in runs}) == 1
