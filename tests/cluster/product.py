"""Our product on the test cluster: the controller as admins install it, and a dev pod."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from jupyter_to_job.exchange import FileExchange
from tests.cluster.box.boot import T4, Box
from tests.cluster.box.cluster import Cluster
from tests.cluster.box.images import Images
from tests.cluster.box.inside import Container
from tests.cluster.box.node import PAUSE_IMAGE
from tests.cluster.box.volumes import NODE_LABEL
from tests.cluster.box.wait import wait_for

ROOT = Path(__file__).parents[2]
DEVICE_COUNTS = ROOT / "k8s" / "components" / "device-counts"
NAMESPACE = "jupyter-to-job"
TEAM, RIVALS, LEAVING, LIMITED, HUB = LISTED = "team", "rivals", "leaving", "limited", "jhub"
"""The namespaces of dev pods that the controller serves."""
LATER = "later"
"""One more that it serves, which does not exist when the controller begins."""
DEV_PODS = "jupyter-to-job.io/dev-pods"
"""The label of namespaces of dev pods."""
HOME = "/home/jovyan"
KEPT = "node.kubernetes.io/kept"
"""The taint of a node that takes jobs of pretend A100s only.

Its prefix is that of taints that pass, as a cordoned node's: the plan of a job does not depend on
it. Else the plan would change between a dialog and its SEND when the node is given back.
"""
FLAVORS = f"""
apiVersion: jupyter-to-job.io/v1
default: {{flavor: small, device: cpu}}
x-small: &small {{cpu: 100m, memory: 512Mi, max_runtime: 10m, devices: [cpu]}}
x-gpu: &gpu
  <<: *small
  gpus: 1
  shm: 64Mi
  devices: [any, t4, a100, h100, impatient, steadfast, nowhere]
flavors:
  small: {{<<: *small, title: Small, description: Quick checks}}
  patient: {{<<: *small, retries: 1}}
  no-image: {{<<: *small, image: "jupyter-to-job/missing:1"}}
  without-us: {{<<: *small, image: "{Images.python}"}}
  unconfined:  # Pod Security refuses its pods
    <<: *small
    annotations: {{container.apparmor.security.beta.kubernetes.io/notebook: unconfined}}
  without-python: {{<<: *small, image: "{PAUSE_IMAGE}"}}
  gpu-1: {{<<: *gpu, title: One GPU, description: Training on one whole GPU}}
  crowd: {{<<: *small}}
  crowd-gpu: &crowd-gpu {{<<: *gpu}}
  crowd-gpus: {{<<: *crowd-gpu, gpus: 2}}
  crowd-many: {{<<: *crowd-gpu, gpus: 8}}
  urgent: {{<<: *crowd-gpu, priority_class: urgent}}
  queued: {{<<: *small, queue: of-gpus}}  # Kueue is not installed
devices:
  cpu: {{title: CPU}}
  any: {{title: Any GPU, resource: nvidia.com/gpu, isolation: full}}
  t4:
    title: NVIDIA T4
    resource: nvidia.com/gpu
    node_selector: {{nvidia.com/gpu.product: Tesla-T4}}
  a100:
    title: NVIDIA A100
    resource: nvidia.com/gpu
    node_selector: &a100 {{nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB}}
    tolerations: [&kept {{key: {KEPT}, operator: Exists, effect: NoSchedule}}]
  h100:
    title: NVIDIA H100
    resource: nvidia.com/gpu
    node_selector: {{nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}
  impatient:
    title: The same A100, and the job leaves it soon after it went away
    resource: nvidia.com/gpu
    node_selector: *a100
    tolerations:
      - &soon {{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute,
               tolerationSeconds: 2}}
      - {{<<: *soon, key: node.kubernetes.io/not-ready}}
      - *kept
  steadfast:
    title: The same A100, and the job never leaves it
    resource: nvidia.com/gpu
    node_selector: *a100
    tolerations: [{{operator: Exists, effect: NoExecute}}]
  nowhere:
    title: A GPU that no node has
    resource: nvidia.com/gpu
    node_selector: {{nvidia.com/gpu.product: none}}
"""
"""Ten small jobs at a time have room on a node, which has a machine's two cores."""
NOWHERE = {"flavor": "gpu-1", "device": "nowhere"}
"""For jobs that find no node, and wait."""


POD_PATCH = """
spec:
  containers: [{name: notebook, env: [{name: OF_THE_PATCH, value: "yes"}]}]
"""
"""What this cluster's administrator adds to the pods of jobs."""
SETTINGS = {
    "JUPYTER_TO_JOB_START_LIMITS": "image=20s",  # a test cancels a job meanwhile
    "JUPYTER_TO_JOB_POD_PATCH": "/etc/jupyter-to-job/pod-patch.yaml",
    "JUPYTER_TO_JOB_VARIABLES": "DATA_ROOT,configmap/settings",
    "JUPYTER_TO_JOB_UNPINNED_IMAGES": "true",  # ours come from no registry
}
"""The controller's settings here."""


def install(cluster: Cluster, images: Images) -> None:
    """Install as docs/install.md says, for the listed namespaces of dev pods."""
    for namespace in LISTED:
        cluster.apply(namespace_manifest(namespace))
    if isinstance(cluster, Box):  # where nobody provisions volumes
        cluster.add_volume("exchange", "ReadWriteOnce", claim=f"{NAMESPACE}/exchange", node=T4.name)
    apply(cluster, images)


def apply(cluster: Cluster, images: Images, components: Sequence[str] = ()) -> None:
    """Apply our overlay, and wait until its controller serves."""
    with tempfile.TemporaryDirectory() as folder:
        cluster.kubectl("apply", "-k", str(write_overlay(Path(folder), images, components)))
    flags = ("--namespace", NAMESPACE, "--timeout=90s")
    cluster.kubectl("rollout", "status", "deployment/controller", *flags, timeout=100)


def write_overlay(folder: Path, images: Images, components: Sequence[str] = ()) -> Path:
    """Write a copy of k8s/ in which k8s/site is ours, and the overlay has our namespaces.

    `components` are what k8s/site includes besides the count of devices.
    """
    k8s = shutil.copytree(ROOT / "k8s", folder / "k8s")
    site, overlay = k8s / "site", k8s / "overlays" / "one-namespace"
    (site / "flavors.yaml").write_text(FLAVORS)
    (site / "pod-patch.yaml").write_text(POD_PATCH)
    with _edited(site / "kustomization.yaml") as kustomization:
        (image,) = kustomization["images"]
        image["newName"], _, image["newTag"] = images.controller.rpartition(":")
        kustomization["configMapGenerator"][0]["files"] = ["flavors.yaml", "pod-patch.yaml"]
        kustomization["components"] = ["../components/device-counts", *components]
    with _edited(site / "controller.yaml") as deployment:
        add_variables(deployment, SETTINGS)
    with _edited(overlay / "namespaces.yaml") as deployment:
        add_variables(deployment, {"JUPYTER_TO_JOB_NAMESPACES": ",".join((*LISTED, LATER))})
    with _edited(overlay / "kustomization.yaml") as kustomization:
        kustomization["resources"].remove("dev-namespace")
        kustomization["resources"] += LISTED
    for namespace in LISTED:
        shutil.copytree(overlay / "dev-namespace", overlay / namespace)
        with _edited(overlay / namespace / "kustomization.yaml") as kustomization:
            kustomization["namespace"] = namespace
    return overlay


def add_variables(deployment: Any, variables: Mapping[str, str]) -> None:
    """Set variables of the controller, in place of those of the same name."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    kept = [entry for entry in container["env"] if entry["name"] not in variables]
    container["env"] = kept + [{"name": n, "value": v} for n, v in variables.items()]


@contextmanager
def _edited(path: Path) -> Iterator[Any]:
    """Yield a file's document, and write what has become of it."""
    document = yaml.safe_load(path.read_text())
    yield document
    path.write_text(yaml.safe_dump(document))


def add_namespace(cluster: Cluster, name: str) -> None:
    """Make a namespace for dev pods, in which the controller has its rights."""
    cluster.apply(namespace_manifest(name))
    rights = yaml.safe_load_all(cluster.kubectl("kustomize", str(ROOT / "k8s" / "dev-namespace")))
    cluster.apply(*({**m, "metadata": {**m["metadata"], "namespace": name}} for m in rights))


def namespace_manifest(name: str) -> dict[str, Any]:
    """Return a namespace for dev pods: no devices but in jobs, and the strictest Pod Security."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted", DEV_PODS: "true"}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


@dataclass(frozen=True)
class Controller:
    """A controller of the cluster; others than the first one have a name (`controllers.py`)."""

    name: str = ""

    def own(self, kind: str) -> str:
        """Return the name of what the first controller has under the name of `kind`."""
        return f"{kind}-{self.name}" if self.name else kind

    @property
    def deployment(self) -> tuple[str, ...]:
        """The words of a command of kubectl that name its Deployment."""
        return (f"deployment/{self.own('controller')}", "-n", NAMESPACE)

    @property
    def pods(self) -> tuple[str, ...]:
        """The words of a command of kubectl that select its pods."""
        return (f"--selector={self.label}", "-n", NAMESPACE)

    @property
    def label(self) -> str:
        """The label of its pods."""
        return f"app.kubernetes.io/name={self.own('jupyter-to-job-controller')}"

    @property
    def gateway(self) -> str:
        """The gateway's address for pods."""
        return f"http://{self.own('gateway')}.{NAMESPACE}.svc"

    def url(self, box: Box) -> str:
        """Return its gateway's address for this machine, which knows no names of Services.

        A Service that is made again has another one.
        """
        service: Any = box.get("service", self.own("gateway"), NAMESPACE)
        return f"http://{service['spec']['clusterIP']}"

    def exchange(self, box: Box) -> FileExchange:
        """Return its exchange, which is a volume of the box."""
        return FileExchange(box.run_dir / "volumes" / self.own("exchange"), is_private=False)


FIRST = Controller()


@dataclass(frozen=True)
class DevPod:
    """A dev pod: no GPU, no rights in the cluster, a token for the gateway of its controller.

    Its commands have these further `variables`.
    """

    cluster: Cluster
    namespace: str
    name: str
    variables: Mapping[str, str] = field(default_factory=dict, hash=False)
    controller: Controller = FIRST

    @property
    def box(self) -> Box:
        """The cluster, where it is the box."""
        assert isinstance(self.cluster, Box)
        return self.cluster

    def run(self, *command: str, check: bool = True, timeout: float = 150) -> str:
        """Run a command in the pod and return what it printed on stdout.

        Without `check` its exit code does not count. `timeout` is in seconds.
        """
        settings = (f"{name}={value}" for name, value in self.variables.items())
        command = ("env", *settings, *command)
        if not check:
            command = ("sh", "-c", '"$@"; exit 0', "sh", *command)
        if isinstance(self.cluster, Box):
            pod = self.cluster.get("pod", self.name, self.namespace)
            return Container.of(pod).run(command, timeout)
        pod = ("-n", self.namespace, self.name)
        return self.cluster.kubectl("exec", *pod, "--", *command, timeout=timeout)

    def write(self, path: str, text: str) -> None:
        """Write a file below the home directory."""
        # As an argument: what `kubectl exec` is given on stdin may be cut when it is short.
        script = f'mkdir -p $(dirname {path}); printf %s "$1" > {path}'
        self.run("sh", "-c", script, "sh", text)

    def read_json(self, path: str) -> Any:
        """Return a JSON file below the home directory."""
        return json.loads(self.run("cat", path))

    def job(self, name: str) -> Any:
        """Return a job as `show --json` prints it."""
        return json.loads(self.run("jupyter-to-job", "show", name, "--json"))


def add_claim(cluster: Cluster, name: str, folder: Path, namespace: str = TEAM) -> None:
    """Add a claim whose volume is a folder of the node, writable for every user."""
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    size = {"storage": "1Gi"}
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeMode": "Filesystem"}
    volume = {**common, "capacity": size, "hostPath": {"path": str(folder)}}
    claim = {**common, "resources": {"requests": size}, "volumeName": name}
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": volume,
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": claim,
        },
    )


def start_dev_pod(
    cluster: Cluster,
    images: Images,
    namespace: str = TEAM,
    name: str = "jupyter-ada",
    claim: str | None = None,
    user: str = "ada",
    cpu: str = "20m",
    controller: Controller = FIRST,
) -> DevPod:
    """Start a dev pod in a namespace that enforces the strictest Pod Security.

    The claim is mounted at `work` in the home directory. `cpu` is what its server may count on.
    """
    cluster.apply(namespace_manifest(namespace))
    wait_for(
        "the namespace has its service account",
        lambda: has_account(cluster, namespace),
    )
    pod = dev_pod_manifest(images, namespace, name, user, claim, controller)
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return start_pod(cluster, pod, controller)


def has_account(cluster: Cluster, namespace: str) -> bool:
    """Tell whether a namespace has the service account that its pods get."""
    accounts = cluster.items("serviceaccounts", namespace)
    return "default" in [account["metadata"]["name"] for account in accounts]


def start_pod(cluster: Cluster, pod: dict[str, Any], controller: Controller = FIRST) -> DevPod:
    """Start a dev pod of a manifest, and wait until it is ready."""
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    if isinstance(cluster, Box):  # of which tests take the other node away
        pod["spec"]["nodeSelector"] = {NODE_LABEL: T4.name}
    cluster.apply(pod)
    cluster.until_ready(name, namespace)
    return DevPod(cluster, namespace, name, controller=controller)


def dev_pod_manifest(
    images: Images,
    namespace: str,
    name: str,
    user: str,
    claim: str | None = None,
    controller: Controller = FIRST,
) -> dict[str, Any]:
    """Return a dev pod that says whose it is, and has a token for the gateway and no other."""
    token = {"audience": "jupyter-to-job", "expirationSeconds": 3600, "path": "token"}
    container: dict[str, Any] = {
        "name": "notebook",
        "image": images.notebook,
        "command": ["sleep", "3600"],
        "env": [
            {"name": "JUPYTER_TO_JOB_GATEWAY", "value": controller.gateway},
            {"name": "JUPYTERHUB_API_TOKEN", "value": "secret-of-the-hub"},
        ],
        "resources": {"requests": {"cpu": "20m"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/jupyter-to-job"}],
    }
    pod: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "fsGroup": 100,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "terminationGracePeriodSeconds": 0,
        "volumes": [
            {"name": "token", "projected": {"sources": [{"serviceAccountToken": token}]}},
        ],
    }
    if claim is not None:
        source = {"persistentVolumeClaim": {"claimName": claim}}
        pod["volumes"].append({"name": "work", **source})
        container["volumeMounts"].append({"name": "work", "mountPath": f"{HOME}/work"})
    metadata = {
        "name": name,
        "namespace": namespace,
        "annotations": {"hub.jupyter.org/username": user},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}
