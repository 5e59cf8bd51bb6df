"""What other programs than Python print in a cell: all of it is there when the cell has ended."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .jobs import BOUND, CAPTURING, Job, changed_runner, code, notebook, stream

BUSY = "import threading\ndef spin():\n    while True: pass\n"
BUSY += "for _ in range(3): threading.Thread(target=spin, daemon=True).start()"
BURST = "import os; os.write(1, b'out\\n' * 15_000)"
COUNT = "import subprocess; subprocess.run(['seq', '20000'])"
SAY = "import subprocess; subprocess.run(['echo', 'ü'])"
PATIENT = """\
from job_runner.kernel import client
code = client.STARTUP_CODE
client.STARTUP_CODE = code.replace("_TIMEOUT = 1.0", "_TIMEOUT = 60.0")
assert client.STARTUP_CODE != code
"""
"""A cell waits for a second at most, which may be short on a busy machine."""
WARN = "import os; os.write(2, b'warned\\n')"


@pytest.mark.parametrize("failure", ["", "; 1 / 0"])
def test_programs_output_is_in_its_cell(failure: str, job: Callable[..., Job]) -> None:
    """However it ended, and although others keep the thread waiting that reads the output."""
    sources = [BURST, COUNT, SAY, WARN] * 3
    cells = [code(source + failure, "raises-exception") for source in sources]
    made = job(notebook(*cells, BUSY, BURST + failure))
    ran = made.start(before=CAPTURING, runner=changed_runner(PATIENT)).wait(timeout=BOUND)
    assert ran == (1 if failure else 0), made.outcome().message
    burst, counted = "out\n" * 15_000, "".join(f"{n}\n" for n in range(1, 20001))
    expected = [burst, counted, "ü\n", "warned\n"] * 3 + [burst]
    ran_cells = [c for c in made.result().cells if c.source.startswith("import")]
    streams = [stream(c) for c in ran_cells if c.source != BUSY]
    assert list(map(len, streams)) == list(map(len, expected))
    assert streams == expected
