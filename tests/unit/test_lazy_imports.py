"""A command starts fast because what is slow to import is imported where it is used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from nbformat.v4 import new_notebook, writes

SLOW = {
    "asyncio", "ctypes", "pydantic", "yaml", "sqlite3", "httpx", "tornado", "jupyter_client",
    "jupyter_server", "nbformat", "papermill", "psutil", "rich", "zmq",
}  # fmt: skip


def test_the_service_imports_nothing_slow() -> None:
    code = f"import jupyter_to_job.wiring, sys; print(sorted({SLOW} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_a_server_that_starts_waits_for_nothing_of_ours_that_is_slow() -> None:
    """JupyterLab's start is not the time for what the first submission needs."""
    slow = {"pydantic", "httpx", "papermill", "rich", "jupyter_to_job.flavors.models"}
    code = f"import jupyter_to_job.server.app, sys; print(sorted({slow} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


USELESS = {"arrow", "isoduration", "lark", "rfc3986_validator", "rfc3987_syntax", "urllib3"}
"""What others import ahead, for formats that no notebook has and for files behind URLs."""
PREPARE = """\
import json, sys
from pathlib import Path
from job_runner.notebook.parameterize import prepare_notebook
prepare_notebook(Path(sys.argv[1]), {}, "python3", language="python", names=("a.ipynb", "b.ipynb"))
"""
SIGN = """\
import hashlib, json, sys
from pathlib import Path
from jupyter_to_job.workspace.publishing.sign import main
data = Path(sys.argv[1]).read_bytes()
main(sys.argv[1], hashlib.sha256(data).hexdigest(), str(len(data)))
"""
EXPORT = """\
import json, sys
from jupyter_to_job.service.export import NBCONVERT
sys.argv[1:1] = ["--to", "html"]
exec(NBCONVERT)
"""
TELL = "print(json.dumps([name for name, module in sys.modules.items() if module is not None]))"


@pytest.mark.parametrize("code", [PREPARE, SIGN, EXPORT], ids=["prepare", "sign", "export"])
def test_each_job_imports_nothing_that_it_has_no_use_for(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))  # the notary's
    notebook = tmp_path / "a.ipynb"
    notebook.write_text(writes(new_notebook()))
    command = [sys.executable, "-c", code + TELL, str(notebook)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = set(json.loads(ran.stdout))
    assert "jsonschema" in imported
    assert not USELESS & imported


def test_what_is_left_out_is_there_for_who_asks() -> None:
    code = """\
from job_runner.notebook.lazy_imports import stub_unused_imports
stub_unused_imports()
import requests
from papermill.iorw import HttpHandler, requests as theirs
assert theirs is requests
print(requests.get.__name__, requests.exceptions.HTTPError.__name__)
import requests.adapters
from requests import Session
print(Session.__name__)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "get HTTPError\nSession\n"


STORES = """
import sys
from job_runner.notebook.lazy_imports import import_papermill
import_papermill()
from papermill.iorw import papermill_io
print("pyarrow" in sys.modules, "asked" in [name for name, _ in papermill_io._handlers])
import pyarrow.fs
"""


@pytest.mark.parametrize("is_asked_for", [False, True])
def test_clients_of_stores_are_imported_only_for_who_asks(
    is_asked_for: bool, tmp_path: Path
) -> None:
    """papermill's import of pyarrow begins threads: whoever has these cannot be copied."""
    (tmp_path / "pyarrow").mkdir()
    (tmp_path / "pyarrow/__init__.py").touch()
    (tmp_path / "pyarrow/fs.py").write_text("FileSelector = HadoopFileSystem = object\n")
    if is_asked_for:
        (tmp_path / "extension.py").write_text("from pyarrow.fs import HadoopFileSystem\n")
        (tmp_path / "extension-1.dist-info").mkdir()
        entry = "[papermill.io]\nasked = extension:HadoopFileSystem\n"
        (tmp_path / "extension-1.dist-info/entry_points.txt").write_text(entry)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", STORES]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout == f"{is_asked_for} {is_asked_for}\n"
