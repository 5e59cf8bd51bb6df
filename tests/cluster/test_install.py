"""What an administrator does with docs/install.md: apply, edit the catalog, use TLS, uninstall.

The test cluster itself is installed with `kubectl apply -k`, from an edited copy of k8s/.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import product
from tests.cluster.box.boot import Box
from tests.cluster.box.cluster import Cluster
from tests.cluster.box.images import Images
from tests.cluster.box.pki import Pki
from tests.cluster.box.wait import wait_for
from tests.cluster.controllers import (
    NOT_OF_OTHERS,
    controller_restarts,
    own_controller,
    until_served,
)
from tests.cluster.product import FIRST, HOME, NAMESPACE, ROOT, Controller, DevPod
from tests.cluster.scenes import SubmittedJob, notebook, submit, text_of
from tests.docs.pages import page

OVERLAYS = sorted(folder.name for folder in (ROOT / "k8s" / "overlays").iterdir())
PART_OF = "--selector=app.kubernetes.io/part-of=jupyter-to-job"


@pytest.mark.side_by_side
@pytest.mark.parametrize("overlay", OVERLAYS)
@pytest.mark.parametrize("components", [[], ["../tls"]], ids=["http", "https"])
def test_everything_is_taken_under_pod_security_restricted(
    cluster: Cluster,
    dev_pod: DevPod,
    tmp_path_factory: pytest.TempPathFactory,
    overlay: str,
    components: list[str],
) -> None:
    """The API server warns of a Deployment whose pods it would refuse: a warning fails here."""
    written = product.write_overlay(tmp_path_factory.mktemp("k8s"), Images(), components)
    manifests = cluster.kubectl("kustomize", str(written.parent / overlay))
    flags = ("--dry-run=server", "--server-side", "--force-conflicts", "--warnings-as-errors")
    there = cluster.kubectl("get", "namespaces", "--output=name").split()
    for namespace in namespaces_of(manifests):
        if f"namespace/{namespace}" not in there:
            cluster.apply(product.namespace_manifest(namespace))
    cluster.kubectl("apply", "-f", "-", *flags, stdin=manifests)
    (deployment,) = (m for m in yaml.safe_load_all(manifests) if m["kind"] == "Deployment")
    template = deployment["spec"]["template"]
    metadata = {**template["metadata"], "name": "trial", "namespace": NAMESPACE}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    cluster.create(pod, trial=True)
    labels = cluster.get("namespace", NAMESPACE)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


@pytest.mark.side_by_side
def test_the_dev_pod_to_try_with_is_taken_there(cluster: Cluster, dev_pod: DevPod) -> None:
    cluster.apply(product.namespace_manifest("jupyter"))
    flags = ("--dry-run=server", "--warnings-as-errors")
    cluster.kubectl("create", "-f", str(ROOT / "k8s" / "dev-pod.yaml"), *flags)


def namespaces_of(manifests: str) -> set[str]:
    """Return the namespaces that manifests are for."""
    documents = yaml.safe_load_all(manifests)
    return {m["metadata"]["namespace"] for m in documents if "namespace" in m["metadata"]}


@pytest.mark.side_by_side(-1)
def test_an_edited_catalog_takes_effect_without_a_restart(
    cluster: Cluster, dev_pod: DevPod, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def apply_catalog(text: str) -> None:
        (overlay.parents[1] / "site" / "flavors.yaml").write_text(text)
        manifests = yaml.safe_load_all(cluster.kubectl("kustomize", str(overlay)))
        (catalog,) = (m for m in manifests if m["kind"] == "ConfigMap")
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(catalog))
        # The kubelet looks after a pod at once that changed, else once a minute.
        mark = f"example.org/catalog={len(text)}"
        cluster.kubectl("annotate", "pods", *FIRST.pods, mark, "--overwrite")

    def flavors() -> Any:
        return json.loads(dev_pod.run("jupyter-to-job", "flavors", "--json"))["flavors"]

    def says(text: str) -> bool:
        return text in cluster.kubectl("logs", *FIRST.pods, "--tail=-1")

    overlay = product.write_overlay(tmp_path_factory.mktemp("k8s"), Images())
    before = controller_restarts(cluster)
    assert "added" not in flavors()
    flavor = "  added: {cpu: 1, memory: 1Gi, devices: [cpu]}\n"
    edited = product.FLAVORS.replace("flavors:\n", f"flavors:\n{flavor}")
    apply_catalog(edited)
    wait_for("the new flavor is offered", lambda: "added" in flavors(), 150)

    apply_catalog(edited + "  nonsense: [")
    wait_for("the broken catalog is told", lambda: says("flavors.yaml"), 150)
    assert "added" in flavors()  # the last good one

    apply_catalog(product.FLAVORS)
    wait_for("the flavor is gone again", lambda: "added" not in flavors(), 150)
    assert controller_restarts(cluster) == before


@pytest.mark.side_by_side
def test_a_job_over_tls(
    box: Box, images: Images, dev_pod: DevPod, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert dev_pod.cluster is box  # the first controller is there
    controller = Controller("secure")
    url = controller.gateway.replace("http:", "https:")
    pki = Pki(tmp_path_factory.mktemp("pki"))
    pki.authority("ca")
    pki.issue("gateway", "/CN=gateway", f"DNS:{url.partition('://')[2]}")
    files = {
        "tls.crt": pki.certificate("gateway"),
        "tls.key": pki.key("gateway"),
        "ca.crt": pki.certificate("ca"),
    }
    metadata = {"name": "gateway-tls", "namespace": NAMESPACE}
    content = {name: file.read_text() for name, file in files.items()}
    secret = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls"}
    box.apply({**secret, "metadata": metadata, "stringData": content})
    settings = {"JUPYTER_TO_JOB_GATEWAY_URL": url}
    with own_controller(box, images, controller.name, settings, components=["../tls"]) as plain:
        plain.write(f"{HOME}/ca.crt", content["ca.crt"])
        check_over_tls(plain, url)


def check_over_tls(plain: DevPod, url: str) -> None:
    """Check a job of a dev pod that has the certificate, and that plain HTTP is not answered."""
    variables = {"GATEWAY": url, "GATEWAY_CA": f"{HOME}/ca.crt"}
    secure = replace(
        plain, variables={f"JUPYTER_TO_JOB_{name}": value for name, value in variables.items()}
    )
    assert f"{url} answers" in secure.run("jupyter-to-job", "doctor")
    plain.write(f"{HOME}/over-tls.ipynb", notebook("print('whispered')"))
    job = submit(secure, f"{HOME}/over-tls.ipynb")
    assert job["state"] == "succeeded"
    assert "whispered" in text_of(secure.read_json(f"{HOME}/{job['name']}.ipynb"))
    told = plain.run("sh", "-c", "jupyter-to-job list 2>&1", check=False)
    assert "cannot be reached" in told  # plain HTTP


@pytest.fixture
def restored(cluster: Cluster, images: Images, dev_pod: DevPod) -> Iterator[None]:
    """Have the usual installation again afterwards."""
    yield
    product.apply(cluster, images)


def uninstall_commands() -> list[list[str]]:
    """Return the commands of docs/install.md that leave the exchange: words after `kubectl`."""
    section = page("docs/install.md").text.partition("\n## Uninstall\n")[2]
    block = section.split("```")[1]
    return [shlex.split(line)[1:] for line in block.splitlines() if line]


def test_uninstalling_leaves_the_exchange_alone(
    cluster: Cluster, images: Images, dev_pod: DevPod, restored: None, tmp_path: Path
) -> None:
    dev_pod.write(f"{HOME}/before.ipynb", notebook("print('kept')"))
    done = submit(dev_pod, f"{HOME}/before.ipynb")
    running = SubmittedJob.counting(dev_pod, "uninstalled")
    running.until_printed()
    shipped, overlay = "k8s/overlays/one-namespace", product.write_overlay(tmp_path, images)
    for words in uninstall_commands():
        cluster.kubectl(*(str(overlay) if word == shipped else word for word in words), timeout=120)

    left = {"namespace/jupyter-to-job", "persistentvolumeclaim/exchange"}
    wait_for("what depends on ours is gone, too", lambda: objects_of_ours(cluster) == left)
    others = {"configmap/kube-root-ca.crt", "serviceaccount/default", "secret/gateway-tls"}
    kept = {"persistentvolumeclaim/exchange"}
    wait_for("the rest is gone", lambda: objects_in(cluster, NAMESPACE) - others == kept)
    wait_for("no pod is left", lambda: not our_pods(cluster), 60)
    told = dev_pod.run("sh", "-c", "jupyter-to-job list 2>&1; echo exit $?", check=False)
    assert "exit 5" in told

    product.apply(cluster, images)
    until_served(dev_pod)
    assert {**dev_pod.job(done["name"]), "events": None} == {**done, "events": None}
    ended = running.until_ended()
    assert (ended["state"], ended["reason"]) == ("failed", "Lost")
    running.check_delivered(ended)


def our_pods(cluster: Cluster) -> str:
    """Return the names of pods of jobs, and of couriers."""
    return cluster.kubectl("get", "pods", "-A", "--selector=jupyter-to-job.io/job", "-o=name")


def objects_of_ours(cluster: Cluster) -> set[str]:
    """Return the objects with our label, of every kind and namespace."""
    return names(cluster, kinds(cluster), "-A", PART_OF)


def objects_in(cluster: Cluster, namespace: str) -> set[str]:
    """Return the objects of a namespace, but those of other controllers than the first one."""
    found = kinds(cluster, "--namespaced=true") - {"events", "events.events.k8s.io"}
    return names(cluster, found, "-n", namespace, NOT_OF_OTHERS)


def kinds(cluster: Cluster, *flags: str) -> set[str]:
    """Return the kinds of objects that can be listed."""
    return set(cluster.kubectl("api-resources", "--verbs=list", "-o=name", *flags).split())


def names(cluster: Cluster, of: set[str], *flags: str) -> set[str]:
    """Return the objects of some kinds as `kind/name`."""
    return set(cluster.kubectl("get", ",".join(sorted(of)), "-o=name", *flags).split())
