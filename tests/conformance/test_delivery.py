"""The result in the workspace: once, never over anything, and again when it could not be."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from jupyter_to_job.domain.job import DeliveryState, State
from jupyter_to_job.domain.names import job_name

from .. import notebooks
from .place import Place


def test_never_over_an_existing_file(place: Place) -> None:
    source = str(place.workspace / "dir" / "Train model.ipynb")
    name = job_name(source, owner="me", key="once")
    mine = place.workspace / "dir" / f"{name}.ipynb"
    mine.write_text("mine")
    ended = place.decided(place.submit(idempotency_key="once").name)
    assert ended.delivery.path == f"dir/{name}-2.ipynb"
    assert mine.read_text() == "mine"
    assert "# kept" in notebooks.printed(place.result(ended))


def test_delivered_again_is_delivered_once(place: Place) -> None:
    ended = place.decided(place.submit().name)
    before = place.result(ended).stat()  # not the whole of it: reading changes the access time
    (place.exchange.directory(ended.name) / "delivery.json").unlink()  # killed in between
    again = place.service.deliver(ended.name)
    assert again.delivery == ended.delivery
    after = place.result(again).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert len(list((place.workspace / "dir").iterdir())) == 2


def test_what_is_delivered_is_the_result(shared: Place) -> None:
    place, ended = shared, shared.the_job()
    data = place.result(ended).read_bytes()
    assert place.service.notebook(ended.name).file.read() == data
    record = place.exchange.document(ended.name, "delivery.json")
    assert record is not None
    assert record["path"] == ended.delivery.path
    assert record["sha256"] == hashlib.sha256(data).hexdigest()


@pytest.mark.core
def test_output_is_a_file_or_a_folder(place: Place) -> None:
    (place.workspace / "results").mkdir()
    jobs = {o: place.submit(output=o).name for o in ("results", "results/night.ipynb", "night")}
    paths = {output: place.decided(name).delivery.path for output, name in jobs.items()}
    assert paths == {
        "results": f"results/{jobs['results']}.ipynb",
        "results/night.ipynb": "results/night.ipynb",
        "night": "night.ipynb",
    }
    assert all((place.workspace / path).is_file() for path in paths.values() if path)
    asked = {output: place.service.get(name).output for output, name in jobs.items()}
    assert asked == {
        "results": "results/",
        "results/night.ipynb": "results/night.ipynb",
        "night": "night",
    }


@pytest.mark.core
def test_held_until_the_folder_is_back(place: Place) -> None:
    """The folder that the result should go to is gone; later it is there again."""
    job = place.submit(output="gone/result.ipynb")
    held = place.decided(job.name)
    assert held.state is State.SUCCEEDED
    assert held.delivery.state is DeliveryState.HELD
    assert held.delivery.message
    (place.workspace / "gone").mkdir()
    delivered = place.service.deliver(job.name)
    assert delivered.delivery.state is DeliveryState.DELIVERED
    assert place.result(delivered).is_file()


def test_never_through_a_link_out_of_the_workspace(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (place.workspace / "out").symlink_to(outside)
    job = place.submit(output="inside/result.ipynb")
    assert place.decided(job.name).delivery.state is DeliveryState.HELD
    (place.workspace / "inside").symlink_to(outside)
    assert place.service.deliver(job.name).delivery.state is DeliveryState.HELD
    assert list(outside.iterdir()) == []


def test_a_reader_elsewhere_sees_the_path_from_there(shared: Place) -> None:
    place, ended = shared, shared.the_job()
    inside = place.service_of("me", place.workspace / "dir").get(ended.name)
    assert (inside.notebook, inside.delivery.path) == ("Train model.ipynb", f"{ended.name}.ipynb")
    beside = place.service_of("me", place.workspace / "other").get(ended.name)
    assert beside.delivery.path == f"../dir/{ended.name}.ipynb"
    above = place.service_of("me", place.workspace.parent).get(ended.name)
    assert above.delivery.path == f"workspace/dir/{ended.name}.ipynb"
    assert inside.inputs == ("Train model.ipynb",)
    assert above.inputs == ("workspace/dir/Train model.ipynb",)
