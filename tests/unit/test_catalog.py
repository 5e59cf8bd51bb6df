"""The catalog: the shipped one loads, a broken one is refused with the place of the fault."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from jupyter_to_job.domain.errors import BadCatalog, Refused, UnknownChoice
from jupyter_to_job.flavors import Catalog, load_catalog
from jupyter_to_job.service.catalog import describe

GOOD = """\
apiVersion: jupyter-to-job.io/v1
default: {flavor: small, device: cpu}
flavors:
  small: {cpu: 500m, memory: 2Gi, max_runtime: 2h, devices: [cpu]}
  gpu:   {cpu: 4, memory: 16Gi, gpus: 2, devices: [t4, slice], x-note: {any: thing}}
  lab:   {devices: [t4, cpu], allowed: {groups: [research]}}
devices:
  cpu:   {}
  t4:    {resource: nvidia.com/gpu}
  slice: {limits: {nvidia.com/gpu: 1, nvidia.com/gpucores: 5}, isolation: software}
"""


def catalog(tmp_path: Path, text: str = GOOD) -> Catalog:
    path = tmp_path / "flavors.yaml"
    path.write_text(text)
    return load_catalog(path)


def test_the_shipped_catalog_loads() -> None:
    shipped = load_catalog()
    choice = shipped.choose(None, None)
    assert (choice.flavor_name, choice.device_name) == ("small", "cpu")
    assert set(choice.demand) == {"cpu", "memory"}


def test_the_file_at_the_root_is_the_shipped_one() -> None:
    root = Path(__file__).parents[2]
    shipped = root / "jupyter_to_job" / "flavors" / "flavors.yaml"
    assert (root / "flavors.yaml").read_text() == shipped.read_text()


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (("gpus: 2", "gpu: 2"), "flavors.gpu.gpu"),
        (("cpu:   {}", "cpu:   {colour: red}"), "devices.cpu.colour"),
        (("memory: 2Gi", "memory: 2 GB"), "flavors.small.memory"),
        (("max_runtime: 2h", "max_runtime: soon"), "flavors.small.max_runtime"),
        (("gpus: 2", "gpus: -1"), "flavors.gpu.gpus"),
        (("devices: [t4, slice]", "devices: [t4, a100]"), "'a100'"),
        (("devices: [cpu]", "devices: []"), "flavors.small.devices"),
        (("default: {flavor: small", "default: {flavor: big"), "'big'"),
        (("device: cpu}", "device: t4}"), "default"),
        (("isolation: software", "isolation: perfect"), "devices.slice.isolation"),
        (("io/v1", "io/v2"), "apiVersion"),
        (("devices:\n  cpu", "extra: {}\ndevices:\n  cpu"), "extra"),
        (("flavors:\n", "flavors: [\n"), "no YAML"),
    ],
)  # fmt: skip
def test_a_fault_is_named(tmp_path: Path, change: tuple[str, str], place: str) -> None:
    text = GOOD.replace(*change)
    assert text != GOOD
    with pytest.raises(BadCatalog) as caught:
        catalog(tmp_path, text)
    assert place in caught.value.message
    assert "flavors.yaml" in caught.value.message


def test_an_alias_bomb_is_refused_before_it_expands(tmp_path: Path) -> None:
    lines = ["a: &a [x, x]"]
    for last, name in zip("abcdefghijklmnopqrstuvwxy", "bcdefghijklmnopqrstuvwxyz", strict=True):
        lines.append(f"{name}: &{name} [*{last}, *{last}, *{last}, *{last}]")
    with pytest.raises(BadCatalog, match=r":2: aliases"):
        catalog(tmp_path, "\n".join(lines))


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "text", "[" * 5000, "{a: " * 3000, "a: !!python/object:os.system {}", "\0"],
    ids=lambda text: repr(text)[:12],
)
def test_anything_else_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadCatalog):
        catalog(tmp_path, text)


def test_a_file_that_is_too_large_or_missing(tmp_path: Path) -> None:
    with pytest.raises(BadCatalog, match="1 MiB"):
        catalog(tmp_path, GOOD + "#" * (1 << 20))
    with pytest.raises(BadCatalog, match="Cannot read"):
        load_catalog(tmp_path / "missing.yaml")


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ((None, None), ("small", "cpu")),
        (("gpu", None), ("gpu", "t4")),
        (("gpu", "slice"), ("gpu", "slice")),
        ((None, "cpu"), ("small", "cpu")),
    ],
)
def test_choice(
    tmp_path: Path, asked: tuple[str | None, str | None], given: tuple[str, str]
) -> None:
    choice = catalog(tmp_path).choose(*asked)
    assert (choice.flavor_name, choice.device_name) == given


def test_the_default_device_is_preferred_where_it_is_offered(tmp_path: Path) -> None:
    choice = catalog(tmp_path).choose("lab", None, frozenset(["research"]))
    assert choice.device_name == "cpu"


@pytest.mark.parametrize(
    ("flavor", "device", "error"),
    [
        ("big", None, UnknownChoice),
        ("small", "t4", UnknownChoice),
        ("gpu", "a100", UnknownChoice),
        ("lab", None, Refused),
    ],
)
def test_no_choice(tmp_path: Path, flavor: str, device: str | None, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        catalog(tmp_path).choose(flavor, device, frozenset(["staff"]))
    assert caught.value.hint  # type: ignore[attr-defined]


def test_demand(tmp_path: Path) -> None:
    found = catalog(tmp_path)
    assert found.choose("gpu", "t4").demand == {
        "cpu": Decimal(4),
        "memory": Decimal(16 << 30),
        "nvidia.com/gpu": Decimal(2),
    }
    assert found.choose("gpu", "slice").demand["nvidia.com/gpucores"] == 5
    assert found.choose("small", "cpu").demand == {"cpu": Decimal("0.5"), "memory": 2 << 30}


def test_what_users_see(tmp_path: Path) -> None:
    seen = describe(catalog(tmp_path), frozenset(["staff"]))
    assert seen["default"] == {"flavor": "small", "device": "cpu"}
    assert seen["flavors"]["small"]["allowed"] is True
    assert seen["flavors"]["lab"]["allowed"] is False
    assert "research" in seen["flavors"]["lab"]["unavailable_reason"]
    assert seen["devices"]["slice"]["isolation"] == "software"
    assert seen["devices"]["t4"]["free"] is None
