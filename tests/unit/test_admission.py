"""Which couriers may be under way, and whose turn is next."""

from __future__ import annotations

from jupyter_to_job.controller.couriers.admission import (
    MAX_COURIERS,
    MAX_OF_CLAIM,
    MAX_OF_FOLDER,
    Admission,
    Volume,
)


def folder(of: str) -> Volume:
    return Volume("team", "shared", f"users/{of}", is_shared=True)


def test_a_claim_that_hangs_leaves_room_for_others() -> None:
    admission = Admission()
    admitted = [admission.admit(f"j{n}", f"u{n}", folder(f"u{n}")) for n in range(MAX_COURIERS)]
    assert admitted.count(True) == MAX_OF_CLAIM
    assert admission.admit("other", "eve", Volume("team", "another"))
    assert admission.admit("elsewhere", "eve", Volume("other", "shared", is_shared=True))


def test_a_folder_has_few() -> None:
    admission = Admission()
    admitted = [admission.admit(f"j{n}", "ada", folder("ada")) for n in range(5)]
    assert admitted.count(True) == MAX_OF_FOLDER
    assert admission.admit("bob's", "bob", folder("bob"))


def test_a_claim_of_one_node_has_one() -> None:
    admission = Admission()
    assert admission.admit("j1", "ada", Volume("team", "home", "a"))
    assert not admission.admit("j2", "ada", Volume("team", "home", "b"))
    assert admission.release("j1") == "j2"


def test_owners_take_turns() -> None:
    """One with many results does not hold up those of the others."""
    admission = Admission()
    volume = Volume("team", "home")  # one at a time
    assert admission.admit("first", "eve", volume)
    for job, owner in [("a1", "ada"), ("a2", "ada"), ("a3", "ada"), ("b1", "bob"), ("c1", "cid")]:
        assert not admission.admit(job, owner, volume)
    order, job = [], "first"
    for _ in range(5):
        called = admission.release(job)
        assert called is not None and admission.admit(called, "whoever", volume)
        order.append(job := called)
    assert order == ["a1", "b1", "c1", "a2", "a3"]
    assert admission.release("a3") is None


def test_a_job_that_is_looked_at_again_keeps_its_place() -> None:
    admission = Admission()
    volume = Volume("team", "home")
    assert admission.admit("first", "ada", volume)
    for job in ("a1", "a2", "a1"):
        assert not admission.admit(job, "ada", volume)
        assert admission.is_waiting(job)
    assert admission.release("first") == "a1"
    assert not admission.is_waiting("a1")
    assert admission.release("a2") is None
    assert not admission.is_waiting("a2")
