"""containerd, kubelet, kube-proxy and the pretend GPUs: one node that runs real containers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from string import Template

from tests.cluster.box.dns import DOMAIN
from tests.cluster.box.pki import Pki
from tests.cluster.box.sandbox import ProgramError, Sandbox
from tests.cluster.box.slot import Slot
from tests.cluster.box.wait import wait_for

GPU = "nvidia.com/gpu"
GPU_PRODUCT = "nvidia.com/gpu.product"
PAUSE_IMAGE = "docker.io/jupyter-to-job/pause:box"
SOCKET = "/run/containerd/containerd.sock"
# A quarter of it passes between two signs of life; the control plane's patience is twice as long.
LEASE_SECONDS = 10
DEVICE_PLUGINS = "/var/lib/kubelet/device-plugins/"
EVICTION_SIGNALS = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
)

CONTAINERD = Template("""\
version = 2
root = "$run_dir/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
address = "$socket"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "$pause"
disable_apparmor = true
# Where root lacks CAP_SYS_RESOURCE, runc fails on a score below the own one.
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "$run_dir/cni"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
""")


@dataclass(frozen=True)
class Hardware:
    """What a node is: its number (0 is beside the control plane), its name, and its GPUs."""

    number: int
    name: str
    gpu_product: str
    gpus: int


@dataclass(frozen=True)
class Node:
    """Starts the node's programs in a sandbox.

    `programs` is where they were built, `api_server` a URL, and `dns` the address of the server.
    `limits_cpu`: containers get no more of the processors than their limits.
    """

    hardware: Hardware
    sandbox: Sandbox
    slot: Slot
    programs: Path
    pki: Pki
    api_server: str
    dns: IPv4Address
    limits_cpu: bool

    @property
    def _run_dir(self) -> Path:
        return self.sandbox.run_dir

    def start_runtime(self) -> None:
        """containerd, until it answers; needs no API server."""
        network = self._run_dir / "cni"
        network.mkdir(exist_ok=True)
        (network / "10-box.conflist").write_text(json.dumps(self._pod_network()))
        config = self._run_dir / "containerd.toml"
        values = {"run_dir": self._run_dir, "socket": SOCKET, "pause": PAUSE_IMAGE}
        config.write_text(CONTAINERD.substitute(values))
        self.sandbox.start("containerd", ["containerd", "--config", str(config)])
        try:
            wait_for("containerd answers", self._runtime_answers)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.sandbox.tail('containerd')}") from None

    def _runtime_answers(self) -> bool:
        self.sandbox.check_running("containerd")
        try:
            self.sandbox.run(["ctr", "--address", SOCKET, "version"])
        except ProgramError:
            return False
        return True

    def load_image(self, archive: Path) -> None:
        """Import an OCI archive, with the names it carries."""
        command = ["ctr", "--address", SOCKET, "--namespace", "k8s.io"]
        self.sandbox.run([*command, "images", "import", str(archive)], timeout=300)

    def image_digest(self, name: str) -> str:
        """Return the digest of an image by its full name, as a registry would know it."""
        command = ["ctr", "--address", SOCKET, "--namespace", "k8s.io", "images", "ls"]
        lines = self.sandbox.run([*command, f"name=={name}"]).splitlines()
        (digest,) = (line.split()[2] for line in lines if line.startswith(f"{name} "))
        return digest

    def name_image(self, name: str, other: str) -> None:
        """Give an image another full name, also if that is another image's now."""
        command = ["ctr", "--address", SOCKET, "--namespace", "k8s.io", "images", "tag", "--force"]
        self.sandbox.run([*command, name, other])

    def start(self) -> None:
        """kubelet, kube-proxy and device plugin; the API server must be ready."""
        # containerd answers before it knows the containers that it had, and a kubelet that asks it
        # too early ends. It is started again, as systemd does.
        tries = 'for try in 1 2 3 4 5 6; do "$@"; sleep 2; done; exit 1'
        self.sandbox.start("kubelet", ["sh", "-c", tries, "sh", *self._kubelet()])
        self.sandbox.start("kube-proxy", self._proxy())
        plugin = [str(self.programs / "gpu-plugin"), f"--count={self.hardware.gpus}"]
        self.sandbox.start("gpu-plugin", [*plugin, f"--directory={DEVICE_PLUGINS}"])

    def _pod_network(self) -> dict[str, object]:
        bridge = {
            "type": "bridge",
            "bridge": "pods",
            "isGateway": True,
            "hairpinMode": True,  # a pod may reach itself through its Service
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": str(self.slot.pods_of(self.hardware.number))}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }
        return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}

    def _kubelet(self) -> list[str]:
        config = self._write("kubelet.json", self._kubelet_config())
        kubeconfig = self.pki.kubeconfig(
            self.hardware.name, self.api_server, self._run_dir / "kubelet.kubeconfig"
        )
        return [
            str(self.programs / "kubelet"),
            f"--config={config}",
            f"--kubeconfig={kubeconfig}",
            f"--hostname-override={self.hardware.name}",
            f"--node-ip={self.sandbox.cable.inner}",
            f"--node-labels={GPU_PRODUCT}={self.hardware.gpu_product}",
            f"--root-dir={self._run_dir / 'kubelet'}",
            f"--cert-dir={self._run_dir / 'kubelet-pki'}",
        ]

    def _kubelet_config(self) -> dict[str, object]:
        resolver = self._run_dir / "resolv.conf"
        resolver.write_text("# knows no names outside of the cluster\n")
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(self.pki.certificate("ca"))},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(self.pki.certificate(self.hardware.name)),
            "tlsPrivateKeyFile": str(self.pki.key(self.hardware.name)),
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": self.slot.make_cgroups(self.hardware.name),
            "clusterDNS": [str(self.dns)],
            "clusterDomain": DOMAIN,
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "resolvConf": str(resolver),
            "podLogsDir": str(self._run_dir / "pod-logs"),
            "failSwapOn": False,
            "failCgroupV1": False,
            # A full disk of the machine is no reason to evict pods, or images nobody can pull.
            "evictionHard": dict.fromkeys(EVICTION_SIGNALS, "0%"),
            "imageGCHighThresholdPercent": 100,
            # Else a start takes seconds of waiting for its share, of cores that have nothing to do.
            "cpuCFSQuota": self.limits_cpu,
            "nodeStatusUpdateFrequency": "5s",
            "nodeLeaseDurationSeconds": LEASE_SECONDS,
        }

    def _proxy(self) -> list[str]:
        kubeconfig = self.pki.kubeconfig(
            "kube-proxy", self.api_server, self._run_dir / "proxy.kubeconfig"
        )
        config: dict[str, object] = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "iptables",
            "clientConnection": {"kubeconfig": str(kubeconfig)},
            "clusterCIDR": str(self.slot.pod_network),
            "hostnameOverride": self.hardware.name,
            # Machine-wide values: not ours to set.
            "conntrack": {"maxPerCore": 0, "min": 0},
        }
        return [
            str(self.programs / "kube-proxy"),
            f"--config={self._write('kube-proxy.json', config)}",
        ]

    def _write(self, name: str, document: dict[str, object]) -> Path:
        path = self._run_dir / name
        path.write_text(json.dumps(document, indent=1))
        return path
