"""Whose turn it is, and which slots it gets: pure, on tables and properties."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_to_job.backends.local.gpus import Devices, Probe
from jupyter_to_job.backends.local.queue import demand_of, in_queue_order, start
from jupyter_to_job.backends.local.slots import Allocation, Machine, Slots, sum_of
from jupyter_to_job.exchange import Request

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.10gb"


def request(name: str, priority: int = 0, **demand: int) -> Request:
    amounts = {{"gpu": GPU}.get(k, k): str(v) for k, v in demand.items()}
    return Request(
        name=name, owner="", notebook="", source="", workspace="", flavor="", device="",
        flavor_spec={}, device_spec={}, demand=amounts, snapshot_sha256="", submitted=name,
        backend="local", digest="", priority=priority,
    )  # fmt: skip


def slots(setting: str) -> Slots:
    machine = Machine(setting)
    assert machine.probe([GPU], timeout=5.0)
    return Slots(machine)


def started_names(line: list[Request], on: Slots) -> list[str]:
    return [r.name for r, _ in start(in_queue_order(line), on)]


class Answers(Probe):
    """A driver that answers at once."""

    def __init__(self, found: Devices) -> None:
        self.problem = ""
        self._devices = found


def machine_with(found: Devices, setting: str = "") -> Machine:
    machine = Machine(setting, probe=lambda: Answers(found))
    assert machine.probe([GPU])
    return machine


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ([request("a", cpu=2), request("b", cpu=2)], ["a", "b"]),
        ([request("a", cpu=3), request("b", cpu=3), request("c", cpu=1)], ["a"]),
        ([request("a", cpu=1), request("b", priority=1, cpu=4)], ["b"]),
        ([request("a", gpu=2, cpu=1), request("b", gpu=1), request("c", cpu=1)], ["a", "c"]),
        ([request("a", gpu=3, cpu=1), request("b", cpu=1)], ["b"]),
        ([request("a", gpu=3, cpu=5), request("b", cpu=1)], []),
        ([request("a", gpu=3), request("b", gpu=0, cpu=1), request("c", gpu=1)], ["b"]),
    ],
    ids=["fits", "no overtaking", "priority", "other", "gpu only", "both", "0 is nothing"],
)
def test_whose_turn_it_is(line: list[Request], expected: list[str]) -> None:
    assert started_names(line, slots(f"cpu=4,{GPU}=2")) == expected


def test_a_limit_holds_its_own_group_back_and_nobody_else() -> None:
    on = slots("cpu=4")
    line = [replace(request(f"a{n}", cpu=1), group="a", group_limit=2) for n in range(3)]
    line.append(replace(request("b", cpu=1), group="b", group_limit=1))
    line.append(replace(request("c", cpu=1), group="a"))
    assert started_names(line, on) == ["a0", "a1", "b", "c"]
    del on.allocations["a0"]  # two of the group still run
    assert started_names(line[2:3], on) == []
    del on.allocations["c"]
    assert started_names(line[2:3], on) == ["a2"]


jobs = st.lists(
    st.fixed_dictionaries({"cpu": st.integers(0, 4), "gpu": st.integers(0, 3)}), max_size=8
)


@given(jobs, jobs)
def test_nobody_is_overtaken_on_what_he_waits_for(
    before: list[dict[str, int]], asked: list[dict[str, int]]
) -> None:
    on, seen = (slots(f"cpu=4,memory=1,{GPU}=3") for _ in range(2))
    running = [request(f"r{n}", **one) for n, one in enumerate(before)]
    assert started_names(running, on) == started_names(running, seen)
    line = in_queue_order(request(f"w{n}", **one) for n, one in enumerate(asked))
    turn = started_names(line, on)
    for place, one in enumerate(line):
        if one.name in turn:
            seen.take(one.name, demand_of(one))
            continue
        waits_for = seen.lacking(demand_of(one))
        behind = [later for later in line[place:] if later.name in turn]
        assert not any(waits_for & demand_of(later).keys() for later in behind)
    total = on.machine.total
    assert all(amount <= total[name] for name, amount in sum_of(on.allocations.values()).items())
    given_out = [d for holding in on.allocations.values() for d in holding.devices.get(GPU, ())]
    assert len(given_out) == len(set(given_out)) == sum_of(on.allocations.values()).get(GPU, 0)


def test_devices_of_the_machine() -> None:
    on = Slots(machine_with({GPU: ("GPU-a", "GPU-b"), MIG: ("MIG-a",)}, "cpu=4"))
    assert on.machine.total[GPU] == 2 and on.machine.total[MIG] == 1
    first = on.take("first", {GPU: Decimal(1)})
    second = on.take("second", {GPU: Decimal(1)})
    assert visible_devices(on, first) == "GPU-a" and visible_devices(on, second) == "GPU-b"
    assert on.lacking({GPU: Decimal(1), "cpu": Decimal(1)}) == {GPU}
    del on.allocations["first"]
    assert on.take("third", {GPU: Decimal(1)}).devices == {GPU: ("GPU-a",)}
    assert visible_devices(on, on.take("part", {MIG: Decimal(1)})) == "MIG-a"


def visible_devices(on: Slots, holding: Allocation) -> str:
    variables = on.variables(holding)
    assert variables["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"  # as the ids count
    return variables["CUDA_VISIBLE_DEVICES"]


def test_one_thread_at_a_time_asks_the_driver() -> None:
    """Of two that read an answer one would get none, and take the GPUs for missing."""
    inside, ready = threading.Barrier(2), threading.Barrier(4)

    class Answering(Answers):
        def devices(self, wait: float = 0.0) -> Devices | None:
            with contextlib.suppress(threading.BrokenBarrierError):
                inside.wait(timeout=0.2)
                self.problem = "two at a time"
            return super().devices(wait)

    def started() -> Probe:
        starts.append(1)
        return Answering({GPU: ("g0",)})

    starts: list[int] = []
    machine = Machine("cpu=1,memory=1Gi", probe=started)

    def ask(_: int) -> tuple[bool, Decimal | None]:
        ready.wait()
        return machine.probe([GPU], timeout=5.0), machine.total.get(GPU)

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(ask, range(4))) == [(True, Decimal(1))] * 4
    assert (machine.problem, len(starts)) == ("", 1)


def test_what_a_run_already_has_is_given_to_nobody_else() -> None:
    on = Slots(machine_with({GPU: ("GPU-a", "GPU-b")}))
    on.allocations["found"] = Allocation({GPU: Decimal(1)}, {GPU: ("GPU-b",)})
    assert on.take("next", {GPU: Decimal(1)}).devices == {GPU: ("GPU-a",)}


def test_configured_devices_are_the_first_real_ones_or_pretended() -> None:
    real: Devices = {GPU: ("GPU-a", "GPU-b")}
    assert machine_with(real, f"{GPU}=1").devices[GPU] == ("GPU-a",)
    assert machine_with(real, f"{GPU}=3").devices[GPU] == ("0", "1", "2")
    assert machine_with(real, f"{GPU}=0").devices[GPU] == ()
    assert machine_with({}, "licence=3").devices == {}


def test_a_job_for_cpus_sees_no_gpu() -> None:
    on = Slots(machine_with({GPU: ("GPU-a",)}))
    assert on.variables(on.take("a", {"cpu": Decimal(1)})) == {"CUDA_VISIBLE_DEVICES": ""}
