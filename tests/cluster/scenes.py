"""Jobs under way on the cluster, what can be done to them, and the check that nothing was lost."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

import nbformat.v4 as v4
import psutil

from tests.cluster.box.boot import A100, Box, is_ready
from tests.cluster.box.cluster import Cluster, KubectlError
from tests.cluster.box.wait import wait_for
from tests.cluster.controllers import until_served
from tests.cluster.product import HOME, KEPT, DevPod

COUNT = """\
import itertools, os, time
for number in itertools.count():
    print(number, flush=True)
    if os.path.exists("/tmp/go"):
        break
    time.sleep(0.1)
"""
SOME_MORE = 4
"""Numbers that a counting job has printed beyond those that are waited for."""
EAT_MEMORY = "eaten = [bytearray(b'x') * (32 << 20) for _ in range(64)]"
"""A cell that takes two gigabytes."""
FINAL = ("succeeded", "failed", "cancelled")
RUNNER, AGENT = b"job_runner", b"jupyter_to_job.agent"
"""What the command lines of a job pod's two processes show."""


def notebook(*cells: str) -> str:
    """Return a notebook with these cells; the first one has the parameters."""
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    code = [v4.new_code_cell(source) for source in cells]
    code[0].metadata["tags"] = ["parameters"]
    return json.dumps(v4.new_notebook(cells=code, metadata=metadata))


def text_of(document: Any) -> str:
    """Return all text that a notebook's cells have printed."""
    outputs = [o for cell in document["cells"] for o in cell.get("outputs", [])]
    return "".join("".join(o.get("text", "")) for o in outputs)


def submit(dev_pod: DevPod, path: str, *options: str) -> Any:
    """Submit and wait; the final job."""
    command = ("jupyter-to-job", "submit", path, "--wait", "--json", *options)
    return json.loads(dev_pod.run(*command, check=False))


def large_output(megabytes: int) -> tuple[str, ...]:
    """Return cells whose outputs have that size, three megabytes each."""
    show = "display({'text/plain': 'x' * 3_000_000}, raw=True)"
    return ("from IPython.display import display", f"for _ in range({megabytes // 3}): {show}")


def output_size(dev_pod: DevPod, job: Any) -> int:
    """Return how many characters the outputs of a delivered `large_output` have."""
    script = (
        "import json, sys\n"
        "cells = json.load(open(sys.argv[1]))['cells']\n"
        "outputs = [o for cell in cells for o in cell.get('outputs', [])]\n"
        "print(sum(len(''.join(o['data']['text/plain'])) for o in outputs))"
    )
    path = f"{HOME}/{job['delivery']['path'].rpartition('/')[2]}"
    return int(dev_pod.run("python3", "-c", script, path))


@dataclass(frozen=True)
class SubmittedJob:
    """A job of a dev pod."""

    dev_pod: DevPod
    name: str

    @classmethod
    def submit(
        cls, dev_pod: DevPod, stem: str, *options: str, cells: tuple[str, ...]
    ) -> SubmittedJob:
        """Write a notebook with these cells, and submit it."""
        script = 'printf %s "$1" > "$2"; shift; exec jupyter-to-job submit "$@"'
        path = f"{HOME}/{stem}.ipynb"
        command = ("sh", "-c", script, "sh", notebook(*cells), path)
        return cls(dev_pod, dev_pod.run(*command, *options).strip())

    @classmethod
    def counting(cls, dev_pod: DevPod, stem: str, *options: str) -> SubmittedJob:
        """Submit a notebook that prints 0, 1, 2 and so on until `let_end`."""
        return cls.submit(dev_pod, stem, *options, cells=(COUNT,))

    def job(self) -> Any:
        """Return it as `show --json` prints it."""
        return self.dev_pod.job(self.name)

    def log(self) -> str:
        """Return what `logs` prints: all that was journalled so far."""
        return self.dev_pod.run("jupyter-to-job", "logs", self.name, check=False)

    def printed(self) -> int:
        """Return how many numbers a counting job has printed, as `logs` tells it."""
        return len(numbers_in(self.log()))

    def until_printed(self, more_than: int = 0) -> int:
        """Wait until a counting job has printed more numbers than that; return how many at least.

        It waits for some more, so that there is something to lose.
        """
        last = more_than + SOME_MORE

        def is_there() -> bool:
            told = self._answer("/logs")
            return last in numbers_in(self.log() if told is None else told["text"])

        what = f"{self.name} has printed more than {more_than} numbers"
        wait_for(what, is_there, timeout=150)
        return last + 1

    def until(self, condition: Callable[[Any], bool]) -> Any:
        """Wait until the job, as `show --json` prints it, is so; return it."""
        latest: Any = None

        def is_so() -> bool:
            nonlocal latest
            glimpse = self._answer()
            if glimpse is not None and not condition(glimpse):
                return False
            latest = self.job()
            return condition(latest)

        wait_for(f"{self.name} is so", is_so)
        return latest

    def _answer(self, of: str = "") -> Any:
        """Return what the gateway answers the dev pod about the job, asked from this process.

        None where it cannot be: on another cluster, where the dev pod was replaced, or while the
        gateway is away.
        """
        if not isinstance(self.dev_pod.cluster, Box):
            return None
        with contextlib.suppress(OSError, HTTPException, ValueError, KubectlError):
            gateway = self.dev_pod.controller.url(self.dev_pod.box)
            headers = {"Authorization": f"Bearer {token_of(self.dev_pod)}"}
            asked = urllib.request.Request(f"{gateway}/api/jobs/{self.name}{of}", headers=headers)
            return json.load(urllib.request.urlopen(asked, timeout=10))
        return None

    def pods(self) -> list[Any]:
        """Return its pods."""
        label = f"jupyter-to-job.io/job={self.name}"
        return self.dev_pod.cluster.items("pods", self.dev_pod.namespace, label)

    def pod(self) -> str:
        """Return the name of its only pod."""
        (pod,) = self.pods()
        return str(pod["metadata"]["name"])

    def let_end(self, pod_name: str | None = None) -> None:
        """Let a counting job end, in its only pod if none is named."""
        if isinstance(self.dev_pod.cluster, Box) and pod_name is None:
            self.let_end_on_node()  # the shorter way
            return
        pod = ("-n", self.dev_pod.namespace, pod_name or self.pod(), "-c", "notebook")
        self.dev_pod.cluster.kubectl("exec", *pod, "--", "touch", "/tmp/go")

    def let_end_on_node(self) -> None:
        """Let a counting job end, without the API server."""
        Path(f"/proc/{self.process(RUNNER)}/root/tmp/go").touch()

    def process(self, of: bytes) -> int:
        """Return the process id of its runner or agent, as this machine counts them."""
        pid = find_process(of, self.name)
        assert pid is not None, f"{self.name} has no such process"
        return pid

    def kill(self, of: bytes) -> None:
        """Kill its runner or agent, the first process of a container, from outside."""
        os.kill(self.process(of), signal.SIGKILL)

    def prefer_runner_out_of_memory(self) -> None:
        """Have the machine kill the runner before its kernel, and with it the whole container.

        On cgroup v2 that is what happens anyway.
        """
        runner = psutil.Process(self.process(RUNNER))
        scores = {process.pid: 0 for process in runner.children(recursive=True)}
        for pid, score in {**scores, runner.pid: 1000}.items():
            Path(f"/proc/{pid}/oom_score_adj").write_text(str(score))

    def until_runner_ended(self) -> None:
        """Wait until its runner is no process of this machine any more."""
        wait_for(f"{self.name} has ended", lambda: find_process(RUNNER, self.name) is None)

    def until_ended(self, timeout: float = 150) -> Any:
        """Wait until its delivery is decided; return the job."""
        command = ("jupyter-to-job", "wait", self.name, "--json")
        return json.loads(self.dev_pod.run(*command, check=False, timeout=timeout))

    def check_delivered(self, job: Any, copies: int = 1) -> Any:
        """Check that there is one result, or as many as runs; return the one that is on record."""
        assert job["delivery"]["state"] == "delivered", job
        delivered = job["delivery"]["path"].rpartition("/")[2]
        script = f'cd {HOME} && ls && echo && cat "$1"'
        names, _, text = self.dev_pod.run("sh", "-c", script, "sh", delivered).partition("\n\n")
        found = [name for name in names.split() if name.startswith(self.name)]
        assert len(found) == copies, found
        assert delivered in found
        return json.loads(text)

    def check_counted(
        self, job: Any, reason: str | None, at_least: int = 0, *, copies: int = 1
    ) -> None:
        """Check how a counting job ended, and that its one result has each number once.

        `reason` None: it succeeded. `at_least` numbers had been printed before.
        """
        state = "succeeded" if reason is None else "failed"
        assert (job["state"], job["reason"]) == (state, reason), job
        assert job["message"] or reason is None
        numbers = numbers_in(text_of(self.check_delivered(job, copies)))
        assert numbers == list(range(len(numbers)))
        assert len(numbers) >= at_least


@functools.cache
def token_of(dev_pod: DevPod) -> str:
    """Return a dev pod's token for the gateway."""
    return dev_pod.run("cat", "/var/run/secrets/jupyter-to-job/token").strip()


def numbers_in(text: str) -> list[int]:
    """Return the lines that are a number."""
    return [int(line) for line in text.splitlines() if line.isdigit()]


def find_process(of: bytes, job: str) -> int | None:
    """Find the runner or agent of a job from outside of its container."""
    argument = f"/jupyter-to-job/{job}" if of == RUNNER else job
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                line = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if of in line and argument.encode() in line:
                return int(process.name)
    return None


def evict(cluster: Cluster, namespace: str, pod: str) -> None:
    """Evict a pod by the API, as a drain does."""
    metadata = {"name": pod, "namespace": namespace}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction"
    cluster.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))


def drain(cluster: Cluster, node: str, job: str) -> None:
    """Drain a node of the pods of a job; it takes new ones afterwards."""
    flags = ("--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s")
    selector = f"--pod-selector=jupyter-to-job.io/job={job}"
    try:
        cluster.kubectl("drain", node, selector, *flags, timeout=70)
    finally:
        cluster.kubectl("uncordon", node)


def delete_job(cluster: Cluster, namespace: str, job: str) -> None:
    """Delete the Job of a job by hand."""
    cluster.kubectl("delete", "job", job, "-n", namespace, "--wait=false")


@contextmanager
def without_api_server(dev_pod: DevPod) -> Iterator[None]:
    """Take the API server of the box away; afterwards it and the controller serve again."""
    cluster = dev_pod.cluster
    assert isinstance(cluster, Box)
    with cluster.without_api_server():
        try:
            cluster.kubectl("get", "nodes")
        except KubectlError as error:
            assert "refused" in str(error)
        else:
            raise AssertionError("the API server is still there")
        yield

    def is_reached() -> bool:
        try:
            cluster.kubectl("exec", "-n", dev_pod.namespace, dev_pod.name, "--", "true")
        except KubectlError:  # the kubelet may not have found it yet
            return False
        return True

    wait_for("dev pods are reached again", is_reached, timeout=60)
    until_served(dev_pod)


def keep_worker(box: Box) -> None:
    """Have the worker take no pods but those of pretend A100s."""
    box.kubectl("taint", "node", A100.name, f"{KEPT}=yes:NoSchedule")


def give_worker_back(box: Box) -> None:
    """Have it take all pods again."""
    box.kubectl("taint", "node", A100.name, f"{KEPT}-")


def until_worker_is_free(box: Box) -> None:
    """Wait until the worker takes all pods."""
    wait_for(
        "the worker takes pods",
        lambda: not box.get("node", A100.name)["spec"].get("taints"),
        timeout=280,
    )


@contextmanager
def without_worker(box: Box) -> Iterator[None]:
    """Cut the worker off for as long as the context lasts; it is Ready again after."""
    box.worker.cut_off()
    try:
        yield
    finally:
        box.worker.reconnect()
        wait_for("the worker is back", lambda: is_ready(box.get("node", A100.name)), timeout=90)


Outage = Callable[[DevPod], AbstractContextManager[None]]
"""`without_controller` or `without_api_server`."""


def check_outages(dev_pod: DevPod, *outages: tuple[Outage, float]) -> None:
    """Check that a run ends well during each outage, which lasts so many seconds, and one after."""
    goes_on, *ending = (
        SubmittedJob.counting(dev_pod, stem, "-f", "crowd")
        for stem in ("goes-on", *(f"ends-{number}" for number in range(len(outages))))
    )
    printed = {job: job.until_printed() for job in (goes_on, *ending)}
    for job, (outage, seconds) in zip(ending, outages, strict=True):
        with outage(dev_pod):
            over = time.monotonic() + seconds
            job.let_end_on_node()
            job.until_runner_ended()
            time.sleep(max(0.0, over - time.monotonic()))
        job.check_counted(job.until_ended(), None, printed[job])
    goes_on.let_end_on_node()
    goes_on.check_counted(goes_on.until_ended(), None, printed[goes_on])


def check_cut_off(
    box: Box, dev_pod: DevPod, leaves_from: str, stays_on: str, timeout: float
) -> None:
    """Check two jobs of a node that is cut off until the cluster gives up one of them.

    The pod that was given up runs on there, and what it sends later is not taken. The other job
    goes on when the node is back. Their devices differ in how long they tolerate a silent node.
    """
    stays, leaves = (
        SubmittedJob.counting(dev_pod, stem, "-f", "crowd-gpu", "-d", device)
        for stem, device in (("stays", stays_on), ("leaves", leaves_from))
    )
    printed = [job.until_printed() for job in (stays, leaves)]
    with without_worker(box):
        lost = leaves.until_ended(timeout)
        leaves.check_counted(lost, "NodeLost", printed[1])
        assert stays.job()["state"] == "running"
        journalled = leaves.log()
    wait_for("the pod that was given up is gone", lambda: not leaves.pods(), timeout=120)
    stays.let_end()
    stays.check_counted(stays.until_ended(), None, printed[0])
    assert {**leaves.job(), "events": None} == {**lost, "events": None}
    assert leaves.log() == journalled
    leaves.check_counted(lost, "NodeLost", printed[1])
