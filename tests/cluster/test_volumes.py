"""The dev pod's world in a job's pod: its volumes and its image, and none of its secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cluster.box.boot import A100, T4, Box
from tests.cluster.box.images import Images
from tests.cluster.box.inside import DEFAULT_CONTAINER
from tests.cluster.box.wait import wait_for
from tests.cluster.product import (
    HOME,
    TEAM,
    DevPod,
    dev_pod_manifest,
    start_dev_pod,
)
from tests.cluster.scenes import SubmittedJob, notebook, submit, text_of, until_worker_is_free
from tests.cluster.side_by_side import once

WORK = f"{HOME}/work"
CELLS = (
    "import os, helper\nprint(helper.WORD, os.getcwd())",
    "print(open('beside.txt').read())",
    "open('written.txt', 'w').write('by the job')",
)
MOVING = "docker.io/jupyter-to-job/moving"
"""An image that is there under a tag and, as if it came from a registry, under its digest."""
SECRET = "value-of-the-secret"
SEARCH = """\
import os, pathlib, re
SECRETS = [text[::-1].encode() for text in {reversed!r}]
TOKEN = re.compile(rb"eyJ[A-Za-z0-9_-]{{30,}}\\.[A-Za-z0-9_-]{{30,}}\\.[A-Za-z0-9_-]{{30,}}")
HUB = "BUHRETYPUJ"[::-1]

def is_secret(data):
    return bool(TOKEN.search(data)) or any(secret in data for secret in SECRETS)

OWN = ("JPY_PARENT_PID", "JPY_SESSION_NAME")  # of every kernel's own launcher
found = [n for n in os.environ if n.startswith((HUB, "_YPJ"[::-1])) and n not in OWN]
looked = 0
for base, folders, names in os.walk("/"):
    if base == "/":
        folders[:] = [name for name in folders if name not in ("proc", "sys")]
    for name in names:
        path = pathlib.Path(base, name)
        try:
            if path.is_file() and path.stat().st_size < 8 << 20:
                looked += 1
                if is_secret(path.read_bytes()):
                    found.append(str(path))
        except OSError:
            pass
for process in pathlib.Path("/proc").glob("[0-9]*"):
    for name in ("environ", "cmdline", "root/var/run/secrets/jupyter-to-job/token"):
        try:
            data = (process / name).read_bytes()
        except OSError:
            continue
        looked += 1
        if is_secret(data) or HUB.encode() in data:
            found.append(str(process / name))
print("looked at", looked > 1000, "found", found)
"""


def preflight(dev_pod: DevPod, path: str, device: str) -> Any:
    """Return what the gateway says of a submission, before it."""
    script = (
        "import json, os, sys, httpx\n"
        "token = open('/var/run/secrets/jupyter-to-job/token').read()\n"
        "url = os.environ['JUPYTER_TO_JOB_GATEWAY'] + '/api/preflight'\n"
        "body = {'notebook': sys.argv[1].lstrip('/'), 'flavor': 'gpu-1', 'device': sys.argv[2]}\n"
        "headers = {'Authorization': 'Bearer ' + token}\n"
        "print(json.dumps(httpx.post(url, json=body, headers=headers, timeout=60).json()))\n"
    )
    return json.loads(dev_pod.run("python3", "-c", script, path, device))


def start_with_claim(box: Box, images: Images, name: str, mode: str, node: str | None) -> DevPod:
    """Start a dev pod on a claim of its own that has the files of a notebook."""
    volume = box.add_volume(name, mode, claim=f"{TEAM}/{name}", node=node)
    box.apply(volume.claim_manifest())
    dev_pod = start_dev_pod(box, images, name=f"ada-{name}", claim=name)
    dev_pod.write(f"{WORK}/helper.py", "WORD = 'from the helper'\n")
    dev_pod.write(f"{WORK}/beside.txt", "from beside")
    dev_pod.write(f"{WORK}/train.ipynb", notebook(*CELLS))
    return dev_pod


@once
def start_on_one_node(box: Box, images: Images) -> DevPod:
    """Start a dev pod on node-t4, with a claim of that node."""
    return start_with_claim(box, images, "of-one-node", "ReadWriteOnce", T4.name)


def check_in_place(dev_pod: DevPod, job: Any) -> Any:
    """Check that a job ran in the notebook's own folder; return its pod."""
    assert (job["state"], job["reason"]) == ("succeeded", None), job
    assert (job["isolated"], job["mounts"]) == (False, [WORK])
    text = text_of(dev_pod.read_json(f"{WORK}/{job['name']}.ipynb"))
    assert f"from the helper {WORK}" in text
    assert "from beside" in text
    assert dev_pod.run("cat", f"{WORK}/written.txt") == "by the job"
    (pod,) = SubmittedJob(dev_pod, job["name"]).pods()
    return pod


@pytest.mark.side_by_side(2)
def test_a_shared_claim_is_as_in_the_editor(box: Box, dev_pod: DevPod, images: Images) -> None:
    """On the other node, with nothing declared."""
    assert dev_pod.namespace == TEAM
    until_worker_is_free(box)
    shared = start_with_claim(box, images, "of-all-nodes", "ReadWriteMany", None)
    before = preflight(shared, f"{WORK}/train.ipynb", "a100")
    assert (before["isolated"], before["mounts"]) == (False, [WORK])

    job = submit(shared, f"{WORK}/train.ipynb", "-f", "gpu-1", "-d", "a100")

    assert check_in_place(shared, job)["spec"]["nodeName"] == A100.name


@pytest.mark.side_by_side(2)
def test_a_claim_of_one_node_and_a_device_on_the_other(
    box: Box, dev_pod: DevPod, images: Images
) -> None:
    assert dev_pod.namespace == TEAM
    until_worker_is_free(box)
    one_node = start_on_one_node(box, images)
    before = preflight(one_node, f"{WORK}/train.ipynb", "a100")
    assert (before["isolated"], before["mounts"]) == (True, [])
    (told,) = [p["message"] for p in before["problems"] if p["code"] == "volume_left"]
    assert told.startswith(f"{WORK} stays behind: its claim of-one-node can be used on one node")

    inputs = ("-i", f"{WORK}/helper.py", "-i", f"{WORK}/beside.txt")
    job = submit(one_node, f"{WORK}/train.ipynb", "-f", "gpu-1", "-d", "a100", *inputs)

    assert (job["state"], job["isolated"], job["mounts"]) == ("succeeded", True, []), job
    assert told in job["left_behind"]
    assert told in one_node.run("jupyter-to-job", "show", job["name"])
    text = text_of(one_node.read_json(f"{WORK}/{job['name']}.ipynb"))
    assert "from the helper" in text
    assert "from beside" in text
    assert one_node.run("cat", f"{WORK}/{job['name']}/written.txt") == "by the job"
    (pod,) = SubmittedJob(one_node, job["name"]).pods()
    assert pod["spec"]["nodeName"] == A100.name
    assert "of-one-node" not in json.dumps(pod["spec"])


@pytest.mark.side_by_side
def test_the_same_claim_and_a_device_on_its_own_node(
    box: Box, dev_pod: DevPod, images: Images
) -> None:
    assert dev_pod.namespace == TEAM
    one_node = start_on_one_node(box, images)
    before = preflight(one_node, f"{WORK}/train.ipynb", "t4")
    assert (before["isolated"], before["mounts"]) == (False, [WORK])

    job = submit(one_node, f"{WORK}/train.ipynb", "-f", "gpu-1", "-d", "t4")

    spec = check_in_place(one_node, job)["spec"]
    assert spec["nodeName"] == T4.name
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert T4.name in json.dumps(required)


@pytest.mark.side_by_side
def test_no_token_and_no_secret_is_in_a_jobs_pod(box: Box, dev_pod: DevPod, images: Images) -> None:
    """In environment, files and /proc of a job whose dev pod has all of these, behind a proxy."""
    name = "ada-with-secrets"
    assert dev_pod.namespace == TEAM
    data = {"key": SECRET}
    secret = {"apiVersion": "v1", "kind": "Secret", "stringData": data}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"region": "north"}}
    box.apply(
        {**secret, "metadata": {"name": "keys", "namespace": TEAM}},
        {**settings, "metadata": {"name": "settings", "namespace": TEAM}},
    )
    pod = dev_pod_manifest(images, TEAM, name, "ada")
    (container,) = pod["spec"]["containers"]
    keys, region = {"name": "keys", "key": "key"}, {"name": "settings", "key": "region"}
    container["env"] += [
        {"name": "DATA_KEY", "valueFrom": {"secretKeyRef": keys}},
        {"name": "DATA_REGION", "valueFrom": {"configMapKeyRef": region}},
        {"name": "DATA_ROOT", "value": "/data"},
        {"name": "UNLISTED", "value": "x"},
    ]
    container["volumeMounts"].append({"name": "keys", "mountPath": "/etc/keys"})
    container["volumeMounts"].append({"name": "settings", "mountPath": "/etc/settings"})
    pod["spec"]["volumes"].append({"name": "keys", "secret": {"secretName": "keys"}})
    pod["spec"]["volumes"].append({"name": "settings", "configMap": {"name": "settings"}})
    pod["metadata"]["annotations"][DEFAULT_CONTAINER] = "notebook"
    proxy = {"name": "istio-proxy", "image": images.controller, "command": ["sleep", "3600"]}
    proxy["securityContext"] = container["securityContext"]
    pod["spec"]["containers"].insert(0, proxy)
    box.apply(pod)
    box.until_ready(name, TEAM, timeout=60)
    mine = DevPod(box, TEAM, name)
    wait_for("it has its secrets", lambda: SECRET in mine.run("cat", "/etc/keys/key"))

    path = f"{HOME}/search.ipynb"
    reversed_ = [text[::-1] for text in (SECRET, "secret-of-the-hub")]
    see = (
        "import os\n"
        "print([os.environ.get(n) for n in ('DATA_REGION', 'DATA_ROOT', 'DATA_KEY', 'UNLISTED',"
        " 'OF_THE_PATCH')], open('/etc/settings/region').read())"
    )
    mine.write(path, notebook(SEARCH.format(reversed=reversed_), see))
    told = {p["code"]: p["message"] for p in preflight(mine, path, "any")["problems"]}
    job = submit(mine, path, "-f", "gpu-1", "-d", "any")

    assert job["state"] == "succeeded", job
    text = text_of(mine.read_json(f"{HOME}/{job['name']}.ipynb"))
    assert "looked at True found []" in text
    assert "['north', '/data', None, None, 'yes'] north" in text
    assert "DATA_KEY, UNLISTED" in told["variables_dropped"]
    assert told["volume_left"].startswith("/etc/keys stays behind: secrets")
    (ran,) = SubmittedJob(mine, job["name"]).pods()
    (runs,) = ran["spec"]["containers"]
    assert images.notebook in runs["image"]
    assert ran["spec"]["nodeSelector"]["kubernetes.io/arch"]


@pytest.mark.side_by_side(2)  # the image has a digest then, which test_unpinned_images must not see
def test_the_code_that_runs_is_the_code_that_was_seen(
    box: Box, dev_pod: DevPod, images: Images
) -> None:
    """A tag moves on while the dev pod runs."""
    assert dev_pod.namespace == TEAM
    seen, later = f"docker.io/{images.notebook}", images.python
    digest = box.node.image_digest(seen)
    for node in box.nodes:
        node.name_image(seen, f"{MOVING}:1")
        node.name_image(seen, f"{MOVING}@{digest}")
    pod = dev_pod_manifest(images, TEAM, "ada-of-a-tag", "ada")
    (container,) = pod["spec"]["containers"]
    container["image"] = f"{MOVING}:1"
    box.apply(pod)
    mine = DevPod(box, TEAM, "ada-of-a-tag")
    box.until_ready(mine.name, TEAM, timeout=60)
    (status,) = box.get("pod", mine.name, TEAM)["status"]["containerStatuses"]
    assert status["imageID"].endswith(f"@{digest}")
    for node in box.nodes:
        node.name_image(later, f"{MOVING}:1")

    mine.write(f"{HOME}/tag.ipynb", notebook("print('as it was')"))
    job = submit(mine, f"{HOME}/tag.ipynb")

    assert job["state"] == "succeeded", job
    assert "as it was" in text_of(mine.read_json(f"{HOME}/{job['name']}.ipynb"))
    (ran,) = SubmittedJob(mine, job["name"]).pods()
    (runs,) = ran["spec"]["containers"]
    assert runs["image"] == status["imageID"]
