"""`python -m jupyter_to_job.flavors` prints the JSON Schema of `flavors.yaml`, for editors.

`docs/flavors.schema.json` is a copy of the output; a test compares the two. A schema cannot check
that a flavor's devices exist; `jupyter-to-job flavors check` does.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from .catalog import Catalog

ID = "https://schema.jupyter-to-job.io/flavors/v1"


class _Untitled(GenerateJsonSchema):
    """Leaves out titles: pydantic's only repeat the fields' names."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's interface
        return False


def schema() -> dict[str, Any]:
    """Return the schema, made from the models."""
    document = Catalog.model_json_schema(schema_generator=_Untitled)
    document["description"] = "What jobs may ask for: flavors (how much) and devices (which kind)."
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": ID, **document}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(schema(), indent=2) + "\n")
