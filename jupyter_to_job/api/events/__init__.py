"""The published event schemas: one YAML file each."""

from __future__ import annotations

from pathlib import Path

JOB_SCHEMA = Path(__file__).with_name("job.v1.yaml")
JOB_SCHEMA_ID = "https://schema.jupyter-to-job.io/job/v1"
