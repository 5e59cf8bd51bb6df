"""Our product on the test cluster: the controller as admins install it, and a dev pod."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.box.boot import T4, Box
from tests.cluster.box.cluster import Cluster
from tests.cluster.box.images import Images
from tests.cluster.box.node import PAUSE_IMAGE
from tests.cluster.box.volumes import NODE_LABEL
from tests.cluster.box.wait import wait_for

ROOT = Path(__file__).parents[2]
NAMESPACE = "jupyter-to-job"
GATEWAY = f"http://gateway.{NAMESPACE}.svc"
TEAM, RIVALS, LEAVING, LIMITED, HUB = LISTED = "team", "rivals", "leaving", "limited", "jhub"
"""The namespaces of dev pods that the controller serves."""
SHIPPED = "jupyter"
"""The namespace of dev pods in the overlay that is shipped."""
HOME = "/home/jovyan"
KEPT = "example.org/kept"
"""The taint of a node that takes jobs of pretend A100s only."""
CONTROLLER = "--selector=app.kubernetes.io/name=jupyter-to-job-controller"
"""The flag of kubectl that selects the controller's pods."""
FLAVORS = f"""
apiVersion: jupyter-to-job.io/v1
default: {{flavor: small, device: cpu}}
x-small: &small {{cpu: 200m, memory: 512Mi, max_runtime: 10m, devices: [cpu]}}
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
"""Eight small jobs at a time have room on one of the nodes, which has a machine's two cores."""
NOWHERE = {"flavor": "gpu-1", "device": "nowhere"}
"""For jobs that find no node, and wait."""


POD_PATCH = """
spec:
  containers: [{name: notebook, env: [{name: OF_THE_PATCH, value: "yes"}]}]
"""
"""What this cluster's administrator adds to the pods of jobs."""


def install(cluster: Cluster, images: Images) -> None:
    """Apply the overlay as it is shipped, but for image, catalog and namespaces of dev pods."""
    manifests = [m for m in _shipped(cluster) if m["metadata"].get("namespace") != SHIPPED]
    by_kind = {m["kind"]: m for m in manifests}
    cluster.apply(by_kind["Namespace"])
    for namespace in LISTED:
        add_namespace(cluster, namespace)
    by_kind["ConfigMap"]["data"] = {"flavors.yaml": FLAVORS, "pod-patch.yaml": POD_PATCH}
    (container,) = by_kind["Deployment"]["spec"]["template"]["spec"]["containers"]
    container["image"] = images.controller
    for variable in container["env"]:
        if variable["name"] == "JUPYTER_TO_JOB_AGENT_IMAGE":
            variable["value"] = images.controller
        if variable["name"] == "JUPYTER_TO_JOB_NAMESPACES":
            variable["value"] = ",".join(LISTED)
    container["env"] += [
        {"name": "JUPYTER_TO_JOB_START_LIMITS", "value": "image=1s"},
        {"name": "JUPYTER_TO_JOB_POD_PATCH", "value": "/etc/jupyter-to-job/pod-patch.yaml"},
        {"name": "JUPYTER_TO_JOB_VARIABLES", "value": "DATA_ROOT,configmap/settings"},
    ]
    if isinstance(cluster, Box):  # where nobody provisions volumes
        cluster.add_volume("exchange", "ReadWriteOnce", claim=f"{NAMESPACE}/exchange", node=T4.name)
    cluster.apply(*(manifest for manifest in manifests if manifest["kind"] != "Namespace"))
    flags = ("--namespace", NAMESPACE, "--timeout=90s")
    cluster.kubectl("rollout", "status", "deployment/controller", *flags, timeout=100)


def _shipped(cluster: Cluster) -> list[Any]:
    """Return the manifests of the overlay that is shipped."""
    overlay = ROOT / "k8s" / "overlays" / "one-namespace"
    return list(yaml.safe_load_all(cluster.kubectl("kustomize", str(overlay))))


def add_namespace(cluster: Cluster, name: str) -> None:
    """Make a namespace for dev pods, in which the controller has its rights."""
    cluster.apply(_namespace(name))
    rights = [m for m in _shipped(cluster) if m["metadata"].get("namespace") == SHIPPED]
    cluster.apply(*({**m, "metadata": {**m["metadata"], "namespace": name}} for m in rights))


def _namespace(name: str) -> dict[str, Any]:
    """Return a namespace for dev pods that enforces the strictest Pod Security."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


@dataclass(frozen=True)
class DevPod:
    """A dev pod: no GPU, no rights in the cluster, a token for the gateway."""

    cluster: Cluster
    namespace: str
    name: str

    def run(self, *command: str, check: bool = True, timeout: float = 150) -> str:
        """Run a command in the pod and return what it printed on stdout.

        Without `check` its exit code does not count. `timeout` is in seconds.
        """
        if not check:
            command = ("sh", "-c", '"$@"; exit 0', "sh", *command)
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
) -> DevPod:
    """Start a dev pod in a namespace that enforces the strictest Pod Security.

    The claim is mounted at `work` in the home directory. `cpu` is its share on a busy machine.
    """
    cluster.apply(_namespace(namespace))
    wait_for(
        "the namespace has its service account",
        lambda: "default" in cluster.kubectl("get", "serviceaccounts", "-n", namespace, "-o=name"),
    )
    pod = dev_pod_manifest(images, namespace, name, user, claim)
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return start_pod(cluster, pod)


def start_pod(cluster: Cluster, pod: dict[str, Any]) -> DevPod:
    """Start a dev pod of a manifest, and wait until it is ready."""
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    if isinstance(cluster, Box):  # of which tests take the other node away
        pod["spec"]["nodeSelector"] = {NODE_LABEL: T4.name}
    cluster.apply(pod)
    ready = ("--for=condition=Ready", "--timeout=120s")
    cluster.kubectl("wait", f"pod/{name}", "-n", namespace, *ready, timeout=130)
    return DevPod(cluster, namespace, name)


def dev_pod_manifest(
    images: Images, namespace: str, name: str, user: str, claim: str | None = None
) -> dict[str, Any]:
    """Return a dev pod that says whose it is, and has a token for the gateway and no other."""
    token = {"audience": "jupyter-to-job", "expirationSeconds": 3600, "path": "token"}
    container: dict[str, Any] = {
        "name": "notebook",
        "image": images.notebook,
        "command": ["sleep", "3600"],
        "env": [
            {"name": "JUPYTER_TO_JOB_GATEWAY", "value": GATEWAY},
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
