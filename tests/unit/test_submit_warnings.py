"""What `submit` prints of a job on a cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupyter_to_job.cli.arguments.notebooks import Source
from jupyter_to_job.cli.arguments.warnings import SubmitWarnings
from jupyter_to_job.domain.job import Submission
from jupyter_to_job.domain.preflight import JobImage, Preflight

from .test_job import JOB

SOURCE = Source(Path("/"), "train.ipynb", "train.ipynb")


class Gateway:
    """Says before the submission that the folder comes along."""

    pulls = True

    def preflight(self, _: Submission) -> Preflight:
        return Preflight(mounts=("/data",), image=JobImage("notebook:1", is_own=True))


@pytest.mark.parametrize(
    ("isolated", "mounts", "said"),
    [
        (
            False,
            ("/data",),
            "It works in the notebook's own folder. It sees as you do here: /data.",
        ),
        (True, (), "Isolated: it works in a scratch folder, with the files that are sent."),
    ],
)
def test_the_place_is_the_jobs_own(
    isolated: bool, mounts: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nodes may have changed since preflight, and nobody was asked by a dialog."""
    gateway: Any = Gateway()
    with SubmitWarnings() as warnings:
        warnings.check(gateway, SOURCE, Submission("train.ipynb"))
        warnings.record(SOURCE, replace(JOB, isolated=isolated, mounts=mounts))
    assert capsys.readouterr().err.splitlines() == [said]


def test_nothing_is_said_of_a_job_that_was_refused(capsys: pytest.CaptureFixture[str]) -> None:
    gateway: Any = Gateway()
    with SubmitWarnings() as warnings:
        warnings.check(gateway, SOURCE, Submission("train.ipynb"))
    assert capsys.readouterr().err == ""


def test_a_look_that_fails_fails_no_submission(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken(Gateway):
        def preflight(self, _: Submission) -> Preflight:
            raise RecursionError

    gateway: Any = Broken()
    with SubmitWarnings() as warnings:
        warnings.check(gateway, SOURCE, Submission("train.ipynb"))
    assert capsys.readouterr().err == ""
