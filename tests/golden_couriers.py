"""Couriers for the kinds of claims that there are, in files: `scripts/manifests` writes them.

A unit test holds the files to the code, and a cluster test to Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from jupyter_to_job.controller.callers.origin import notebook_container, origin_of
from jupyter_to_job.controller.cluster.cluster import Review
from jupyter_to_job.controller.couriers.manifest import CourierPods, courier_manifest
from jupyter_to_job.controller.couriers.place import claim_mount_of, place_at
from jupyter_to_job.exchange import Request

from .golden_manifests import ROOT, text_of
from .unit.exchanges import request

FOLDER = ROOT / "tests" / "golden" / "couriers"
JOB = "train-abcdefgh"
PODS = CourierPods("registry/agent:1", "http://gateway")
HOME = "/home/jovyan"


def dev_pod(mount: dict[str, Any]) -> dict[str, Any]:
    """Return a dev pod of a JupyterHub, with its claim mounted in one way."""
    return {
        "metadata": {"name": "jupyter-ada", "uid": "u-1", "annotations": {}},
        "spec": {
            "nodeName": "node-1",
            "imagePullSecrets": [{"name": "pull"}],
            "securityContext": {"runAsUser": 1000, "runAsGroup": 100, "fsGroup": 100},
            "tolerations": [{"key": "hub.jupyter.org/dedicated", "operator": "Exists"}],
            "containers": [
                {
                    "name": "notebook",
                    "image": "registry/notebook:1",
                    "volumeMounts": [{"name": "home", "mountPath": HOME, **mount}],
                }
            ],
            "volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": "claim-ada"}}],
        },
    }


def courier(
    mount: dict[str, Any],
    node: str = "",
    pods: CourierPods = PODS,
    architecture: str | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """Return the courier of a job whose notebook is in that dev pod; `changes` are the request's.

    `node` has the claim just now. `architecture` is that of the dev pod's node, if it is known.
    """
    pod = dev_pod(mount)
    claims = {"claim-ada": {"metadata": {"uid": "c-1"}, "spec": {"accessModes": []}}}
    review = Review("team", "default", "jupyter-ada", "u-1")
    origin = origin_of(pod, review, notebook_container(pod, "notebook"), claims)
    found = claim_mount_of(job(**changes), origin)
    assert found is not None
    place = replace(place_at(found, origin), node=node)
    origin = {**origin, "architecture": architecture}
    return courier_manifest(f"{JOB}-c1a2b", job(**changes), origin, place, pods)


def job(**changes: Any) -> Request:
    """Return the request of a job in that dev pod."""
    notebook = f"{HOME}/course/train.ipynb"
    paths = {"workspace": "/", "source": notebook, "notebook": notebook.lstrip("/")}
    return request(JOB, **{**paths, **changes})


def manifests() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each courier, and the name of its file."""
    yield "shared.yaml", courier({})
    yield "shared-by-arm64.yaml", courier({}, architecture="arm64")
    yield "on-the-node-of-its-claim.yaml", courier({}, node="node-7", architecture="arm64")
    yield "sub-path.yaml", courier({"subPath": "users/ada"})
    yield "read-only.yaml", courier({"readOnly": True})


def main() -> None:
    """Write all files, and remove the others."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    texts = {name: text_of(manifest) for name, manifest in manifests()}
    for file in FOLDER.iterdir():
        if file.name not in texts:
            file.unlink()
    for name, text in texts.items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
