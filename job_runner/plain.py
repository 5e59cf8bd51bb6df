"""`job_runner run --input A --output B`: an attempt for two plain files.

The job directory is `.<B>.job` beside the output: gone at the end, and still there after a SIGKILL,
for `finish` to take up.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from .attempt import run_job
from .protocol import documents, layout


def run_files(
    source: Path, output: Path, parameters: dict[str, Any], cwd: Path | None, kernel: str | None
) -> int:
    """Execute `source` into `output`; return the exit code. Raises OSError for files it cannot use."""
    job_dir = output.with_name(f".{output.name}.job")
    shutil.rmtree(job_dir, ignore_errors=True)
    job_dir.mkdir(mode=0o700)
    documents.write_bytes(job_dir / layout.SNAPSHOT, source.read_bytes())
    request = {
        "name": output.stem,
        "notebook": str(source),
        "parameters": parameters,
        "env": {},
        "cwd": str((cwd or Path.cwd()).resolve()),
        "isolated": False,
        "kernel": kernel,
        "max_runtime": None,
    }
    documents.write_document(job_dir / layout.REQUEST, request)
    code = run_job(job_dir, 1)
    result = layout.attempt_dir(job_dir, 1) / layout.RESULT
    if result.exists():
        documents.write_bytes(output, result.read_bytes())
    shutil.rmtree(job_dir, ignore_errors=True)
    return code
