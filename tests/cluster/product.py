"""Our product on the test cluster: the controller as admins install it, and a dev pod."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.box.cluster import Cluster
from tests.cluster.box.images import Images
from tests.cluster.box.wait import wait_for

ROOT = Path(__file__).parents[2]
NAMESPACE = "jupyter-to-job"
TEAM = "team"
HOME = "/home/jovyan"
FLAVORS = textwrap.dedent("""
    apiVersion: jupyter-to-job.io/v1
    default: {flavor: small, device: cpu}
    flavors:
      small: {cpu: 500m, memory: 512Mi, max_runtime: 10m, devices: [cpu]}
      gpu-1: {cpu: 500m, memory: 512Mi, gpus: 1, shm: 64Mi, max_runtime: 10m, devices: [nvidia]}
    devices:
      cpu: {title: CPU}
      nvidia: {title: Pretend GPU, resource: nvidia.com/gpu, isolation: full}
""")


def install(cluster: Cluster, images: Images) -> None:
    """Apply k8s/base as it is shipped, but for the image, the storage and the gateway's address."""
    shipped = cluster.kubectl("kustomize", str(ROOT / "k8s" / "base"))
    manifests = [m for m in yaml.safe_load_all(shipped) if m["kind"] != "PersistentVolumeClaim"]
    by_kind = {m["kind"]: m for m in manifests}
    cluster.apply(by_kind["Namespace"])
    by_kind["ConfigMap"]["data"]["flavors.yaml"] = FLAVORS
    cluster.apply(*(m for m in manifests if m["kind"] != "Deployment"))
    address = cluster.get("service", "gateway", NAMESPACE)["spec"]["clusterIP"]
    pod = by_kind["Deployment"]["spec"]["template"]["spec"]
    pod["volumes"][0] = {"name": "exchange", "emptyDir": {}}  # no storage classes here
    container = pod["containers"][0]
    container["image"] = images.controller
    for variable in container["env"]:  # and no DNS
        if variable["name"] == "JUPYTER_TO_JOB_GATEWAY_URL":
            variable["value"] = f"http://{address}"
        if variable["name"] == "JUPYTER_TO_JOB_AGENT_IMAGE":
            variable["value"] = images.controller
    container["env"].append({"name": "JUPYTER_TO_JOB_NAMESPACES", "value": TEAM})
    cluster.apply(by_kind["Deployment"])
    flags = ("--namespace", NAMESPACE, "--timeout=90s")
    cluster.kubectl("rollout", "status", "deployment/controller", *flags, timeout=100)


@dataclass(frozen=True)
class DevPod:
    """A dev pod: no GPU, no rights in the cluster, a token for the gateway."""

    cluster: Cluster
    namespace: str
    name: str

    def run(self, *command: str, check: bool = True) -> str:
        """Run a command in the pod and return what it printed on stdout.

        Without `check` its exit code does not count.
        """
        if not check:
            command = ("sh", "-c", '"$@"; exit 0', "sh", *command)
        pod = ("-n", self.namespace, self.name)
        return self.cluster.kubectl("exec", *pod, "--", *command, timeout=75)

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


def start_dev_pod(
    cluster: Cluster, images: Images, namespace: str = TEAM, name: str = "jupyter-ada"
) -> DevPod:
    """Start a dev pod in a namespace that enforces the strictest Pod Security."""
    enforce = {"pod-security.kubernetes.io/enforce": "restricted"}
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": namespace, "labels": enforce},
        }
    )
    wait_for(
        "the namespace has its service account",
        lambda: "default" in cluster.kubectl("get", "serviceaccounts", "-n", namespace, "-o=name"),
    )
    address = cluster.get("service", "gateway", NAMESPACE)["spec"]["clusterIP"]
    token = {"audience": "jupyter-to-job", "expirationSeconds": 3600, "path": "token"}
    container = {
        "name": "notebook",
        "image": images.notebook,
        "command": ["sleep", "3600"],
        "env": [
            {"name": "JUPYTER_TO_JOB_GATEWAY", "value": f"http://{address}"},
            {"name": "JUPYTERHUB_API_TOKEN", "value": "secret-of-the-hub"},
        ],
        "resources": {"requests": {"cpu": "50m"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/jupyter-to-job"}],
    }
    pod = {
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
    metadata = {
        "name": name,
        "namespace": namespace,
        "annotations": {"hub.jupyter.org/username": "ada"},
    }
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod})
    cluster.kubectl(
        "wait", f"pod/{name}", "-n", namespace, "--for=condition=Ready", "--timeout=60s"
    )
    return DevPod(cluster, namespace, name)
