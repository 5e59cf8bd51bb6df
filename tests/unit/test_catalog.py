"""The catalog: what is shipped loads, what a submission gets, what users see of it."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from jupyter_to_job.backends.port import Resource, Units
from jupyter_to_job.domain.errors import BadCatalog, Refused, UnknownChoice
from jupyter_to_job.flavors import SHIPPED, load_catalog, parse_catalog
from jupyter_to_job.flavors.__main__ import schema
from jupyter_to_job.flavors.catalog import Catalog
from jupyter_to_job.service.catalog import describe, fitting

ROOT = Path(__file__).parents[2]
GOOD = """\
apiVersion: jupyter-to-job.io/v1
default: {flavor: small, device: cpu}
flavors:
  small: {cpu: 500m, memory: 2Gi, max_runtime: 2h, devices: [cpu]}
  gpu:   {cpu: 4, memory: 16Gi, gpus: 2, devices: [t4, slice], x-note: {any: thing}}
  lab:   {gpus: 1, devices: [t4, cpu], allowed: {groups: [research]}}
devices:
  cpu:   {}
  t4:    {resource: nvidia.com/gpu}
  slice: {limits: {nvidia.com/gpu: 1, nvidia.com/gpucores: 5}, isolation: software}
"""
EVERYTHING = """\
apiVersion: jupyter-to-job.io/v1
default: {flavor: all, device: all}
x-common: &common
  title: 1.50
  description: on
  image: registry.example.com/team/image@sha256:abc
  env: {YES: yes, VERSION: 1.10, EMPTY: ""}
  labels: {team: research, example.com/on: on}
  annotations: {example.com/note: "any text: at all"}
  scheduler_name: volcano
  priority_class: low
  ephemeral_storage: 10Gi
flavors:
  all:
    <<: *common
    cpu: 0.5
    memory: 1.5Gi
    gpus: 1
    shm: 64Mi
    max_runtime: 1h30m
    retries: 2
    devices: [all]
    queue: gpu
    allowed: {groups: [1.50, on]}
devices:
  all:
    <<: *common
    title: "All"
    resource: example.com/gpu
    limits: {example.com/cores: 5}
    node_selector: {example.com/gpu.product: "true"}
    tolerations: [{key: a, operator: Equal, value: true, effect: NoExecute, tolerationSeconds: 30}]
    runtime_class: nvidia
    isolation: none
    autoscaled: true
"""
LAPTOP = {
    name: Resource(Decimal(amount), Decimal(amount))
    for name, amount in (("cpu", 4), ("memory", 16 << 30))
}


def gpus(total: int, free: int | None) -> dict[str, Resource]:
    left = None if free is None else Decimal(free)
    return {**LAPTOP, "nvidia.com/gpu": Resource(Decimal(total), left)}


@pytest.fixture
def valid_catalog() -> Catalog:
    return parse_catalog(GOOD.encode(), "flavors.yaml")


# What is shipped --------------------------------------------------------------------------------


def test_the_shipped_catalog_shows_every_kind() -> None:
    shipped = load_catalog()
    choice = shipped.choose(None, None)
    assert (choice.flavor_name, choice.device_name) == ("small", "cpu")
    assert set(choice.demand) == {"cpu", "memory"}
    assert len([f for f in shipped.flavors.values() if f.devices == ("cpu",)]) >= 3
    assert {d.isolation for d in shipped.devices.values()} >= {
        "full", "hardware", "software", "none"
    }  # fmt: skip
    shares = {d.limits.get("nvidia.com/gpumem-percentage") for d in shipped.devices.values()}
    assert shares >= {"10", "5", "2"}
    t4 = shipped.devices["t4"].model_dump(mode="json", exclude_defaults=True)
    assert t4["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    ]


def test_every_device_that_is_shipped_is_offered() -> None:
    shipped = load_catalog()
    offered = {device for flavor in shipped.flavors.values() for device in flavor.devices}
    assert offered == set(shipped.devices)


def test_the_file_at_the_root_is_the_shipped_one() -> None:
    assert (ROOT / "flavors.yaml").read_bytes() == SHIPPED.read_bytes()


def test_the_catalog_of_the_cluster_loads() -> None:
    assert load_catalog(ROOT / "k8s" / "site" / "flavors.yaml").choose(None, None)


# The schema -------------------------------------------------------------------------------------


def test_the_published_schema_is_that_of_the_models() -> None:
    """If not: `python -m jupyter_to_job.flavors > docs/flavors.schema.json`."""
    assert json.loads((ROOT / "docs" / "flavors.schema.json").read_text()) == schema()


@pytest.mark.parametrize("text", [SHIPPED.read_text(), GOOD, EVERYTHING], ids=["shipped", "a", "b"])
def test_editors_accept_what_loads(text: str) -> None:
    Draft202012Validator.check_schema(schema())
    Draft202012Validator(schema()).validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    "change",
    [("gpus: 2", "gpu: 2"), ("memory: 2Gi", "memory: 2 GB"), ("io/v1", "io/v2"),
     ("isolation: software", "isolation: perfect"), ("devices: [cpu]", "devices: []"),
     ("[research]", "[]"), ("{groups: [research]}", "{}")],
)  # fmt: skip
def test_editors_mark_what_does_not(change: tuple[str, str]) -> None:
    assert not Draft202012Validator(schema()).is_valid(yaml.safe_load(GOOD.replace(*change)))


# What a submission gets -------------------------------------------------------------------------


def test_scalars_are_what_stands_in_the_file() -> None:
    catalog = parse_catalog(EVERYTHING.encode(), "flavors.yaml")
    flavor, device = catalog.flavors["all"], catalog.devices["all"]
    assert (flavor.title, flavor.description, device.title) == ("1.50", "on", "All")
    assert flavor.env == {"YES": "yes", "VERSION": "1.10", "EMPTY": ""}
    assert device.labels == {"team": "research", "example.com/on": "on"}
    assert flavor.max_runtime == 5400
    assert device.model_dump(mode="json", exclude_defaults=True)["tolerations"] == [
        {"key": "a", "operator": "Equal", "value": "true", "effect": "NoExecute",
         "tolerationSeconds": 30}
    ]  # fmt: skip


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
    valid_catalog: Catalog, asked: tuple[str | None, str | None], given: tuple[str, str]
) -> None:
    choice = valid_catalog.choose(*asked)
    assert (choice.flavor_name, choice.device_name) == given


def test_the_default_device_is_preferred_where_it_is_offered(valid_catalog: Catalog) -> None:
    assert valid_catalog.choose("lab", None, frozenset(["research"])).device_name == "cpu"


@pytest.mark.parametrize(
    ("flavor", "device", "error"),
    [
        ("big", None, UnknownChoice),
        ("small", "t4", UnknownChoice),
        ("gpu", "a100", UnknownChoice),
        ("lab", None, Refused),
    ],
)
def test_no_choice(
    valid_catalog: Catalog, flavor: str, device: str | None, error: type[UnknownChoice | Refused]
) -> None:
    with pytest.raises(error) as caught:
        valid_catalog.choose(flavor, device, frozenset(["staff"]))
    assert caught.value.hint


def test_demand(valid_catalog: Catalog) -> None:
    assert valid_catalog.choose("gpu", "t4").demand == {
        "cpu": Decimal(4),
        "memory": Decimal(16 << 30),
        "nvidia.com/gpu": Decimal(2),
    }
    assert valid_catalog.choose("gpu", "slice").demand["nvidia.com/gpucores"] == 5
    assert valid_catalog.choose("small", "cpu").demand == {"cpu": Decimal("0.5"), "memory": 2 << 30}


# What users see ---------------------------------------------------------------------------------


def test_what_users_see(valid_catalog: Catalog) -> None:
    seen = describe(valid_catalog, frozenset(["staff"]))
    assert set(seen) == {"default", "flavors", "devices"}
    assert seen["default"] == {"flavor": "small", "device": "cpu"}
    assert seen["flavors"]["small"]["allowed"] is True
    assert seen["flavors"]["small"]["unavailable_reason"] is None
    assert seen["flavors"]["lab"]["allowed"] is False
    assert "research" in seen["flavors"]["lab"]["unavailable_reason"]
    assert seen["devices"]["slice"]["isolation"] == "software"
    assert (seen["devices"]["t4"]["free"], seen["devices"]["t4"]["total"]) == (None, None)
    json.dumps(seen)


def test_what_never_fits_says_why(valid_catalog: Catalog) -> None:
    reason = {
        name: flavor["unavailable_reason"]
        for name, flavor in describe(valid_catalog, frozenset(["research"]), LAPTOP)[
            "flavors"
        ].items()
    }
    assert reason["small"] is None
    assert reason["gpu"] == "Needs 2 nvidia.com/gpu; there is none here."
    assert reason["lab"] is None, "it offers the CPU too"
    assert fitting(valid_catalog, LAPTOP, frozenset(["research"])) == ["small", "lab"]
    assert fitting(valid_catalog, LAPTOP) == ["small"]
    assert fitting(valid_catalog, None) == ["small", "gpu"], "an unknown place may have it"


def test_the_nearest_device_gives_the_reason(valid_catalog: Catalog) -> None:
    seen = describe(valid_catalog, frozenset(), gpus(total=1, free=1))
    reason = seen["flavors"]["gpu"]["unavailable_reason"]
    assert reason == "Needs 2 nvidia.com/gpu; there is 1 nvidia.com/gpu in all."
    assert fitting(valid_catalog, gpus(total=2, free=0)) == ["small", "gpu"], (
        "it waits for a free one"
    )


@pytest.mark.parametrize(
    ("there", "t4", "cut"),
    [
        (LAPTOP, (0, 0), (0, 0)),
        (gpus(total=4, free=3), (3, 4), (0, 0)),
        (gpus(total=4, free=None), (None, 4), (0, 0)),
        ({**gpus(total=4, free=3), "nvidia.com/gpucores": Resource(Decimal(100), Decimal(9))},
         (3, 4), (1, 4)),
    ],
)  # fmt: skip
def test_room(
    valid_catalog: Catalog,
    there: dict[str, Resource],
    t4: tuple[int | None, int],
    cut: tuple[int | None, int],
) -> None:
    devices = describe(valid_catalog, frozenset(), there)["devices"]
    assert (devices["t4"]["free"], devices["t4"]["total"]) == t4
    assert (devices["slice"]["free"], devices["slice"]["total"]) == cut
    assert (devices["cpu"]["free"], devices["cpu"]["total"]) == (None, None)


def test_units_that_somebody_else_counted(valid_catalog: Catalog) -> None:
    units = {"t4": Units(0, 2), "cpu": Units()}
    devices = describe(valid_catalog, frozenset(), gpus(total=4, free=3), units)["devices"]
    assert (devices["t4"]["free"], devices["t4"]["total"]) == (0, 2)
    assert (devices["slice"]["free"], devices["slice"]["total"]) == (0, 0)  # by the backend
    assert (devices["cpu"]["free"], devices["cpu"]["total"]) == (None, None)


def test_a_device_that_an_autoscaler_adds() -> None:
    text = GOOD.replace("resource: nvidia.com/gpu}", "resource: nvidia.com/gpu, autoscaled: true}")
    devices = describe(parse_catalog(text.encode(), "test"), frozenset())["devices"]
    assert (devices["t4"]["autoscaled"], devices["cpu"]["autoscaled"]) == (True, False)
    with pytest.raises(BadCatalog, match="autoscaled"):
        parse_catalog(text.replace("autoscaled: true", "autoscaled: maybe").encode(), "test")
