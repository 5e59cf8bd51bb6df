"""`job_runner run --input A --output B`: an attempt for two plain files.

The job directory is `.<B>.job` beside the output: gone at the end, and still there after a SIGKILL,
for `finish` to take up. A rerun takes it up first: so nothing that ran is dropped before the next
result is there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Any

from ..diagnosis.exit_codes import Exit
from ..notebook.metadata import PLAIN_PATH
from ..protocol import documents, layout
from .finalize import PLAIN_OUTPUT
from .finish import finish_job
from .run import run_job

_LONGEST_NAME = 255
"""Bytes that a file's name may have."""


def run_files(
    source: Path, output: Path, parameters: dict[str, Any], cwd: Path | None, kernel: str | None
) -> int:
    """Execute `source` into `output`; return the exit code.

    `cwd` None is the current directory, and `kernel` None the notebook's own. Raises OSError for
    unusable files, and ValueError for an output that no file can replace, or whose job directory
    is not of this user.
    """
    if output.is_char_device() and output.samefile(os.devnull):  # only the exit code is asked for
        with tempfile.TemporaryDirectory() as folder:
            return run_files(source, Path(folder) / "null.ipynb", parameters, cwd, kernel)
    target = output.absolute()
    _require_replaceable(target)
    job_dir = target.with_name(_job_name(target.name))
    _require_own(job_dir)
    snapshot = source.read_bytes()
    if _has_run(job_dir) and finish_job(job_dir, None, None) == Exit.BUSY:
        return Exit.BUSY
    _remove(job_dir)
    job_dir.mkdir(mode=0o700)
    documents.write_bytes(job_dir / layout.SNAPSHOT, snapshot)
    request = {
        "name": target.stem,
        "notebook": str(source),
        "parameters": parameters,
        "env": {},
        "cwd": str((cwd or Path.cwd()).resolve()),
        "isolated": False,
        "kernel": kernel,
        "max_runtime": None,
        PLAIN_OUTPUT: target.name,
        PLAIN_PATH: str(output),
    }
    documents.write_document(job_dir / layout.REQUEST, request)
    code = run_job(job_dir, 1)
    if (layout.attempt_dir(job_dir, 1) / layout.OUTCOME).exists():
        _remove(job_dir)
    return code


def _require_replaceable(target: Path) -> None:
    """Raise ValueError unless a file may appear at `target`, or take the place of one."""
    if target.is_dir():
        raise ValueError(f"{target} is a folder: name the file that the result becomes")
    # /dev/stdout is a link, which may lead to a file.
    if (target.exists() and not target.is_file()) or target.parent == Path("/dev"):
        raise ValueError(f"{target} is no place for a result: it must become a file")


def _require_own(job_dir: Path) -> None:
    """Raise ValueError for what is no folder of this user: it may lead to other files."""
    with contextlib.suppress(FileNotFoundError):
        status = job_dir.lstat()
        # A network file system may store all files as one user's.
        with tempfile.TemporaryFile(dir=job_dir.parent) as file:
            user = os.fstat(file.fileno()).st_uid
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != user:
            raise ValueError(f"{job_dir} is no folder of this user: move it away")


def _has_run(job_dir: Path) -> bool:
    return bool((job_dir / layout.REQUEST).exists() and layout.attempts(job_dir))


def _remove(job_dir: Path) -> None:
    """Remove a job directory; its request first, so that half of one is not taken for a job.

    Else who finishes what was killed meanwhile would put less in the place of a whole result.
    """
    (job_dir / layout.REQUEST).unlink(missing_ok=True)
    shutil.rmtree(job_dir, ignore_errors=True)


def _job_name(output: str) -> str:
    """Return the name of the job directory: `.<output>.job`, shortened if that is too long."""
    name = f".{output}.job"
    if len(name.encode(errors="surrogateescape")) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(output.encode(errors="surrogateescape")).hexdigest()[:16]
    return f".{output[:40]}-{digest}.job"
