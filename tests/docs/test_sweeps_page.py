"""The example of docs/sweeps.md does what the page says."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from .. import notebooks
from ..processes import end_all
from .pages import page

PAGE = page("docs/sweeps.md")


def test_the_example_runs(tmp_path: Path) -> None:
    defaults, code = [block.text for block in PAGE.blocks if block.language == "python"][:2]
    (script,) = [block.text for block in PAGE.blocks if block.language == "sh run"]
    workspace = tmp_path / "workspace"
    notebooks.write(workspace / "train.ipynb", notebooks.parameters(defaults), code)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("JUPYTER_TO_JOB")}
    variables = {
        "JUPYTER_TO_JOB_EXCHANGE": (tmp_path / "exchange").as_uri(),
        "JUPYTER_TO_JOB_CAPACITY": "cpu=2,memory=8Gi",
    }
    try:
        for line in script.splitlines():
            program, *arguments = shlex.split(line)
            ran = subprocess.run(
                [Path(sys.executable).with_name(program), *arguments],
                cwd=workspace, env={**kept, **variables}, capture_output=True, text=True,
                check=False,
            )  # fmt: skip
            assert ran.returncode == 0, ran.stderr
    finally:
        end_all(tmp_path)
    head, best, *rest = ran.stdout.splitlines()
    shown = next(b.text for b in PAGE.blocks if b.language == "text").splitlines()
    assert head.split() == shown[0].split()
    assert best.split()[0] == "*" and best.split()[2:4] == shown[1].split()[2:4]
    assert len(rest) == 5
