"""A sandbox: namespaces of its own, a network cable into them, and the programs started there.

The box's first sandbox is on the host and holds the control plane and a node. The sandbox of
another node is inside of the first one: it ends with that at the latest.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from ipaddress import IPv4Network
from pathlib import Path

from tests.cluster.box import init
from tests.cluster.box.slot import Cable

# Debian keeps what the programs call in both; a user's PATH often lacks the second.
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LOG_TAIL_LINES = 25


class ProgramError(Exception):
    """A program in a sandbox ended, or did not become ready; carries the tail of its log."""


class Sandbox:
    """A running sandbox. Programs started in it live until they end or `stop` is called.

    `stop`, the end of this process and the death of the sandbox's first process all come to the
    same: the kernel kills everything inside and takes the network and the mounts away.
    """

    def __init__(
        self,
        run_dir: Path,
        cable: Cable,
        networks: Iterable[IPv4Network],
        *,
        inside: Sandbox | None = None,
        memory_directories: Iterable[Path] = (),
        lock: int | None = None,
    ) -> None:
        """Start it at the end of a cable; whoever is outside finds `networks` there.

        `lock` is a file descriptor that stays open for as long as the sandbox lives.
        """
        self.run_dir = run_dir
        self.cable = cable
        self.networks = tuple(networks)
        self.logs = run_dir / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self._outside = inside
        self._programs: dict[str, subprocess.Popen[bytes]] = {}
        memory_directories = list(memory_directories)
        for directory in (*map(Path, init.PRIVATE_DIRECTORIES), *memory_directories):
            directory.mkdir(parents=True, exist_ok=True)
        self._unshare = self._start_init(memory_directories, [] if lock is None else [lock])
        self.init_pid = self._unshare.pid  # until it is known
        try:
            self._await_init()
            self._connect()
        except BaseException:
            self.stop()
            raise

    def _start_init(
        self, memory_directories: list[Path], descriptors: list[int]
    ) -> subprocess.Popen[bytes]:
        command = [
            *("unshare", "--fork", "--pid", "--mount", "--net", "--mount-proc"),
            *("--propagation", "private", "--kill-child=SIGKILL"),
            *(sys.executable, "-I", init.__file__, *map(str, memory_directories)),
        ]
        with (self.logs / "init.log").open("ab") as log:
            return subprocess.Popen(
                self._outside.entering(command) if self._outside else command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                pass_fds=descriptors,
                start_new_session=True,  # a Ctrl-C at the terminal is not for the box
            )

    def _await_init(self) -> None:
        assert self._unshare.stdout
        if self._unshare.stdout.readline() != b"ready\n":
            raise ProgramError(f"the sandbox did not start: {self.tail('init')}")
        self.init_pid = self._unshare.pid
        while children := _children(self.init_pid):  # nsenter's, then unshare's; init has none
            self.init_pid = children[0]

    def _connect(self) -> None:
        cable = self.cable
        if self._outside:
            default = [f"route add default via {cable.outer}"]
        else:
            # Service addresses need a route, or nothing consults the rules that translate them; a
            # bridge without ports is one, and swallows whatever no rule serves.
            default = ["link add nowhere type bridge", "link set nowhere up"]
            default += ["route add default dev nowhere"]
        self._ip_outside(
            f"link add {cable.name} type veth peer name eth0 netns {self.init_pid}",
            f"address add {cable.outer}/30 dev {cable.name}",
        )
        self._ip(
            "link set lo up",
            f"address add {cable.inner}/30 dev eth0",
            "link set eth0 up",
        )
        self.plug_in()
        self._ip(*default)
        switches = ["net.ipv4.ip_forward=1", "net.bridge.bridge-nf-call-iptables=1"]
        self.run(["sysctl", "--quiet", "--write", *switches])

    def plug_in(self) -> None:
        """Make the network cable carry something again."""
        self._ip_outside(
            f"link set {self.cable.name} up",
            *(f"route add {network} via {self.cable.inner}" for network in self.networks),
        )

    def unplug(self) -> None:
        """Pull the network cable: what is sent on either side arrives nowhere, unanswered."""
        self._ip_outside(f"link set {self.cable.name} down")  # its routes go with it

    def _ip(self, *commands: str) -> None:
        # The network's namespace alone: process ids in the commands are the host's.
        _ip(f"nsenter --target {self.init_pid} --net --", commands)

    def _ip_outside(self, *commands: str) -> None:
        if self._outside:
            self._outside._ip(*commands)
        else:
            _ip("", commands)

    def entering(self, command: list[str]) -> list[str]:
        """Return the command line that runs another one in here."""
        enter = ["nsenter", "--target", str(self.init_pid), "--mount", "--net", "--pid"]
        # A working directory of the host would keep its mount namespace's paths.
        return [*enter, f"--wd={self.run_dir}", "--", *command]

    def run(self, command: list[str], stdin: bytes = b"", timeout: float = 60) -> str:
        """Run to its end; standard output. Raises `ProgramError` with standard error."""
        answer = subprocess.run(
            self.entering(command),
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
                self.entering(command),
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

    def check_all_running(self) -> None:
        """Raise `ProgramError` if any program has ended."""
        for name in self._programs:
            self.check_running(name)

    def kill(self, name: str) -> None:
        """Kill a program, at once and without a word to it."""
        self.send_signal(name, signal.SIGKILL)
        self._programs.pop(name).wait(timeout=10)

    def send_signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a program."""
        outside = self._programs[name].pid  # nsenter, which waits there for the program
        for pid in _children(outside):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        if number == signal.SIGCONT:  # nsenter stops with the program
            os.kill(outside, number)

    def tail(self, name: str) -> str:
        """The end of a program's log."""
        log = self.logs / f"{name}.log"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        return "\n".join(lines[-LOG_TAIL_LINES:])

    def stop(self) -> None:
        """End everything in the sandbox; all of it is gone on return."""
        assert self._unshare.stdin
        self._unshare.stdin.close()
        try:
            self._unshare.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.kill(self.init_pid, signal.SIGKILL)
            self._unshare.wait()
        assert self._unshare.stdout
        self._unshare.stdout.close()
        for program in self._programs.values():
            program.wait(timeout=10)


def _ip(prefix: str, commands: Iterable[str]) -> None:
    command = [*prefix.split(), "ip", "-batch", "-"]
    subprocess.run(command, input="\n".join(commands), text=True, check=True)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _environment() -> dict[str, str]:
    """Nothing of the user's leaks into the cluster's programs, proxies above all."""
    return {"PATH": SYSTEM_PATH, "HOME": "/", "LANG": os.environ.get("LANG", "C.UTF-8")}
