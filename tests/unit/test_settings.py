"""Settings: environment > file > default."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_to_job.backends.local.capacity import admit, capacity
from jupyter_to_job.domain.errors import BadInput, NeverFits
from jupyter_to_job.domain.quantities import parse_quantity
from jupyter_to_job.flavors import SHIPPED
from jupyter_to_job.wiring import Settings


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty configuration folder, the only one."""
    for name in ("BACKEND", "GATEWAY", "EXCHANGE", "CATALOG", "WORKSPACE", "CAPACITY"):
        monkeypatch.delenv(f"JUPYTER_TO_JOB_{name}", raising=False)
    folder = tmp_path / "config"
    folder.mkdir()
    monkeypatch.delenv("JUPYTER_NO_CONFIG", raising=False)
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(folder))
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(folder))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    return folder


def test_defaults(tmp_path: Path) -> None:
    settings = Settings.load()
    assert settings.backend == "local"
    assert settings.exchange_root() == tmp_path / "data" / "jupyter-to-job" / "exchange"
    assert settings.catalog_path() == SHIPPED


def test_who_wins(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings.load().capacity == ""
    (config / "jupyter_to_job_config.json").write_text('{"Settings": {"capacity": "cpu=1"}}')
    assert Settings.load().capacity == "cpu=1"
    (config / "jupyter_to_job_config.py").write_text("c.Settings.capacity = 'cpu=2'")
    assert Settings.load().capacity == "cpu=2"
    monkeypatch.setenv("JUPYTER_TO_JOB_CAPACITY", "cpu=3")
    assert Settings.load().capacity == "cpu=3"


@pytest.mark.parametrize(("text", "value"), [("true", True), ("false", False), ("0", False)])
def test_yes_or_no(text: str, value: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings.load().enforce_memory is True
    monkeypatch.setenv("JUPYTER_TO_JOB_ENFORCE_MEMORY", text)
    assert Settings.load().enforce_memory is value


def test_a_bad_value_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_TO_JOB_BACKEND", "abacus")
    with pytest.raises(BadInput, match="JUPYTER_TO_JOB_BACKEND='abacus'"):
        Settings.load()


@pytest.mark.parametrize("text", ["0", "36h", "forever"])
def test_retention(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_TO_JOB_RETENTION", text)
    assert Settings.load().retention == text
    monkeypatch.setenv("JUPYTER_TO_JOB_RETENTION", f"{text} or so")
    with pytest.raises(BadInput, match="RETENTION"):
        Settings.load()


@pytest.mark.parametrize(
    ("text", "limit"), [("", 2 << 30), ("500Mi", 500 << 20), ("1000", 1000), ("none", None)]
)
def test_output_cap(text: str, limit: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_TO_JOB_OUTPUT_CAP", text)
    assert Settings.load().output_limit() == limit
    monkeypatch.setenv("JUPYTER_TO_JOB_OUTPUT_CAP", "much")
    with pytest.raises(BadInput, match="OUTPUT_CAP"):
        Settings.load()


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("file:///srv/jobs%20here", "/srv/jobs here"),
        ("/srv/jobs", "/srv/jobs"),
        ("/srv/a#b?c%41", "/srv/a#b?c%41"),
        ("file:///srv/a%23b", "/srv/a#b"),
    ],
)
def test_exchange(url: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_TO_JOB_EXCHANGE", url)
    assert Settings.load().exchange_root() == Path(path)


def test_an_exchange_that_is_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_TO_JOB_EXCHANGE", "s3://bucket")
    with pytest.raises(BadInput, match="s3://"):
        Settings.load().exchange_root()


@pytest.mark.parametrize("name", ["gateway", "gateway_url"])
def test_the_address_of_a_gateway(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variable = f"JUPYTER_TO_JOB_{name.upper()}"
    for url in (
        "http://gateway.jobs.svc", "https://gateway.jobs.svc.cluster.local.:8443/jobs/",
        "http://127.0.0.1:8080", "http://[::1]:8080", "https://bücher.example",
    ):  # fmt: skip
        monkeypatch.setenv(variable, url)
        assert getattr(Settings.load(), name) == url
    for wrong in (
        "http://gw:8080x", "http://gw:99999", "http://gw\n", "http://[::1", "http://", "http:/gw",
        "http://gw..svc", "gw", "gw:8080", "ftp://gw", "http://xn--a", "http://gw: 80",
        "http://gw:-1", "http://gw/ü", "http://ada:secret@gw",
    ):  # fmt: skip
        monkeypatch.setenv(variable, wrong)
        with pytest.raises(BadInput) as caught:
            Settings.load()
        assert caught.value.message == f"{variable}={wrong!r}: It is no URL of a gateway."
        assert "https://HOST:PORT" in caught.value.hint


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jupyter's folders follow from it, unless they are set."""

    def nobody(number: int) -> None:
        raise KeyError(number)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", nobody)
    assert Settings.load().exchange_root()
    monkeypatch.delenv("JUPYTER_DATA_DIR")
    settings = Settings.load()
    with pytest.raises(BadInput, match="no home folder"):
        settings.exchange_root()
    monkeypatch.delenv("JUPYTER_CONFIG_DIR")
    with pytest.raises(BadInput, match="no home folder"):
        Settings.load()


def test_the_admins_catalog(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.load()
    assert settings.catalog_path() == SHIPPED
    (config / "flavors.yaml").write_text("")
    assert settings.catalog_path() == config / "flavors.yaml"  # at once, where a process goes on
    (config / "flavors.yaml").unlink()
    assert settings.catalog_path() == SHIPPED
    other = tmp_path / "mine.yaml"
    monkeypatch.setenv("JUPYTER_TO_JOB_CATALOG", str(other))
    assert Settings.load().catalog_path() == other


def test_capacity() -> None:
    machine = capacity()
    assert machine["cpu"] >= 1 and machine["memory"] > 1 << 28
    pretended = capacity("cpu=500m, memory=4Gi,nvidia.com/gpu=2")
    assert pretended["cpu"] == parse_quantity("0.5")
    assert pretended["nvidia.com/gpu"] == 2
    for wrong in ("cpu", "cpu=", "cpu=many"):
        with pytest.raises(BadInput):
            capacity(wrong)


def test_what_fits() -> None:
    total = capacity("cpu=2,memory=4Gi")
    one = {"cpu": parse_quantity(1), "memory": parse_quantity("2Gi")}
    admit(one, total)
    with pytest.raises(NeverFits, match=r"nvidia\.com/gpu"):
        admit({**one, "nvidia.com/gpu": parse_quantity(1)}, total)
    with pytest.raises(NeverFits, match="8 GiB of memory"):
        admit({"memory": parse_quantity("8Gi")}, total)


def test_where_a_value_came_from(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = config / "jupyter_to_job_config.json"
    file.write_text('{"Settings": {"capacity": "cpu=1", "retention": "1d", "colour": "red"}}')
    monkeypatch.setenv("JUPYTER_TO_JOB_CAPACITY", "cpu=2")
    monkeypatch.setenv("JUPYTER_TO_JOB_INPUT_CAP", "")
    settings = Settings.load()
    assert settings.sources == {
        **dict.fromkeys(Settings.class_trait_names(), "default"),
        "capacity": "environment",
        "retention": str(file),
    }
    assert settings.unknown == [f"colour in {file}"]
    assert settings.input_cap == "4Gi"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retention", "soon"), ("exchange_cap", "much"), ("input_cap", "-1"),
        ("retention", 7), ("capacity", 5), ("exchange_cap", 5),
        ("hooks", "hooks.yaml"), ("hooks", "./hooks.yaml"), ("hooks", "~nobody-of-this-name/a"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_read(config: Path, name: str, value: object) -> None:
    file = config / "jupyter_to_job_config.py"
    file.write_text(f"c.Settings.{name} = {value!r}")
    with pytest.raises(BadInput, match=rf"{name.upper()}={value!r} \(.*config\.py\)"):
        Settings.load()
