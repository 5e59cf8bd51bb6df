"""docs/local.md: the variables that reach a job are those that the code passes on."""

from __future__ import annotations

import os

import pytest

from jupyter_to_job.service.submitting.submission import local_environment

from .pages import page

LOCAL = page("docs/local.md")


def test_variables_that_jobs_get(monkeypatch: pytest.MonkeyPatch) -> None:
    named = LOCAL.first_names("## What a job's environment is")
    expected = {name.replace("*", "SOME") for name in named}
    expected |= {name.upper() for name in expected}
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name in {*expected, "SECRET_TOKEN", "JUPYTER_TO_JOB_GATEWAY", "XLANG", "LC", "CONDA"}:
        monkeypatch.setenv(name, "set")
    assert set(local_environment("python").variables) == expected
