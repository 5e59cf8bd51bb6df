"""The published event schemas: one YAML file each."""

from __future__ import annotations

from pathlib import Path

_BASE = "https://schema.jupyter-to-job.io"
JOB_SCHEMA_ID = f"{_BASE}/job/v2"
DELETED_SCHEMA_ID = f"{_BASE}/job-deleted/v1"
SUBMISSION_SCHEMA_ID = f"{_BASE}/submission/v1"
SCHEMAS = tuple(sorted(Path(__file__).parent.glob("*.yaml")))
"""The files to register."""
