"""A whole cluster, as tests see it: boot, talk to it, load images, stop."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

from k8s.images import oci
from tests.cluster.box import packages, pki
from tests.cluster.box.control_plane import API_PORT, ControlPlane
from tests.cluster.box.node import NAME, PAUSE_IMAGE, Node
from tests.cluster.box.programs import build_programs
from tests.cluster.box.sandbox import Sandbox
from tests.cluster.box.slot import Slot
from tests.cluster.box.wait import wait_for

GPU = "nvidia.com/gpu"
HEALTHY_PROGRAMS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "containerd",
    "kubelet",
    "kube-proxy",
    "gpu-plugin",
)


class KubectlError(Exception):
    """kubectl ended with an error; the message is its standard error."""


class Cluster:
    """A running one-node cluster with pretend GPUs, made by `boot`; a context manager."""

    def __init__(self, sandbox: Sandbox, programs: Path, certificates: pki.Pki) -> None:
        self.run_dir = sandbox.run_dir
        self.sandbox = sandbox
        self.programs = programs
        self.ca_file = certificates.certificate("ca")
        self.api_url = f"https://{sandbox.slot.box_address}:{API_PORT}"
        self.host_address = str(sandbox.slot.host_address)
        self.kubeconfig = certificates.kubeconfig(
            "admin", self.api_url, self.run_dir / "admin.kubeconfig"
        )
        self.node = Node(sandbox, programs, certificates)
        self._stopped = False

    @classmethod
    def boot(cls, run_dir: Path, gpus: int = 2) -> Cluster:
        """A ready cluster: node Ready with its GPUs, default service account there.

        A fresh directory of the boot's own is made in `run_dir`. Builds the programs first if no
        earlier run did. Raises `MissingPackagesError`, `NoSlotError`, and, with the end of the
        log that tells why, `ProgramError` or `TimeoutError`.
        """
        packages.check()
        if os.geteuid() != 0:
            raise PermissionError("the test cluster needs root")
        programs = build_programs()
        slot = Slot.take()
        sandbox: Sandbox | None = None
        try:
            own = Path(tempfile.mkdtemp(prefix="box-", dir=run_dir.resolve()))
            slot.note_directory(own)
            # containerd's in memory as well: unpacking our images took 20 seconds on ext4, now 7.
            # The price: what a container writes outside of volumes counts as its memory.
            sandbox = Sandbox(own, slot, [own / "etcd", own / "containerd"])
            return cls._boot_in(sandbox, programs, gpus)
        except BaseException:
            if sandbox:
                sandbox.stop()
            slot.release()
            raise

    @classmethod
    def _boot_in(cls, sandbox: Sandbox, programs: Path, gpus: int) -> Cluster:
        slot = sandbox.slot
        names = ["127.0.0.1", str(slot.box_address), str(slot.service_network[1])]
        names += ["kubernetes.default.svc", "kubernetes.default", "localhost"]
        certificates = pki.create(sandbox.run_dir / "pki", names, NAME, str(slot.box_address))
        cluster = cls(sandbox, programs, certificates)
        with ThreadPoolExecutor(1) as pool:
            runtime = pool.submit(cluster._start_runtime)
            ControlPlane(sandbox, programs, certificates).start()
            runtime.result()
        cluster.node.start(gpus)
        cluster._await_ready(gpus)
        return cluster

    def _start_runtime(self) -> None:
        self.node.start_runtime()
        tree = self.run_dir / "pause"
        tree.mkdir()
        shutil.copy(self.programs / "pause", tree)
        layer = oci.layer_from_tree(self.run_dir / "pause-layer.tar", tree)
        archive = self.run_dir / "pause.tar"
        image = oci.Image(PAUSE_IMAGE, [layer], {"Entrypoint": ["/pause"]})
        oci.write_archive(archive, [image])
        self.node.load_image(archive)

    def _await_ready(self, gpus: int) -> None:
        def ready() -> bool:
            for name in HEALTHY_PROGRAMS:
                self.sandbox.check_running(name)
            try:
                node = self.get("node", NAME)
                self.get("serviceaccount", "default")
            except KubectlError:
                return False
            conditions = {c["type"]: c["status"] for c in node["status"]["conditions"]}
            return conditions.get("Ready") == "True" and (
                gpus == 0 or node["status"]["allocatable"].get(GPU) == str(gpus)
            )

        try:
            wait_for("the node is ready and has its GPUs", ready, timeout=60)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.sandbox.tail('kubelet')}") from None

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout: float = 60) -> str:
        """Run kubectl as the cluster's administrator; its standard output, or `KubectlError`."""
        flags = [f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.run_dir / 'kubectl'}"]
        answer = subprocess.run(
            [self.programs / "kubectl", *flags, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if answer.returncode:
            raise KubectlError(answer.stderr.strip())
        return answer.stdout

    def get(self, kind: str, name: str, namespace: str = "default") -> Any:
        """One object as decoded JSON; raises `KubectlError` where there is none."""
        return json.loads(self.kubectl("get", kind, name, f"--namespace={namespace}", "-o=json"))

    def apply(self, *manifests: object) -> None:
        """Server-side apply of decoded manifests."""
        items = {"apiVersion": "v1", "kind": "List", "items": manifests}
        self.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(items))

    def snapshot(self) -> str:
        """Jobs, pods, their latest output and events, for a reader of a failed test."""

        def ask(*arguments: str) -> str:
            try:
                return self.kubectl(*arguments, timeout=10)
            except (KubectlError, subprocess.TimeoutExpired) as error:
                return f"{error}\n"

        parts = [ask("get", "jobs,pods", "-A", "-o=wide"), ask("get", "events", "-A")]
        names = "{range .items[*]}{.metadata.namespace} {.metadata.name}{'\\n'}{end}"
        for line in ask("get", "pods", "-A", f"-o=jsonpath={names}").splitlines():
            namespace, _, name = line.partition(" ")
            logs = ask("logs", name, f"--namespace={namespace}", "--all-containers", "--tail=20")
            parts.append(f"--- logs of {line}\n{logs}")
        return "\n".join(parts)

    def load_image(self, archive: Path) -> None:
        """Make the images of an OCI archive known to the node, under the names they carry."""
        self.node.load_image(archive)

    def stop(self) -> None:
        """End the cluster and remove its files; a second call does nothing."""
        if self._stopped:
            return
        self._stopped = True
        self.sandbox.stop()
        self.sandbox.slot.release()
        shutil.rmtree(self.run_dir)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
