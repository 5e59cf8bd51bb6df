"""docs/catalog.md documents every field of the models and no other, and its examples load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from jupyter_to_job.flavors import load_catalog
from jupyter_to_job.flavors.catalog import Catalog
from jupyter_to_job.flavors.models import Allowed, Default, Device, Flavor, Toleration

from .pages import Block, page

PAGE = page("docs/catalog.md")
_EXAMPLES = [block for block in PAGE.blocks if block.language == "yaml"]
_SMALLEST: dict[str, Any] = {
    "apiVersion": "jupyter-to-job.io/v1",
    "default": {"flavor": "small", "device": "cpu"},
    "flavors": {"small": {"devices": ["cpu"]}},
    "devices": {"cpu": {}},
}


def fields(*models: type[BaseModel]) -> set[str]:
    return set.intersection(*(set(model.model_fields) for model in models))


BOTH = fields(Flavor, Device)


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("## The file", set(Catalog.model_fields)),
        ("### A flavor", fields(Flavor) - BOTH),
        ("### A device", fields(Device) - BOTH),
        ("### Both", BOTH),
    ],
)
def test_every_field_and_no_other(heading: str, expected: set[str]) -> None:
    assert set(PAGE.first_names(heading)) == expected


@pytest.mark.parametrize("model", [Default, Allowed, Toleration])
def test_fields_of_fields(model: type[BaseModel]) -> None:
    """Small enough to stand in the text of the field that holds them."""
    assert [name for name in model.model_fields if f"`{name}`" not in PAGE.text] == []


@pytest.mark.parametrize(
    ("heading", "model"), [("### A flavor", Flavor), ("### A device", Device), ("### Both", Flavor)]
)
def test_defaults(heading: str, model: type[BaseModel]) -> None:
    """The third column: the default in backticks, or `required`, or why there is none."""
    for name, _, documented, _ in PAGE.table(heading):
        info = model.model_fields[name.strip("`")]
        if info.is_required():
            assert documented == "required", name
        elif isinstance(info.default, bool):
            assert documented == f"`{str(info.default).lower()}`", name
        elif isinstance(info.default, (str, int)) and info.default not in ("", 0):
            assert documented == f"`{info.default}`", name
        else:
            assert documented in ("none", "`0`"), name
            assert (documented == "`0`") == (info.default == 0 and info.default is not None), name


@pytest.mark.parametrize("example", _EXAMPLES, ids=lambda block: f"line {block.line}")
def test_every_example_loads(example: Block, tmp_path: Path) -> None:
    """An example is a whole file, or flavors and devices to put into one."""
    document = yaml.safe_load(example.text)
    if "apiVersion" not in document:
        for part in ("flavors", "devices"):
            document[part] = {**_SMALLEST[part], **document.get(part, {})}
        document = {**_SMALLEST, **document}
    path = tmp_path / "flavors.yaml"
    path.write_text(yaml.safe_dump(document))
    catalog = load_catalog(path)
    offered = {device for flavor in catalog.flavors.values() for device in flavor.devices}
    assert set(catalog.devices) <= offered, "a device that no flavor offers shows nothing"
