"""What an administrator's door to the cluster answers: documents of a sound installation.

A test spoils one of them, and reads what `doctor --cluster` says.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from jupyter_to_job.backends.kubernetes.records import JOB_LABEL
from jupyter_to_job.cli.checks.cluster.api import Answer
from jupyter_to_job.domain.errors import BadInput, NotFound, Refused

K8S = Path(__file__).parents[1] / "k8s"
NAMESPACE = "jupyter-to-job"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:controller"
OF_CONTROLLER = f"/api/v1/namespaces/{NAMESPACE}"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CLAIM = f"{OF_CONTROLLER}/persistentvolumeclaims/exchange"
STATS = "/api/v1/nodes/node-1/proxy/stats/summary"
CATALOG = """
apiVersion: jupyter-to-job.io/v1
default: {flavor: small, device: cpu}
flavors:
  small: {cpu: 1, memory: 1Gi, devices: [cpu]}
  gpu-1: {cpu: 1, memory: 1Gi, gpus: 1, devices: [t4, spot]}
devices:
  cpu: {title: CPU}
  t4: {resource: nvidia.com/gpu, node_selector: {product: T4}}
  spot: {resource: nvidia.com/gpu, node_selector: {product: H100}, autoscaled: true}
"""
GIB = 1 << 30
Document = dict[str, Any]


def shipped(*names: str) -> dict[str, Document]:
    """Return the documents of files of k8s/, by kind."""
    found = [d for name in names for d in yaml.safe_load_all((K8S / name).read_text())]
    return {document["kind"]: document for document in found}


class PretendApiServer:
    """Answers as `ClusterApi` does. `documents` has objects by their paths.

    `refuses` says whether a right is missing, `says` what the pod prints that tries the gateway,
    and `created` has what was created and not deleted again.
    """

    address = "https://cluster.example"

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}
        self.refuses: Callable[[Document], bool] = lambda _attributes: False
        self.forbidden: set[str] = set()
        self.user = "admin"
        self.says: Any = [
            {"area": "versions", "level": "ok", "message": "Python 3", "mend": ""},
            {"area": "gateway", "level": "ok", "message": "It answers", "mend": ""},
        ]
        self.clocks: dict[str, float] = {}
        self.created: dict[str, Document] = {}
        self.trial_phase = "Succeeded"
        self.trial_containers: list[Document] = []
        self._make()

    # As the door has them --------------------------------------------------------------------

    def get(self, path: str, **_query: str) -> Document:
        if path in self.forbidden:
            raise Refused(f"Kubernetes answered 403: cannot get {path}")
        if path in self.created:
            states = {"phase": self.trial_phase, "containerStatuses": self.trial_containers}
            return {**self.created[path], "status": states}
        if path not in self.documents:
            raise NotFound(f"Kubernetes answered 404: {path}")
        return self.documents[path]

    def items(self, path: str, **query: str) -> Iterator[Document]:
        if path in self.forbidden:
            raise Refused(f"Kubernetes answered 403: cannot list {path}")
        depth = path.count("/") + 1
        pairs = query.get("labelSelector", "").split(",")
        wanted = {tuple(pair.split("=")) for pair in pairs if pair}
        for known, document in self.documents.items():
            labels = document.get("metadata", {}).get("labels") or {}
            is_inside = known.startswith(f"{path}/") and known.count("/") == depth
            if is_inside and wanted <= labels.items():
                yield document
        if path.endswith("/rolebindings"):
            yield from (d for p, d in self.documents.items() if "/rolebindings/" in p)

    def create(self, path: str, body: Document, **query: str) -> Document:
        if path in self.forbidden:
            raise Refused(f"Kubernetes answered 403: cannot create {path}")
        if path.endswith("/selfsubjectreviews"):
            return {"status": {"userInfo": {"username": self.user}}}
        if "subjectaccessreviews" in path:
            assert body["spec"].get("user", self.user) == ACCOUNT
            refused = self.refuses(body["spec"]["resourceAttributes"])
            return {"status": {"allowed": not refused}}
        if JOB_LABEL in body["metadata"]["labels"]:
            assert query == {"dryRun": "All"}
            if f"{POLICIES}/jupyter-to-job-own-jobs" in self.documents:
                raise Refused("ValidatingAdmissionPolicy 'jupyter-to-job-own-jobs' denied request")
            return body
        assert not query
        self.created[f"{path}/{body['metadata']['name']}"] = body
        return body

    def delete(self, path: str) -> None:
        del self.created[path]

    def ask(self, method: str, path: str, query: dict[str, str]) -> Answer:
        assert method == "GET"
        if path.removesuffix("/log") in self.created:
            if len(self.trial_containers) > 1 and "container" not in query:
                raise BadInput("Kubernetes answered 400: a container name must be specified")
            text = self.says if isinstance(self.says, str) else json.dumps(self.says)
            return Answer(text, None)
        return Answer(json.dumps(self.get(path, **query)), time.time())

    def seconds_ahead(self, path: str) -> float | None:
        self.get(path)
        return self.clocks.get(path, 0.0)

    # What is there ---------------------------------------------------------------------------

    def _make(self) -> None:
        self._install()
        self.add_namespace("team")
        self.documents["/apis"] = {"groups": [{"name": "batch"}]}
        self.documents["/version"] = {"gitVersion": "v1.34.4", "minor": "34"}
        for name in ("own-jobs",):
            of_policy = shipped(f"policies/{name}.yaml")
            full = f"jupyter-to-job-{name}"
            self.documents[f"{POLICIES}/{full}"] = of_policy["ValidatingAdmissionPolicy"]
            binding = of_policy["ValidatingAdmissionPolicyBinding"]
            self.documents[f"{BINDINGS}/{full}"] = binding
        gpus = {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2"}
        self.documents["/api/v1/nodes/node-1"] = {
            "metadata": {"name": "node-1", "uid": "n", "labels": {"product": "T4"}},
            "status": {"capacity": gpus, "allocatable": gpus},
        }
        self.add_lease("node-1", ahead=0)

    def _install(self) -> None:
        """Add what k8s/base has, as it stands on a cluster."""
        base = shipped("base/controller.yaml", "base/storage.yaml")
        deployment = base["Deployment"]
        deployment["metadata"]["namespace"] = NAMESPACE
        template = deployment["spec"]["template"]
        (container,) = template["spec"]["containers"]
        container["env"].append({"name": "JUPYTER_TO_JOB_NAMESPACES", "value": "team"})
        self.deployment, self.variables = deployment, container["env"]
        self.documents[f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/controller"] = deployment
        self.documents[f"{OF_CONTROLLER}/configmaps/flavors"] = {"data": {"flavors.yaml": CATALOG}}
        claim = base["PersistentVolumeClaim"]
        claim["metadata"]["namespace"] = NAMESPACE
        claim["spec"]["storageClassName"] = "fast"
        capacity = {"storage": "20Gi"}
        modes = {"accessModes": ["ReadWriteOnce"], "capacity": capacity}
        self.documents[CLAIM] = {**claim, "status": {"phase": "Bound", **modes}}
        provisioner = {"metadata": {"name": "fast"}, "provisioner": "disk.example"}
        self.documents["/apis/storage.k8s.io/v1/storageclasses/fast"] = provisioner
        ready = [{"type": "Ready", "status": "True"}]
        created = {"uid": "c", "creationTimestamp": "2026-01-01T00:00:00Z"}
        self.pod: Document = {
            "metadata": {"name": "controller-1", **created, **template["metadata"]},
            "spec": {**template["spec"], "nodeName": "node-1"},
            "status": {"phase": "Running", "conditions": ready, "containerStatuses": []},
        }
        self.documents[f"{OF_CONTROLLER}/pods/controller-1"] = self.pod
        self.health = f"{OF_CONTROLLER}/pods/controller-1:8080/proxy/api/health"
        self.documents[self.health] = {"status": "ok", "version": "0.1.0"}
        self.set_free(10 * GIB)

    def set_free(self, available: int, **inodes: int) -> None:
        """Set how many bytes of the exchange are free, and what the kubelet says of its inodes."""
        volume = {"pvcRef": {"name": "exchange"}, "capacityBytes": 20 * GIB, **inodes}
        found = {"podRef": {"uid": "c"}, "volume": [{**volume, "availableBytes": available}]}
        self.documents[STATS] = {"pods": [found]}

    def set_variable(self, name: str, value: str) -> None:
        """Set a variable of the controller."""
        self.variables[:] = [v for v in self.variables if v["name"] != name]
        self.variables.append({"name": name, "value": value})

    def add_namespace(self, name: str, level: str = "restricted") -> None:
        """Add a namespace of dev pods, with one of them and the controller's RoleBinding."""
        labels = {"pod-security.kubernetes.io/enforce": level} if level else {}
        metadata = {"name": name, "labels": labels}
        self.documents[f"/api/v1/namespaces/{name}"] = {"metadata": metadata}
        token = {"serviceAccountToken": {"audience": "jupyter-to-job"}}
        volumes = [{"name": "token", "projected": {"sources": [token]}}]
        pod = {"metadata": {"name": "jupyter-ada"}, "spec": {"volumes": volumes}}
        self.documents[f"/api/v1/namespaces/{name}/pods/jupyter-ada"] = pod
        binding = shipped("dev-namespace/rbac.yaml")["RoleBinding"]
        binding["metadata"]["namespace"] = name
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{name}/rolebindings/x"
        self.documents[path] = binding

    def add_lease(self, node: str, ahead: float) -> None:
        """Add the heartbeat of a node whose clock is so many seconds ahead."""
        written = 1_767_225_600.0
        renewed = time.strftime("%Y-%m-%dT%H:%M:%S.500000Z", time.gmtime(written + ahead))
        entry = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(written)),
            "fieldsV1": {"f:spec": {"f:renewTime": {}}},
        }
        metadata = {"name": node, "managedFields": [entry]}
        self.documents[f"{LEASES}/{node}"] = {"metadata": metadata, "spec": {"renewTime": renewed}}
