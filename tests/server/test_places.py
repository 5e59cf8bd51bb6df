"""Where a server may stand: below a prefix, in a hub, with its root elsewhere, or without one."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.auth import IdentityProvider, User
from jupyter_server.serverapp import ServerApp
from jupyter_server.services.contents.manager import ContentsManager

from ..processes import until
from .test_routes import API, ended, post, refusal, write_notebook

Fetch = Callable[..., Awaitable[Any]]
HUB = {
    "JUPYTERHUB_API_TOKEN": "hub-t0ken",
    "JUPYTERHUB_API_URL": "http://hub/api",
    "JUPYTERHUB_SERVICE_PREFIX": "/user/ada/",
    "JUPYTERHUB_USER": "ada",
    "JPY_API_TOKEN": "old-t0ken",
}


class Ada(IdentityProvider):
    """As a hub's: whoever comes with a token is somebody with a name."""

    def generate_anonymous_user(self, handler: Any) -> User:
        return User("ada", display_name="Ada")


@pytest.fixture
def configured(request: pytest.FixtureRequest) -> dict[str, Any]:
    return getattr(request, "param", {})


@pytest.fixture
def jp_server_config(
    jp_server_config: dict[str, Any], configured: dict[str, Any], tmp_path: Path
) -> dict[str, Any]:
    server = {**jp_server_config["ServerApp"], **configured.get("ServerApp", {})}
    if configured.get("moved"):
        (tmp_path / "moved" / "files").mkdir(parents=True)
        (tmp_path / "link").symlink_to(tmp_path / "moved")
        contents = {"root_dir": str(tmp_path / "link" / "files")}
        return {**jp_server_config, "ServerApp": server, "FileContentsManager": contents}
    return {**jp_server_config, "ServerApp": server}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in HUB.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("jp_base_url", ["/user/ada/"])
@pytest.mark.parametrize(
    "configured", [{"ServerApp": {"identity_provider_class": Ada}}], indirect=True
)
async def test_in_a_hub(hub: None, jp_fetch: Fetch, jp_root_dir: Path, exchange: Path) -> None:
    """Its prefix and its user; and its token is nobody's business: no job's, and no file's."""
    show = "import os; print({k for k in os.environ if k.startswith(('JUPYTERHUB', 'JPY_'))})"
    write_notebook(jp_root_dir, "train.ipynb", show)
    job = json.loads((await post(jp_fetch, "jobs", body={"notebook": "train.ipynb"})).body)
    done = await ended(jp_fetch, job["name"])
    logs = json.loads((await jp_fetch(*API, "jobs", job["name"], "logs")).body)["text"]
    seen = set(logs.strip("{}\n").replace("'", "").split(", "))
    assert done["state"] == "succeeded"
    assert not seen & set(HUB), logs
    assert job["owner"] == getpass.getuser()  # whoever is logged in: the CLI sees the same jobs
    for path in filter(Path.is_file, exchange.rglob("*")):
        with contextlib.suppress(FileNotFoundError):  # the dispatcher is tidying up
            assert b"t0ken" not in path.read_bytes()


@pytest.mark.parametrize("configured", [{"moved": True}], indirect=True)
async def test_with_its_files_elsewhere(jp_fetch: Fetch, tmp_path: Path) -> None:
    """The contents manager's root counts: the paths of the page are relative to it."""
    moved = tmp_path / "moved" / "files"
    write_notebook(moved, "train.ipynb", "1")
    job = json.loads((await post(jp_fetch, "jobs", body={"notebook": "train.ipynb"})).body)
    done = await ended(jp_fetch, job["name"])
    assert (moved / done["delivery"]["path"]).is_file()
    listed = json.loads((await jp_fetch(*API, "jobs")).body)["jobs"]
    assert [j["notebook"] for j in listed] == ["train.ipynb"]


@pytest.mark.parametrize("configured", [{}, {"moved": True}], indirect=True)
async def test_its_pages_say_where_its_files_are(
    configured: dict[str, Any], jp_serverapp: ServerApp, jp_root_dir: Path, tmp_path: Path
) -> None:
    """Pages of two servers may have one address, one after the other."""
    root = tmp_path / "moved" / "files" if configured else jp_root_dir.resolve()
    page = jp_serverapp.web_app.settings["page_config_data"]
    assert page["jupyterToJobWorkspace"] == str(root)


async def test_jobs_of_another_root_are_not_this_server_s(
    jp_fetch: Fetch, jp_root_dir: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    write_notebook(elsewhere, "other.ipynb", "1")
    ran = subprocess.run(
        [Path(sys.executable).with_name("jupyter-to-job"), "submit", "other.ipynb", "--wait"],
        cwd=elsewhere, check=True, capture_output=True, text=True,
    )  # fmt: skip
    name = ran.stdout.split()[0]
    assert json.loads((await jp_fetch(*API, "jobs")).body)["jobs"] == []
    assert (await refusal(jp_fetch(*API, "jobs", name)))[0] == 404


class Bucket(ContentsManager):
    """Files that are no files of this machine."""


@pytest.mark.parametrize(
    "configured", [{"ServerApp": {"contents_manager_class": Bucket}}], indirect=True
)
async def test_without_a_folder(jp_fetch: Fetch) -> None:
    status, error = await refusal(post(jp_fetch, "jobs", body={"notebook": "train.ipynb"}))
    assert (status, error["code"]) == (403, "refused")
    assert "Bucket" in error["message"] and "JUPYTER_TO_JOB_WORKSPACE" in error["hint"]
    assert (await jp_fetch(*API, "jobs")).code == 200


@pytest.mark.parametrize("application", ["jupyter_server", "jupyterlab"])
def test_started_as_users_do(application: str, tmp_path: Path) -> None:
    """The server part is enabled by its installation alone. Notebook 7 is tried in a browser."""
    runtime = tmp_path / "runtime"
    environment = {
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(tmp_path / "config"),
        "JUPYTER_RUNTIME_DIR": str(runtime),
    }
    prefix = Path(sys.prefix, "etc", "jupyter", "jupyter_server_config.d")
    assert (prefix / "jupyter_to_job.json").is_file(), "it is not installed"
    options = ["--no-browser", "--allow-root", "--IdentityProvider.token=t", "--port=0"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", application, *options, f"--ServerApp.root_dir={tmp_path}"],
            env=environment, stdout=log, stderr=log,
        )  # fmt: skip

    def answers() -> bool:
        assert process.poll() is None, (tmp_path / "log").read_text()
        for file in runtime.glob("jpserver-*.json"):
            with contextlib.suppress(OSError, ValueError):  # it is being written, or not open yet
                url = f"{json.loads(file.read_text())['url']}jupyter-to-job/api/health"
                request = urllib.request.Request(url, headers={"Authorization": "token t"})
                with urllib.request.urlopen(request) as answer:
                    return bool(json.loads(answer.read())["status"] == "ok")
        return False

    try:
        until(answers, f"{application} answers")
    finally:
        process.terminate()
        process.wait(20)
