"""A user with several jobs under way, and the check that in the end nothing is lost or doubled."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import psutil

from job_runner.protocol import documents, layout

from .. import notebooks
from ..local.cli import Cli
from ..processes import kill, processes, until
from .evidence import SUCCEEDED, Ending, Evidence, look, outcome
from .witness import Witness

CELLS, LINES = 3, 12
CAPACITY = "cpu=3,memory=64Gi"
MARK = "JUPYTER_TO_JOB_ATTEMPT"
_LINE = re.compile(r"<(\d+)\.(\d+)>")

COUNTS = """\
import time
for n in range({lines}):
    print(f"<{cell}.{{n}}>{beside}", flush=True)
    time.sleep({pause})
"""
_GATE = """\
import os, time
while not os.path.exists({path!r}):
    time.sleep(0.02)
"""
_BIG = 'from IPython.display import display\ndisplay({{"text/plain": "x" * {size}}}, raw=True)\n'


@dataclass
class Scene:
    """Jobs of one command line whose cells print numbered lines, and a witness of `list`.

    What is expected of a job at the end is kept by name: the endings that are right, and what it
    had printed at least. `rebooted`: temporary files of the time before are not ours to look for.
    """

    cli: Cli
    names: list[str] = field(default_factory=list)
    endings: dict[str, set[Ending]] = field(default_factory=dict)
    printed: dict[str, str] = field(default_factory=dict)
    sources: dict[Path, str] = field(default_factory=dict)
    rebooted: bool = False

    def __post_init__(self) -> None:
        self.cli.capacity = CAPACITY
        self.witness = Witness(self.cli)

    def directory(self, name: str) -> Path:
        return self.cli.exchange / name

    def look(self, name: str) -> Evidence:
        return look(self.directory(name))

    def write(
        self,
        stem: str,
        pause: float = 0.02,
        big: int = 0,
        beside: str = "",
        gate: Path | None = None,
    ) -> Path:
        """Write a notebook that counts; `big`: bytes of one more output in its second cell.

        `pause`: seconds after each line; `beside`: what stands in each line after its number;
        `gate`: the last cell prints nothing before this file is there.
        """
        cells = range(CELLS)
        sources = [COUNTS.format(cell=c, lines=LINES, pause=pause, beside=beside) for c in cells]
        if big:
            sources[1] += _BIG.format(size=big)
        if gate:
            sources[-1] = _GATE.format(path=str(gate)) + sources[-1]
        path = notebooks.write(self.cli.workspace / f"{stem}.ipynb", *sources)
        self.sources[path] = digest(path)
        return path

    def submit(self, count: int, stem: str = "job", **content: Any) -> list[str]:
        """Submit `count` jobs at once, each with a notebook of its own; return their names.

        From then on `list` is sampled.
        """
        paths = [self.write(f"{stem}{n}", **content) for n in range(count)]
        started = [self.cli.start("submit", path.name) for path in paths]
        names = []
        for process in started:
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, err
            names.append(out.strip())
        self.expect(names, SUCCEEDED)
        self.witness.start()
        return names

    def expect(self, names: list[str], *endings: Ending) -> None:
        """Keep which endings are right for these jobs."""
        self.names += [name for name in names if name not in self.names]
        self.endings.update({name: set(endings) for name in names})

    def must_keep(self, name: str) -> Evidence:
        """Look at a job, and keep what it has printed so far: its result must hold that."""
        seen = self.look(name)
        self.printed[name] = seen.printed
        return seen

    def runners(self, name: str) -> list[psutil.Process]:
        """Return the runner of a job, if it is a process."""
        return [p for p in processes("job_runner", self.directory(name)) if "run" in words(p)]

    def kernel(self, name: str) -> psutil.Process | None:
        """Return the kernel of a job, if it is a process that runs this very attempt."""
        pid = self.look(name).kernel
        return next((p for p in self.kernels() if p.pid == pid), None)

    def kernels(self) -> list[psutil.Process]:
        """Return every process that a kernel of this exchange is, or has started."""
        return [p for p in psutil.process_iter() if self._is_ours(p)]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get(MARK, "").startswith(str(self.cli.exchange))
        except psutil.Error:
            return False

    def kill_all(self, order: list[str]) -> None:
        """Kill dispatcher, runners and kernels, kinds in this order, until none is left."""
        exchange = self.cli.exchange
        kinds = {
            "dispatcher": lambda: processes("jupyter_to_job.dispatcher", exchange),
            "runner": lambda: processes("job_runner", exchange),
            "kernel": self.kernels,
        }
        while found := [p for kind in order for p in kinds[kind]()]:
            for process in found:
                kill(process)

    def settle(self) -> dict[str, dict[str, Any]]:
        """Wait for every job, and check all that is promised; return the jobs by name."""
        ran = self.cli.run("wait", *self.names, "--json")
        assert ran.returncode in (0, 1), ran.stderr
        answer = json.loads(ran.stdout)
        jobs = {job["name"]: job for job in (answer if isinstance(answer, list) else [answer])}
        for name in self.names:
            self._check(jobs[name])
        self.witness.stop()
        assert self.witness.untruths == []
        self._check_leftovers(jobs)
        return jobs

    def _check(self, job: dict[str, Any]) -> None:
        name = job["name"]
        ending = (job["state"], job["reason"])
        assert ending in self.endings[name], (ending, self.endings[name], job["message"])
        assert bool(job["message"]) == (job["state"] == "failed")
        assert layout.attempts(self.directory(name)) == [1]
        written = outcome(self.directory(name))
        if written["result_sha256"] is None:
            assert job["delivery"]["state"] == "none", job
            assert self.cli.results(name) == []
            assert self.printed.get(name, "") == ""
            return
        assert job["delivery"]["state"] == "delivered", job
        assert self.cli.results(name) == [Path(job["delivery"]["path"]).name]
        path = self.cli.result(job)
        delivery = documents.read_document(self.directory(name) / layout.DELIVERY)
        assert delivery is not None
        assert delivery["sha256"] == written["result_sha256"] == digest(path)
        self._check_result(job, path)

    def _check_result(self, job: dict[str, Any], path: Path) -> None:
        """The result holds what the journal held, in order, nothing doubled, and says why."""
        printed = notebooks.printed(path)
        assert printed.startswith(self.printed.get(job["name"], ""))
        found = [(int(c), int(n)) for c, n in _LINE.findall(printed)]
        whole = [(c, n) for c in range(CELLS) for n in range(LINES)]
        assert found == whole[: len(found)]
        if job["state"] == "succeeded":
            assert found == whole
        assert bool(notebooks.banner(path)) == (job["state"] != "succeeded")

    def _check_leftovers(self, jobs: dict[str, dict[str, Any]]) -> None:
        """No source changed, and nobody left half a file, a process or a socket behind."""
        for source, before in self.sources.items():
            assert digest(source) == before
        results = {self.cli.result(job) for job in jobs.values() if job["delivery"]["path"]}
        files = set(self.cli.workspace.rglob("*.ipynb"))
        assert files == set(self.sources) | results
        folders = [self.directory(name) for name in self.names]
        hidden = [h for f in [self.cli.workspace, *folders] for h in f.rglob(".*")]
        assert hidden == []
        for name in self.names:
            for document in self.directory(name).rglob("*.json"):
                assert documents.read_document(document), document
            for found in self.directory(name).rglob("*.ipynb"):
                nbformat.validate(nbformat.read(found, as_version=4))
            sockets = self.look(name).sockets
            assert sockets is None or self.rebooted or not Path(sockets).exists()
        until(lambda: not self.kernels(), "the end of every kernel")


def words(process: psutil.Process) -> list[str]:
    """Return a process's command line; empty once it is gone."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def digest(path: Path) -> str:
    """Return a file's sha256."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
