"""`job_runner run --input A --output B`: an attempt for two plain files.

The job directory is `.<B>.job` beside the output: gone at the end, and still there after a SIGKILL,
for `finish` to take up.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .attempt import run_job
from .protocol import documents, layout, liveness
from .reasons import Exit

_OUTPUT = "plain_output"
"""In request.json: the name of the file beside the job directory that the result becomes."""


@dataclass(frozen=True)
class Files:
    """What to run, and where the result goes. `cwd` None: the current directory."""

    source: Path
    output: Path
    parameters: dict[str, Any]
    cwd: Path | None
    kernel: str | None


def run_files(files: Files) -> int:
    """Execute `source` into `output`; return the exit code. Raises OSError for unusable files."""
    output = files.output.absolute()
    job_dir = output.with_name(f".{output.name}.job")
    snapshot = files.source.read_bytes()
    if any(liveness.is_alive(layout.attempt_dir(job_dir, n)) for n in layout.attempts(job_dir)):
        return Exit.BUSY
    shutil.rmtree(job_dir, ignore_errors=True)
    job_dir.mkdir(mode=0o700)
    documents.write_bytes(job_dir / layout.SNAPSHOT, snapshot)
    request = {
        "name": output.stem,
        "notebook": str(files.source),
        "parameters": files.parameters,
        "env": {},
        "cwd": str((files.cwd or Path.cwd()).resolve()),
        "isolated": False,
        "kernel": files.kernel,
        "max_runtime": None,
        _OUTPUT: output.name,
    }
    documents.write_document(job_dir / layout.REQUEST, request)
    code = run_job(job_dir, 1)
    publish(job_dir, layout.attempt_dir(job_dir, 1))
    if (layout.attempt_dir(job_dir, 1) / layout.OUTCOME).exists():
        shutil.rmtree(job_dir, ignore_errors=True)
    return code


def publish(job_dir: Path, attempt_dir: Path) -> None:
    """Put the result where a run of plain files wants it; nothing to do for any other job."""
    name = (documents.read_document(job_dir / layout.REQUEST) or {}).get(_OUTPUT)
    result = attempt_dir / layout.RESULT
    if name and result.exists():
        # Not an exchange's file any more: as readable as others that the user makes.
        documents.write_bytes(job_dir.parent / Path(name).name, result.read_bytes(), mode=0o666)
