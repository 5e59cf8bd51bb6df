"""Results as documents, made by nbconvert in a process of its own.

A large notebook takes it seconds, in which this process would answer nobody.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

from ..domain.errors import BadInput, Unavailable, no_room

HINT = "HTML needs no other programs, and every browser prints it to a PDF."
TIMEOUT = 600
"""Seconds after which nbconvert is given up."""
MAX_EXPORT = 64 << 20
"""Bytes of a result that a server exports: nbconvert takes many times as much memory."""
MAX_EXPORTS = 2
"""Exports at the same time. They are threads of those that submissions are copied in."""
NBCONVERT = """\
from job_runner.notebook.lazy_imports import stub_format_libraries
stub_format_libraries()  # they take longer than a small notebook
from nbconvert.nbconvertapp import main
main()
"""
"""The program that makes a document."""
_free = threading.BoundedSemaphore(MAX_EXPORTS)
_ERROR = re.compile(r"\w*(Error|Exception)\b.*")


def find_pdf_exporter() -> str | None:
    """Return the name of the PDF exporter that has what it needs here; None if there is none."""
    if shutil.which("xelatex") and shutil.which("pandoc"):
        return "pdf"
    has_playwright = find_spec("playwright") is not None and any(_browsers().glob("chromium*"))
    return "webpdf" if has_playwright else None


def _browsers() -> Path:
    """Return the folder where `playwright install` puts its browsers."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or f"{cache}/ms-playwright"
    return Path(folder).expanduser()


def require_pdf_exporter() -> str:
    """Return what `find_pdf_exporter` does. Raises BadInput where there is none."""
    exporter = find_pdf_exporter()
    if exporter is None:
        raise BadInput(
            "A PDF needs XeLaTeX and Pandoc, or Playwright with Chromium, and neither is here.",
            f"Install one of them. {HINT}",
        )
    return exporter


def export_formats() -> list[str]:
    """Return the formats that `export_notebook` makes here."""
    return ["html"] if find_pdf_exporter() is None else ["html", "pdf"]


def export_notebook(
    notebook: BinaryIO, name: str, file_format: str, *, with_code: bool
) -> BinaryIO:
    """Return a notebook as a document, in an open file without a name.

    `name` becomes its title. Raises BadInput, and Unavailable where there is no room, or while as
    many exports are under way as may be.
    """
    if file_format not in ("html", "pdf"):
        raise BadInput(f"There is no format {file_format!r}.", "There are html and pdf.")
    exporter = "html" if file_format == "html" else require_pdf_exporter()
    if not _free.acquire(blocking=False):
        raise Unavailable(f"{MAX_EXPORTS} results are being exported.", "Try again in a moment.")
    try:
        with tempfile.TemporaryDirectory(prefix="jupyter-to-job-") as folder:
            source = Path(folder, f"{name}.ipynb")
            with source.open("wb") as copy:
                shutil.copyfileobj(notebook, copy)
            _convert(source, exporter, with_code=with_code)
            # The open file outlives its folder.
            return source.with_suffix(f".{file_format}").open("rb")
    except FileNotFoundError as error:
        raise BadInput(f"nbconvert made no {file_format} of {name}.", HINT) from error
    except OSError as error:
        raise no_room("The document cannot be written", error) from error
    finally:
        _free.release()


def _convert(source: Path, exporter: str, *, with_code: bool) -> None:
    """Run nbconvert; the document is beside the notebook. Raises BadInput."""
    command = [sys.executable, "-c", NBCONVERT, "--to", exporter, source.name]
    if not with_code:
        command.append("--no-input")
    with subprocess.Popen(
        command,
        cwd=source.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            _, log = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired as error:
            message = f"nbconvert took over {TIMEOUT // 60} minutes to export {source.stem}."
            raise BadInput(message, "Export it with jupyter-to-job export.") from error
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)  # it may have started a browser
    if process.returncode != 0:
        raise BadInput(f"nbconvert cannot export {source.stem}: {_reason(log)}", HINT)


def _reason(log: str) -> str:
    """Return the line of nbconvert's log that says what is wrong."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.match(line)]
    return (errors or lines or ["it ended with an error"])[-1][:500]
