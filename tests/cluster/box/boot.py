"""The box: a whole cluster that is booted for the tests and gone after them."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from tests.cluster.box import pki
from tests.cluster.box.audit import AuditLog
from tests.cluster.box.cluster import Cluster, KubectlError
from tests.cluster.box.control_plane import ControlPlane
from tests.cluster.box.dns import Dns
from tests.cluster.box.node import GPU, PAUSE_IMAGE, Hardware, Node
from tests.cluster.box.programs import build_programs
from tests.cluster.box.requirements import CannotRunError, check
from tests.cluster.box.sandbox import Sandbox
from tests.cluster.box.slot import Slot
from tests.cluster.box.volumes import Volume
from tests.cluster.box.wait import wait_for
from tests.cluster.box.worker import Worker
from tests.cluster.imagebuild import oci

T4 = Hardware(0, "node-t4", "Tesla-T4", gpus=2)
A100 = Hardware(1, "node-a100", "NVIDIA-A100-SXM4-40GB", gpus=2)

# Bytes: the path of a socket may have 107, and the kubelets append 58 to this one.
MAX_RUN_DIR = 49


class Box(Cluster):
    """A running cluster of two nodes with pretend GPUs, made by `boot`; a context manager.

    The control plane shares a sandbox with the node `T4`. The node `A100` is a `worker`, which
    can be cut off or stopped.
    """

    def __init__(self, sandbox: Sandbox, slot: Slot, programs: Path, *, limits_cpu: bool) -> None:
        """Prepare everything in a sandbox, and the worker's inside of it; nothing runs yet."""
        self.run_dir = run_dir = sandbox.run_dir
        self.sandbox = sandbox
        self.slot = slot
        self.programs = programs
        self._limits_cpu = limits_cpu
        self.host_address = str(self.sandbox.cable.outer)
        self.pki = self._create_pki()
        self.ca_file = self.pki.certificate("ca")
        self.audit = AuditLog(run_dir / "audit")
        self.control_plane = ControlPlane(self.sandbox, slot, programs, self.pki, self.audit)
        self.api_url = self.control_plane.url
        self.dns = Dns(self.sandbox, programs, self.pki)
        self.node = self._make_node(T4, self.sandbox)
        self.worker = Worker(
            lambda: Sandbox(
                run_dir / A100.name,
                slot.cable(A100.number),
                [slot.pods_of(A100.number)],
                inside=self.sandbox,
            ),
            lambda sandbox: self._make_node(A100, sandbox),
        )
        kubeconfig = self.pki.kubeconfig("admin", self.api_url, run_dir / "admin.kubeconfig")
        super().__init__(programs / "kubectl", kubeconfig, run_dir / "kubectl")

    def _create_pki(self) -> pki.Pki:
        addresses = ["127.0.0.1", str(self.sandbox.cable.inner), str(self.slot.service_network[1])]
        names = ["kubernetes.default.svc", "kubernetes.default", "localhost"]
        nodes = {each.name: self.slot.cable(each.number).inner for each in (T4, A100)}
        return pki.create(self.run_dir / "pki", addresses + names, nodes)

    def _make_node(self, hardware: Hardware, sandbox: Sandbox) -> Node:
        return Node(
            hardware,
            sandbox,
            self.slot,
            self.programs,
            self.pki,
            self.api_url,
            self.dns.address,
            self._limits_cpu,
        )

    @property
    def nodes(self) -> tuple[Node, Node]:
        """Both."""
        return (self.node, self.worker.node)

    @classmethod
    def boot(cls, run_dir: Path, *, limits_cpu: bool = False) -> Box:
        """A ready cluster: nodes Ready with their GPUs, DNS and default service account there.

        A fresh directory of the boot's own is made in `run_dir`. Builds the programs first if no
        earlier run did. Containers may use all of the machine's cores, unless it `limits_cpu`.
        Raises `CannotRunError`, `NoSlotError`, and, with the end of the log that tells why,
        `ProgramError` or `TimeoutError`.
        """
        check()
        if len(os.fsencode(run_dir.resolve())) > MAX_RUN_DIR:
            raise CannotRunError(f"{run_dir} is too long for sockets: set TMPDIR to a shorter path")
        programs = build_programs()
        slot = Slot.take()
        own = Path(tempfile.mkdtemp(prefix="box-", dir=run_dir.resolve()))
        slot.note_directory(own)
        sandbox: Sandbox | None = None
        try:
            sandbox = _first_sandbox(own, slot)
            box = cls(sandbox, slot, programs, limits_cpu=limits_cpu)
            box._start()
        except BaseException:
            if sandbox:
                sandbox.stop()
            slot.release()
            raise
        return box

    def _start(self) -> None:
        archive = self._pause_archive()

        def start_runtime(node: Node) -> None:
            node.start_runtime()
            node.load_image(archive)

        with ThreadPoolExecutor(2) as pool:
            runtimes = pool.map(start_runtime, self.nodes)
            self.control_plane.start()
            self.dns.start(self.api_url)
            list(runtimes)
        for node in self.nodes:
            node.start()
        try:
            wait_for("the nodes are ready and have their GPUs", self._is_ready, timeout=60)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.sandbox.tail('kubelet')}") from None

    def _pause_archive(self) -> Path:
        tree = self.run_dir / "pause"
        tree.mkdir()
        shutil.copy(self.programs / "pause", tree)
        layer = oci.layer_from_tree(self.run_dir / "pause-layer.tar", tree)
        archive = self.run_dir / "pause.tar"
        oci.write_archive(archive, [oci.Image(PAUSE_IMAGE, [layer], {"Entrypoint": ["/pause"]})])
        return archive

    def _is_ready(self) -> bool:
        for node in self.nodes:
            node.sandbox.check_all_running()
        try:
            self.get("serviceaccount", "default")
            found = [self.get("node", node.hardware.name) for node in self.nodes]
        except KubectlError:
            return False
        gpus = [node["status"]["allocatable"].get(GPU) for node in found]
        expected = [str(node.hardware.gpus) for node in self.nodes]
        return all(map(is_ready, found)) and gpus == expected and self.dns.is_ready()

    def load_image(self, archive: Path) -> None:
        """Make the images of an OCI archive known to all nodes, under the names they carry."""
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda node: node.load_image(archive), self.nodes))

    def add_volume(
        self,
        name: str,
        *access_modes: str,
        claim: str | None = None,
        node: str | None = None,
        size: str | None = None,
    ) -> Volume:
        """Make a volume, for a claim (`NAMESPACE/NAME`) or any; on one node, or shared by all.

        Its folder outlives the claim, the volume, and the loss of a node's power. One of a `size`
        (`64m`) can be filled up. It is on one node, in memory, and the host does not see into it.
        """
        folder = self.run_dir / "volumes" / name
        folder.mkdir(parents=True)
        folder.chmod(0o777)  # a shared one is nobody's: no pod changes its owner
        if size:
            (place,) = (each for each in self.nodes if each.hardware.name == node)
            options = f"size={size},mode=0777"
            place.sandbox.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)])
        volume = Volume(name, folder, access_modes, claim, node)
        self.apply(volume.manifest())
        return volume

    @contextmanager
    def without_api_server(self) -> Iterator[None]:
        """Take the API server away for as long as the context lasts; it is ready again after."""
        self.control_plane.kill_api_server()
        try:
            yield
        finally:
            self.control_plane.start_api_server()

    @contextmanager
    def without_controller_manager(self) -> Iterator[None]:
        """Stop Kubernetes' own controllers for as long as the context lasts; they go on after."""
        name = "kube-controller-manager"
        self.sandbox.send_signal(name, signal.SIGSTOP)
        try:
            yield
        finally:
            self.sandbox.send_signal(name, signal.SIGCONT)

    def stop(self) -> None:
        """End the cluster and remove its files."""
        self.sandbox.stop()
        self.slot.release()
        shutil.rmtree(self.run_dir)

    def __enter__(self) -> Box:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def is_ready(node: dict[str, dict[str, list[dict[str, str]]]]) -> bool:
    """Tell whether a Node object has the condition `Ready`."""
    conditions = {each["type"]: each["status"] for each in node["status"].get("conditions", [])}
    return conditions.get("Ready") == "True"


def _first_sandbox(run_dir: Path, slot: Slot) -> Sandbox:
    # containerd's in memory as well: unpacking our images took 20 seconds on ext4, now 7.
    # The price: what a container writes outside of volumes counts as its memory.
    # The worker's is mounted here, too, so that it outlives the worker's sandbox.
    memory = [run_dir / "etcd", run_dir / "containerd", run_dir / A100.name / "containerd"]
    return Sandbox(
        run_dir,
        slot.cable(T4.number),
        [slot.cable_network, slot.pod_network, slot.service_network],
        memory_directories=memory,
        lock=slot.lock,
    )
