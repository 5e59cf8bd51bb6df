"""An admin edits the catalog while the server runs."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import HTTPClientError

Fetch = Callable[..., Awaitable[Any]]
CATALOG = """\
apiVersion: jupyter-to-job.io/v1
default: {flavor: small, device: cpu}
flavors:
  small: {title: FIRST, devices: [cpu]}
devices:
  cpu: {title: CPU}
"""


@pytest.fixture(autouse=True)
def admins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The admin's file; set before the server starts."""
    path = tmp_path / "flavors.yaml"
    path.write_text(CATALOG)
    monkeypatch.setenv("JUPYTER_TO_JOB_CATALOG", str(path))
    return path


async def titles(fetch: Fetch) -> dict[str, str]:
    seen = json.loads((await fetch("jupyter-to-job", "api", "flavors")).body)
    assert set(seen) == {"default", "flavors", "devices"}
    assert all({"allowed", "unavailable_reason"} <= set(f) for f in seen["flavors"].values())
    assert all({"free", "total"} <= set(d) for d in seen["devices"].values())
    return {name: flavor["title"] for name, flavor in seen["flavors"].items()}


async def test_edited_broken_removed_and_mended(jp_fetch: Fetch, admins: Path) -> None:
    assert await titles(jp_fetch) == {"small": "FIRST"}
    admins.write_text(CATALOG.replace("FIRST", "AGAIN"))
    assert await titles(jp_fetch) == {"small": "AGAIN"}

    admins.write_text(CATALOG.replace("devices: [cpu]", "devices: [gpu]"))
    assert await titles(jp_fetch) == {"small": "AGAIN"}
    admins.unlink()
    assert await titles(jp_fetch) == {"small": "AGAIN"}

    admins.write_text(CATALOG.replace("small: {title: FIRST,", "small: {title: LAST,"))
    assert await titles(jp_fetch) == {"small": "LAST"}


async def test_a_server_that_starts_with_a_broken_one(admins: Path, jp_fetch: Fetch) -> None:
    admins.write_text(CATALOG.replace("title: FIRST", "titel: FIRST"))
    with pytest.raises(HTTPClientError) as caught:
        await jp_fetch("jupyter-to-job", "api", "flavors")
    assert caught.value.response is not None
    error = json.loads(caught.value.response.body)["error"]
    assert (caught.value.code, error["code"]) == (500, "bad_catalog")
    assert (
        f"{admins}:4:11: `titel` is no key of a flavor. Did you mean `title`?" in error["message"]
    )
    admins.write_text(CATALOG)
    assert await titles(jp_fetch) == {"small": "FIRST"}
