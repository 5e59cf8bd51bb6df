"""One job in detail over HTTP: record, receipts of cells, snapshot, difference, export."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.serverapp import ServerApp

from jupyter_to_job.api import job_files, routes
from jupyter_to_job.service import difference, export, pictures

from . import openapi
from .test_routes import API, ended, post, refusal, write_notebook

Fetch = Callable[..., Awaitable[Any]]
CODE = "print('6 times 7 is', 6 * 7)"


async def submitted(jp_fetch: Fetch, **body: object) -> str:
    answer = await post(jp_fetch, "jobs", body={"notebook": "train.ipynb", **body})
    name: str = json.loads(answer.body)["name"]
    await ended(jp_fetch, name)
    return name


async def read(jp_fetch: Fetch, name: str, what: str) -> Any:
    return json.loads((await jp_fetch(*API, "jobs", name, what)).body)


def text_of(page: bytes) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", page.decode()))


async def test_the_record_has_names_and_no_values(jp_fetch: Fetch, jp_root_dir: Path) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "open('made.txt', 'w').write('x')")
    (jp_root_dir / "helpers.py").write_text("a = 1\n")
    name = await submitted(
        jp_fetch, inputs=["helpers.py"], isolated=True, env={"API_KEY": "very-secret"}
    )
    answer = await jp_fetch(*API, "jobs", name, "record")
    record = json.loads(answer.body)
    assert record["env"] == ["API_KEY"]
    assert "very-secret" not in answer.body.decode()
    assert "PATH" in record["variables"]
    assert record["inputs"] == [{"path": "helpers.py", "size": 6}]
    assert len(record["files"]) == 1
    assert (jp_root_dir / record["files"][0]).read_text() == "x", "its path opens it"
    assert record["retention"] == 7 * 86_400
    assert record["kept_until"] is not None and record["cleared"] is None
    assert "html" in record["exports"]


async def test_receipts_of_cells(jp_fetch: Fetch, jp_root_dir: Path) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "\na = 1", "import time; time.sleep(0.3)", "1 / 0")
    name = await submitted(jp_fetch, parameters={"a": 2})
    cells = (await read(jp_fetch, name, "cells"))["cells"]
    assert [(c["cell"], c["title"], c["state"]) for c in cells] == [
        (None, "# Parameters", "done"),
        (0, "a = 1", "done"),
        (1, "import time; time.sleep(0.3)", "done"),
        (2, "1 / 0", "failed"),
    ]
    assert cells[2]["wall"] >= 0.3 and cells[2]["memory_peak"] > 0
    openapi.validate("CellReceipts", {"cells": cells})


async def test_the_snapshot_and_what_changed_since(jp_fetch: Fetch, jp_root_dir: Path) -> None:
    frozen = write_notebook(jp_root_dir, "train.ipynb", CODE, "plot()")
    name = await submitted(jp_fetch)
    answer = await jp_fetch(*API, "jobs", name, "snapshot")
    assert answer.body == frozen, "byte for byte"
    found = await read(jp_fetch, name, "difference")
    assert {cell["kind"] for cell in found["cells"]} == {"same"}

    write_notebook(jp_root_dir, "train.ipynb", CODE.replace("7", "8"), "plot()", "save()")
    found = await read(jp_fetch, name, "difference")
    assert [cell["kind"] for cell in found["cells"]] == ["changed", "same", "added"]
    assert found["notebook"] == "train.ipynb"

    (jp_root_dir / "train.ipynb").unlink()
    status, error = await refusal(jp_fetch(*API, "jobs", name, "difference"))
    assert status == 404 and "train.ipynb cannot be read" in error["message"]


async def test_export_with_and_without_code(jp_fetch: Fetch, jp_root_dir: Path) -> None:
    write_notebook(jp_root_dir, "train.ipynb", CODE)
    name = await submitted(jp_fetch)

    async def exported(**params: str) -> Any:
        # Starting nbconvert takes a busy machine some time.
        return await jp_fetch(*API, "jobs", name, "export", params=params, request_timeout=120)

    page = await exported()
    assert page.headers["Content-Type"].startswith("text/html")
    assert page.headers["Content-Disposition"] == f'attachment; filename="{name}.html"'
    assert page.headers["Content-Security-Policy"].startswith("sandbox")
    assert f"<title>{name}</title>" in page.body.decode()
    assert CODE in text_of(page.body) and "6 times 7 is 42" in text_of(page.body)
    page = await exported(code="false")
    assert CODE not in text_of(page.body) and "6 times 7 is 42" in text_of(page.body)
    for params in ({"format": "docx"}, {"code": "perhaps"}):
        assert (await refusal(exported(**params)))[0] == 400


async def test_a_pdf_without_its_programs(
    jp_fetch: Fetch, jp_root_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "find_pdf_exporter", lambda: None)
    write_notebook(jp_root_dir, "train.ipynb", CODE)
    name = await submitted(jp_fetch)
    assert (await read(jp_fetch, name, "record"))["exports"] == ["html"]
    request = jp_fetch(*API, "jobs", name, "export", params={"format": "pdf"})
    status, error = await refusal(request)
    assert status == 400 and "XeLaTeX" in error["message"]


async def test_notebooks_that_are_too_large(
    jp_fetch: Fetch, jp_root_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is answered while one is parsed, and a conversion takes many times its size."""
    assert pictures.MAX_RESULT == difference.MAX_COMPARED == 8 << 20
    for module, limit in (
        (routes, "MAX_RESULT"), (difference, "MAX_COMPARED"), (job_files, "MAX_EXPORT"),
    ):  # fmt: skip
        monkeypatch.setattr(module, limit, 10)
    write_notebook(jp_root_dir, "train.ipynb", CODE)
    name = await submitted(jp_fetch)
    for what in ("picture", "difference", "export"):
        request = jp_fetch(*API, "jobs", name, what, params={"metric": "accuracy"})
        status, error = await refusal(request)
        assert (status, error["code"]) == (413, "too_large"), what
        assert error["hint"]


async def test_what_a_server_without_files_refuses(
    jp_fetch: Fetch, jp_root_dir: Path, jp_serverapp: ServerApp
) -> None:
    """Its root is no folder with the users' notebooks: whatever is there is nobody's."""
    write_notebook(jp_root_dir, "train.ipynb", CODE)
    name = await submitted(jp_fetch)
    settings = jp_serverapp.web_app.settings
    context = replace(settings["jupyter_to_job"], rootless="The files are elsewhere.")
    settings["jupyter_to_job"] = context
    for method, *path in (
        ("GET", "jobs", name, "difference"),
        ("DELETE", "jobs", name, "result"),
        ("GET", "old-results"),
    ):
        status, error = await refusal(jp_fetch(*API, *path, method=method))
        assert (status, error["message"]) == (403, "The files are elsewhere."), path
    assert (await read(jp_fetch, name, "cells"))["cells"]


async def test_a_cleared_job(jp_fetch: Fetch, jp_root_dir: Path, exchange: Path) -> None:
    write_notebook(jp_root_dir, "train.ipynb", CODE)
    name = await submitted(jp_fetch)
    cleared = {"v": 1, "time": "2026-11-24T09:00:00.000Z", "message": "Kept for 7d after delivery"}
    (exchange / name / "cleared.json").write_text(json.dumps(cleared))
    record = await read(jp_fetch, name, "record")
    assert record["cleared"] == cleared["time"] and record["kept_until"] is None
    assert record["cleared_reason"] == cleared["message"]
    for what in ("cells", "snapshot", "difference", "export"):
        status, error = await refusal(jp_fetch(*API, "jobs", name, what))
        assert (status, error["code"]) == (404, "cleared"), what
