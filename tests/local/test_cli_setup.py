"""Settings that are wrong, and `doctor`."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from .. import notebooks
from .cli import COMMAND, Cli


@pytest.fixture
def config(cli: Cli, tmp_path: Path) -> Path:
    """Jupyter's configuration folder of this test alone."""
    folder = tmp_path / "config"
    folder.mkdir()
    cli.variables["JUPYTER_CONFIG_DIR"] = str(folder)
    return folder


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("jupyter_to_job_config.py", "c.Settings.capacity = ", "SyntaxError"),
        ("jupyter_to_job_config.py", "raise RuntimeError('no such disk')", "no such disk"),
        ("jupyter_to_job_config.json", "{", "JSONDecodeError"),
        ("jupyter_to_job_config.json", '{"Settings": {"retention": "soon"}}', "'soon'"),
        ("jupyter_to_job_config.json", '{"Settings": {"enforce_memory": "perhaps"}}', "perhaps"),
        ("jupyter_to_job_config.py", "c.Settings.backend = 7", "BACKEND=7"),
    ],
)
def test_a_file_that_is_wrong_is_named(
    cli: Cli, config: Path, name: str, text: str, says: str
) -> None:
    (config / name).write_text(text)
    ran = cli.run("list")
    assert ran.returncode == 2
    assert str(config / name) in ran.stderr and says in ran.stderr
    assert "Traceback" not in ran.stderr
    doctor = cli.run("doctor")
    assert doctor.returncode == 1
    assert str(config / name) in doctor.stdout


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("RETENTION", "soon"),
        ("INPUT_CAP", "much"),
        ("EXCHANGE_CAP", "-1"),
        ("BACKEND", "abacus"),
        ("ENFORCE_MEMORY", "perhaps"),
    ],
)
def test_a_variable_that_is_wrong_is_named(cli: Cli, variable: str, value: str) -> None:
    cli.variables[f"JUPYTER_TO_JOB_{variable}"] = value
    ran = cli.run("list")
    assert ran.returncode == 2
    assert f"JUPYTER_TO_JOB_{variable}='{value}'" in ran.stderr
    assert "%r" not in ran.stderr and "trait" not in ran.stderr


def test_an_exchange_that_cannot_be_is_said(cli: Cli) -> None:
    cli.variables["JUPYTER_TO_JOB_EXCHANGE"] = "/dev/null/exchange"
    ran = cli.run("list")
    assert (ran.returncode, ran.stdout) == (5, "")
    assert "/dev/null" in ran.stderr and "doctor" in ran.stderr
    assert "Traceback" not in ran.stderr
    found = levels(cli, code=1)
    assert found["exchange"] == {"problem"}
    assert found["catalog"] == {"ok"}  # its fault, if it had one, is told apart
    assert "-> Set JUPYTER_TO_JOB_EXCHANGE" in cli.run("doctor").stdout


def test_it_is_a_command_of_jupyter(cli: Cli) -> None:
    jupyter = Path(COMMAND).with_name("jupyter")
    ran = subprocess.run(
        [jupyter, "to-job", "--help"],
        env=cli.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "Run notebooks as jobs" in ran.stdout
    assert ran.stdout == cli.run("-h").stdout


def levels(cli: Cli, code: int) -> dict[str, set[str]]:
    """Return doctor's levels by area."""
    found: dict[str, set[str]] = {}
    for finding in cli.json("doctor", code=code):
        assert set(finding) == {"area", "level", "message", "mend"}
        assert finding["level"] == "ok" or finding["mend"]
        found.setdefault(finding["area"], set()).add(finding["level"])
    return found


def test_doctor_of_a_sound_installation(cli: Cli) -> None:
    found = levels(cli, code=0)
    assert set(found) >= {
        "versions", "settings", "kernels", "catalog", "exchange", "workspace", "slots", "GPUs",
        "dispatcher",
    }  # fmt: skip
    assert found["exchange"] == found["catalog"] == {"ok"}
    assert sorted(cli.workspace.iterdir()) == []  # what was tried out is gone
    cli.submit_waiting()
    assert "Running: process" in cli.run("doctor").stdout


def test_doctor_finds_what_is_wrong(cli: Cli, config: Path, tmp_path: Path) -> None:
    kernels = tmp_path / "jupyter" / "kernels"
    for name in ("python3", "other"):
        (kernels / name).mkdir(parents=True)
        (kernels / name / "kernel.json").write_text('{"argv": ["/no/such/python"], "language": ""}')
    (config / "flavors.yaml").write_text("apiVersion: jupyter-to-job.io/v1\nflavours: {}\n")
    (config / "jupyter_to_job_config.json").write_text('{"Settings": {"capacty": "cpu=1"}}')
    cli.exchange.mkdir(mode=0o755)
    cli.exchange.chmod(0o755)
    cli.variables |= {
        "JUPYTER_PATH": str(tmp_path / "jupyter"),
        "JUPYTER_TO_JOB_CAPACTY": "cpu=1",
    }
    ran = cli.run("doctor")
    assert ran.returncode == 1
    assert "/no/such/python" in ran.stdout
    assert f"{config / 'flavors.yaml'}:2:1" in ran.stdout
    assert "capacty in" in ran.stdout and "JUPYTER_TO_JOB_CAPACTY is no setting" in ran.stdout
    assert f"-> chmod 700 {cli.exchange}" in ran.stdout
    found = levels(cli, code=1)
    assert {"problem", "warning"} <= found["kernels"]  # beside those that are installed for tests
    assert found["catalog"] == {"problem"}
    assert "warning" in found["settings"] and "warning" in found["exchange"]


def test_doctor_behind_a_gateway_that_is_away(cli: Cli) -> None:
    cli.variables["JUPYTER_TO_JOB_GATEWAY"] = "http://127.0.0.1:9"
    found = levels(cli, code=1)
    assert found["gateway"] == {"problem"}
    assert not {"kernels", "exchange", "dispatcher"} & set(found)
    assert cli.run("list").returncode == 5


@pytest.mark.parametrize("command", [("list",), ("doctor",), ("submit", "a.ipynb")])
def test_a_mistyped_gateway(cli: Cli, command: tuple[str, ...]) -> None:
    cli.variables["JUPYTER_TO_JOB_GATEWAY"] = "http://gw:8080x"
    notebooks.write(cli.workspace / "a.ipynb", "1")
    ran = cli.run(*command)
    told = ran.stdout + ran.stderr
    assert ran.returncode in (1, 2) and "Traceback" not in told
    assert "JUPYTER_TO_JOB_GATEWAY='http://gw:8080x': It is no URL of a gateway." in told


@contextmanager
def answering(status: int, location: str, text: str) -> Iterator[str]:
    """Serve an address that is no gateway's; yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("status", "location", "text", "says"),
    [
        (308, "https://jobs.example/", "", "answered 308 and points to https://jobs.example/."),
        (200, "", "<html>Sign in</html>", "what it sent is not JSON"),
    ],
)
def test_an_address_that_is_no_gateway_s(
    cli: Cli, tmp_path: Path, status: int, location: str, text: str, says: str
) -> None:
    hint = "Set JUPYTER_TO_JOB_GATEWAY to the address at which the gateway itself answers."
    (tmp_path / "token").write_text("ada")
    with answering(status, location, text) as url:
        cli.variables["JUPYTER_TO_JOB_GATEWAY"] = url
        cli.variables["JUPYTER_TO_JOB_GATEWAY_TOKEN_FILE"] = str(tmp_path / "token")
        ran = cli.run("list")
        doctor = cli.run("doctor")
    assert (ran.returncode, ran.stdout) == (5, ""), ran.stderr
    error, advice = ran.stderr.splitlines()
    assert says in error and advice == hint
    assert doctor.returncode == 1, doctor.stderr
    assert f"{url}: " in doctor.stdout and says in doctor.stdout and f"-> {hint}" in doctor.stdout
