"""A slot: one box's share of what the machine has once, namely addresses and cgroups.

A slot is held by a file lock that the box's first process inherits: it is free exactly when that
box is gone, whoever killed it. What a dead box left behind (its cgroups, and its directory, whose
path stands in the lock file) is removed by whoever takes the slot next.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, ip_network
from pathlib import Path

SLOTS = 16
LOCKS = Path("/run/jupyter-to-job-box")  # root's alone: we delete what the files in it name
# cpuset needs its parent's values before a process can enter: a new cgroup has none.
CPUSET_FILES = ("cpuset.cpus", "cpuset.mems")
# All pods together would else have no more of a busy machine than one process outside of them.
CPU_SHARES = "8192"


@dataclass(frozen=True)
class Cable:
    """A network cable into a sandbox: the name of its outer end, and the addresses of both ends."""

    name: str
    network: IPv4Network

    @property
    def outer(self) -> IPv4Address:
        """Who is outside, as the sandbox sees it."""
        return self.network[1]

    @property
    def inner(self) -> IPv4Address:
        """The sandbox, as everybody sees it."""
        return self.network[2]


class NoSlotError(Exception):
    """Sixteen boxes live already, or the machine's routes cover their addresses."""


@dataclass(frozen=True)
class Slot:
    """Addresses and names of box number `index`; `lock` is the descriptor that holds the slot."""

    index: int
    lock: int

    @property
    def name(self) -> str:
        """Of its cgroup and lock file."""
        return f"jupyter-to-job-box-{self.index}"

    @property
    def cable_network(self) -> IPv4Network:
        """Of all cables; only the first one ends at the host, which has a route to the others."""
        return IPv4Network(f"10.210.{self.index}.0/28")

    def cable(self, number: int) -> Cable:
        """The cable to the sandbox of that number: from the host to 0, from there to the others."""
        network = list(self.cable_network.subnets(new_prefix=30))[number]
        return Cable(f"j2jbox{self.index}n{number}", network)

    @property
    def pod_network(self) -> IPv4Network:
        """Of all pods; routed from the host."""
        return IPv4Network(f"10.211.{self.index}.0/24")

    def pods_of(self, number: int) -> IPv4Network:
        """Of the pods of the node of that number, 0 or 1: more than a kubelet takes."""
        return list(self.pod_network.subnets())[number]

    @property
    def service_network(self) -> IPv4Network:
        """Routed from the host; its first address is the API server's Service."""
        return IPv4Network(f"10.212.{self.index}.0/24")

    @property
    def networks(self) -> tuple[IPv4Network, ...]:
        """All that must be free on the host."""
        return (self.cable_network, self.pod_network, self.service_network)

    @classmethod
    def take(cls) -> Slot:
        """A free slot, cleaned of its last holder's leftovers; raises `NoSlotError`."""
        LOCKS.mkdir(mode=0o700, exist_ok=True)
        used = list(_host_networks())
        for index in range(SLOTS):
            lock = os.open(LOCKS / str(index), os.O_RDWR | os.O_CREAT, 0o600)
            slot = cls(index, lock)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            if not any(own.overlaps(other) for own in slot.networks for other in used):
                slot._remove_leftovers()
                return slot
            os.close(lock)
        raise NoSlotError(f"none of the {SLOTS} slots is free; networks in use here: {used}")

    def note_directory(self, directory: Path) -> None:
        """Remember the box's directory, for whoever comes after a box that was killed."""
        os.truncate(self.lock, 0)
        os.pwrite(self.lock, os.fsencode(directory), 0)

    def _remove_leftovers(self) -> None:
        self.remove_cgroups()
        if noted := os.pread(self.lock, os.fstat(self.lock).st_size, 0):
            shutil.rmtree(Path(os.fsdecode(noted)), ignore_errors=True)
        os.truncate(self.lock, 0)

    def make_cgroups(self, node: str) -> str:
        """Make a kubelet's root cgroup in every hierarchy of this machine, and return its path."""
        hierarchies = cgroup_hierarchies("cgroup")
        for hierarchy in hierarchies:
            for group in (hierarchy / self.name, hierarchy / self.name / node):
                group.mkdir(exist_ok=True)
                for name in CPUSET_FILES:
                    if (group / name).exists():
                        (group / name).write_text((group.parent / name).read_text())
            if (hierarchy / self.name / "cpu.shares").exists():
                (hierarchy / self.name / "cpu.shares").write_text(CPU_SHARES)
        return f"/{self.name}/{node}"

    def remove_cgroups(self, node: str = "") -> None:
        """Remove all, or a node's.

        Deepest first; a killed process may stay in one for a moment, so up to 5 seconds.
        """
        deadline = time.monotonic() + 5
        # runc makes one in the v2 hierarchy too, where a machine has both.
        for hierarchy in cgroup_hierarchies("cgroup", "cgroup2"):
            for directory, _, _ in os.walk(hierarchy / self.name / node, topdown=False):
                while True:
                    try:
                        Path(directory).rmdir()
                        break
                    except OSError:
                        if time.monotonic() > deadline:
                            raise
                        time.sleep(0.02)

    def release(self) -> None:
        """Give the slot back; the box must be gone."""
        self.remove_cgroups()
        os.truncate(self.lock, 0)
        os.close(self.lock)


def cgroup_hierarchies(*kinds: str) -> list[Path]:
    """Where cgroups of these kinds (`cgroup` is version 1) are mounted."""
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    return [Path(mount[1]) for mount in mounts if mount[2] in kinds]


def _host_networks() -> Iterator[IPv4Network]:
    answer = subprocess.run(
        ["ip", "-json", "-4", "route", "show", "table", "all"],
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    for route in json.loads(answer):
        if route["dst"] != "default":
            network = ip_network(route["dst"], strict=False)
            if isinstance(network, IPv4Network):
                yield network
