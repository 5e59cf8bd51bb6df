"""The namespaces of a box, its network, and the programs started in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.cluster.box import init
from tests.cluster.box.slot import Slot

# Debian keeps what the programs call in both; a user's PATH often lacks the second.
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LOG_TAIL_LINES = 25


class ProgramError(Exception):
    """A program of the box ended, or did not become ready; carries the tail of its log."""


class Sandbox:
    """A running box. Programs started in it live until they end or `stop` is called.

    `stop`, the end of this process and the death of the box's first process all come to the same:
    the kernel kills everything inside and takes the network and the mounts away.
    """

    def __init__(self, run_dir: Path, slot: Slot, memory_directories: list[Path]) -> None:
        self.run_dir = run_dir
        self.slot = slot
        self.logs = run_dir / "logs"
        self.logs.mkdir()
        self._programs: dict[str, subprocess.Popen[bytes]] = {}
        for directory in (*map(Path, init.PRIVATE_DIRECTORIES), *memory_directories):
            directory.mkdir(parents=True, exist_ok=True)
        slot.make_cgroups()
        self._unshare = self._start_init(memory_directories)
        try:
            self._await_init()
            self._connect()
        except BaseException:
            self.stop()
            raise

    def _start_init(self, memory_directories: list[Path]) -> subprocess.Popen[bytes]:
        with (self.logs / "init.log").open("wb") as log:
            return subprocess.Popen(
                [
                    *("unshare", "--fork", "--pid", "--mount", "--net", "--mount-proc"),
                    *("--propagation", "private", "--kill-child=SIGKILL"),
                    *(sys.executable, "-I", init.__file__, *map(str, memory_directories)),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                pass_fds=[self.slot.lock],
                start_new_session=True,  # a Ctrl-C at the terminal is not for the box
            )

    def _await_init(self) -> None:
        assert self._unshare.stdout
        if self._unshare.stdout.readline() != b"ready\n":
            raise ProgramError(f"the box did not start: {self.tail('init')}")
        pid = self._unshare.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        self.init_pid = int(children[0])

    def _connect(self) -> None:
        slot = self.slot
        _ip(
            f"link add {slot.link} type veth peer name eth0 netns {self.init_pid}",
            f"address add {slot.host_address}/30 dev {slot.link}",
            f"link set {slot.link} up",
        )
        # Service addresses need a route, or nothing consults the rules that translate them; a
        # bridge without ports is one, and swallows whatever no rule serves.
        self._ip_inside(
            "link set lo up",
            f"address add {slot.box_address}/30 dev eth0",
            "link set eth0 up",
            "link add nowhere type bridge",
            "link set nowhere up",
            "route add default dev nowhere",
        )
        _ip(
            f"route add {slot.pod_network} via {slot.box_address}",
            f"route add {slot.service_network} via {slot.box_address}",
        )
        switches = ["net.ipv4.ip_forward=1", "net.bridge.bridge-nf-call-iptables=1"]
        self.run(["sysctl", "--quiet", "--write", *switches])

    def _ip_inside(self, *commands: str) -> None:
        self.run(["ip", "-batch", "-"], stdin="\n".join(commands).encode())

    def _enter(self, command: list[str]) -> list[str]:
        enter = ["nsenter", "--target", str(self.init_pid), "--mount", "--net", "--pid"]
        # A working directory of the host would keep its mount namespace's paths.
        return [*enter, f"--wd={self.run_dir}", "--", *command]

    def run(self, command: list[str], stdin: bytes = b"", timeout: float = 60) -> str:
        """Run to its end; standard output. Raises `ProgramError` with standard error."""
        answer = subprocess.run(
            self._enter(command),
            input=stdin,
            capture_output=True,
            env=_environment(),
            timeout=timeout,
            check=False,
        )
        if answer.returncode:
            raise ProgramError(f"{' '.join(command)}: {answer.stderr.decode().strip()}")
        return answer.stdout.decode()

    def start(self, name: str, command: list[str]) -> None:
        """Start a long-running program; its output goes to `logs/<name>.log`."""
        with (self.logs / f"{name}.log").open("ab") as log:
            self._programs[name] = subprocess.Popen(
                self._enter(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=_environment(),
                start_new_session=True,
            )

    def check_running(self, name: str) -> None:
        """Raise `ProgramError` if the program has ended."""
        if (status := self._programs[name].poll()) is not None:
            raise ProgramError(f"{name} ended with status {status}:\n{self.tail(name)}")

    def tail(self, name: str) -> str:
        """The end of a program's log."""
        log = self.logs / f"{name}.log"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        return "\n".join(lines[-LOG_TAIL_LINES:])

    def stop(self) -> None:
        """End everything in the box. Its slot may be given back after that."""
        assert self._unshare.stdin
        self._unshare.stdin.close()
        try:
            self._unshare.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._unshare.kill()  # takes its child, the first process of the box, with it
            self._unshare.wait()
        assert self._unshare.stdout
        self._unshare.stdout.close()
        for program in self._programs.values():
            program.wait(timeout=10)


def _ip(*commands: str) -> None:
    subprocess.run(["ip", "-batch", "-"], input="\n".join(commands), text=True, check=True)


def _environment() -> dict[str, str]:
    """Nothing of the user's leaks into the cluster's programs, proxies above all."""
    return {"PATH": SYSTEM_PATH, "HOME": "/", "LANG": os.environ.get("LANG", "C.UTF-8")}
