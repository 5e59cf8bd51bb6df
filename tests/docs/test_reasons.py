"""What a user reads of states and reasons in the quick start is the domain's whole list."""

from __future__ import annotations

from jupyter_to_job.cli.checks.cluster.doctor import CHECKS
from jupyter_to_job.domain.job import DeliveryState, State
from jupyter_to_job.domain.reasons import DAMAGED, REASONS, Kind

from .pages import page

QUICKSTART = page("docs/quickstart.md")


def test_every_reason_and_what_to_do() -> None:
    rows = QUICKSTART.table("### Reasons")
    assert {row[0].strip("`") for row in rows} == set(REASONS)
    assert len(rows) == len(REASONS)
    assert [row for row in rows if min(map(len, row[1:])) < 10] == []


def test_what_a_cluster_does_is_explained() -> None:
    """For the user and for the administrator, where not the notebook's own code is the cause."""
    named = set(page("docs/troubleshooting.md").spans)
    of_clusters = {name for name, kind in REASONS.items() if kind in (Kind.HOST, Kind.STOPPED)}
    assert of_clusters - {DAMAGED} <= named
    assert {"ImageUnavailable", "Unschedulable", "QuotaExceeded"} <= named


def test_every_area_of_the_clusters_doctor() -> None:
    listed = page("docs/troubleshooting.md").first_names("## What doctor checks")
    assert listed == ["cluster", *(area for area, _ in CHECKS)]


def test_every_state() -> None:
    assert QUICKSTART.first_names("### States") == [state.value for state in State]


def test_every_state_of_a_delivery() -> None:
    named = QUICKSTART.first_names("## Where the result is")
    assert named == [state.value for state in DeliveryState]
