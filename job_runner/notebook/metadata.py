"""The notebook's kernel, and what its metadata records of the job: paths and provenance."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

from ..diagnosis import endings

PLAIN_PATH = "plain_path"
"""In request.json: the path of a standalone run's result, as its caller gave it."""
DEFAULT_KERNEL, DEFAULT_LANGUAGE = "python3", "python"


def kernel_name(snapshot: bytes, override: str | None) -> str:
    """Return the kernel to start: the override, else the notebook's, else python3.

    It imports no papermill, so that the kernel can start before. Raises RunFailed for bytes that
    are no notebook.
    """
    try:
        metadata = json.loads(snapshot).get("metadata", {})
        return str(override or metadata.get("kernelspec", {}).get("name") or DEFAULT_KERNEL)
    except (ValueError, AttributeError, RecursionError) as error:
        raise endings.bad_notebook(error) from error


def recorded_paths(request: dict[str, Any]) -> tuple[str, str]:
    """Return the paths of source and result that papermill records."""
    source = PurePosixPath(request["notebook"])
    default = source.parent / f"{request['name']}.ipynb"
    return str(source), request.get(PLAIN_PATH) or str(default)


def provenance(request: dict[str, Any]) -> dict[str, Any]:
    """Return what a result records of its job, enough to run it again; {} for a standalone run.

    `env` is left out: its values may be secret.
    """
    if PLAIN_PATH in request:
        return {}
    fields = {
        "job": request["name"],
        "notebook": request["notebook"],
        "snapshot_sha256": request.get("snapshot_sha256"),
        "flavor": request.get("flavor"),
        "device": request.get("device"),
        "parameters": request.get("parameters") or {},
        "inputs": [item["path"] for item in request.get("inputs") or ()],
        "isolated": bool(request.get("isolated")),
        "kernel": request.get("kernel"),
        "max_runtime": request.get("max_runtime"),
        "submitted": request.get("submitted"),
    }
    return {"provenance": fields}
