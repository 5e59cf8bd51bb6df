"""From `submit` in a dev pod without a GPU to the delivered notebook, on a real cluster."""

from __future__ import annotations

import json

import pytest

from tests.cluster.box.boot import Box
from tests.cluster.box.cluster import Cluster
from tests.cluster.box.images import Images
from tests.cluster.controllers import own_controller
from tests.cluster.product import HOME, RIVALS, TEAM, DevPod, add_claim, start_dev_pod
from tests.cluster.scenes import SubmittedJob, notebook, numbers_in, submit, text_of

pytestmark = pytest.mark.side_by_side
GPU_CELL = "import os, helper; print('gpu:', os.environ['NVIDIA_VISIBLE_DEVICES'], helper.WORD)"


def test_a_notebook_goes_to_a_gpu_and_comes_back(dev_pod: DevPod, cluster: Cluster) -> None:
    dev_pod.write(f"{HOME}/work/helper.py", "WORD = 'from the helper'\n")
    source = notebook("epochs = 1", GPU_CELL, "print('epochs:', epochs)")
    dev_pod.write(f"{HOME}/work/train.ipynb", source)

    options = ("-f", "gpu-1", "-d", "any", "-p", "epochs", "5", "-i", f"{HOME}/work/helper.py")
    job = submit(dev_pod, f"{HOME}/work/train.ipynb", *options)

    assert (job["state"], job["reason"]) == ("succeeded", None)
    assert (job["backend"], job["owner"]) == ("kubernetes", f"{TEAM}/ada")
    result = dev_pod.read_json(f"{HOME}/work/{job['name']}.ipynb")
    assert "gpu: GPU-" in text_of(result)
    assert "from the helper" in text_of(result)
    assert "epochs: 5" in text_of(result)
    assert dev_pod.run("cat", f"{HOME}/work/train.ipynb") == source
    # The dev pod never had a GPU; the job's pod has one, and none of the dev pod's secrets.
    assert "NVIDIA_VISIBLE_DEVICES" not in dev_pod.run("env")
    (pod,) = SubmittedJob(dev_pod, job["name"]).pods()
    assert "secret-of-the-hub" not in json.dumps(pod)
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_the_shorter_way_into_a_dev_pod_is_that_of_kubectl(
    dev_pod: DevPod, cluster: Cluster
) -> None:
    """All other commands of the tests take it: same user, folder and variables."""
    pod = ("-n", dev_pod.namespace, dev_pod.name, "--")
    look = ("sh", "-c", "id; pwd; env | sort")
    assert dev_pod.run(*look) == cluster.kubectl("exec", *pod, *look)

    path = f"{HOME}/by-kubectl.ipynb"
    dev_pod.write(path, notebook("print('here')"))
    command = ("jupyter-to-job", "submit", path, "--wait", "--json")
    job = json.loads(cluster.kubectl("exec", *pod, *command, timeout=150))

    assert (job["state"], job["delivery"]["state"]) == ("succeeded", "delivered")


def test_a_raising_cell_comes_back_with_its_banner(dev_pod: DevPod) -> None:
    cells = ("print('before')", "raise ValueError('no such row')", "print('never')")
    dev_pod.write(f"{HOME}/failing.ipynb", notebook(*cells))

    job = submit(dev_pod, f"{HOME}/failing.ipynb")

    assert (job["state"], job["reason"]) == ("failed", "CellError")
    result = dev_pod.read_json(f"{HOME}/{job['name']}.ipynb")
    assert "papermill-error-cell-tag" in result["cells"][0]["metadata"]["tags"]
    assert "before" in text_of(result)
    assert "never" not in text_of(result)


def test_a_cancelled_job_ends_and_comes_back(dev_pod: DevPod) -> None:
    job = SubmittedJob.counting(dev_pod, "long")
    printed = job.until_printed()

    dev_pod.run("jupyter-to-job", "cancel", job.name)
    ended = job.until_ended()

    assert (ended["state"], ended["reason"]) == ("cancelled", None)
    assert len(numbers_in(text_of(job.check_delivered(ended)))) >= printed


def test_a_pod_may_only_touch_what_is_its_own(dev_pod: DevPod) -> None:
    dev_pod.write(f"{HOME}/touched.ipynb", notebook("print('mine')"))
    name = submit(dev_pod, f"{HOME}/touched.ipynb")["name"]

    answer = dev_pod.run(
        "python3",
        "-c",
        "import os, sys, httpx\n"
        "token = open('/var/run/secrets/jupyter-to-job/token').read()\n"
        "api = os.environ['JUPYTER_TO_JOB_GATEWAY'] + '/api/'\n"
        "mine = {'Authorization': 'Bearer ' + token}\n"
        "name = sys.argv[1]\n"
        "print(httpx.get(api + 'jobs', timeout=60).status_code)\n"
        "other = {'Authorization': 'Bearer x'}\n"
        "print(httpx.get(api + 'jobs', headers=other, timeout=60).status_code)\n"
        "put = api + f'exchange/{name}/attempt-1/outcome.json'\n"
        "print(httpx.put(put, headers=mine, content=b'{\"v\": 1}', timeout=60).status_code)\n"
        "escape = api + f'exchange/{name}/%2e%2e/%2e%2e/etc/passwd'\n"
        "print(httpx.get(escape, headers=mine, timeout=60).status_code)\n",
        name,
    )

    assert answer.split() == ["403", "403", "403", "400"]


def test_a_pod_of_another_namespace_is_a_stranger(cluster: Cluster, images: Images) -> None:
    """Who can make a pod somewhere cannot be ada by writing so on it."""
    stranger = start_dev_pod(cluster, images, namespace="elsewhere")

    answer = stranger.run("sh", "-c", "jupyter-to-job list 2>&1; echo code $?")

    assert "may not submit jobs" in answer
    assert "code 4" in answer


def test_two_servers_of_one_user_with_equal_paths(
    box: Box, images: Images, dev_pod: DevPod, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Only the server that has the notebook's own volume publishes the result."""
    assert dev_pod.cluster is box  # the first controller is there
    settings = {"JUPYTER_TO_JOB_COURIER_AFTER": "1h"}
    with own_controller(box, images, "equal", settings) as mine:
        volumes = tmp_path_factory.mktemp("volumes")
        for name in ("first", "second"):
            add_claim(box, name, volumes / name, mine.namespace)
        first, second = (
            start_dev_pod(
                box, images, mine.namespace, f"ada-{name}", name, controller=mine.controller
            )
            for name in ("first", "second")
        )
        check_equal_paths(first, second)


def check_equal_paths(first: DevPod, second: DevPod) -> None:
    """Check a notebook of the first server that the second one has not."""
    first.write(f"{HOME}/work/here.ipynb", notebook("print('here')"))
    name = first.run("jupyter-to-job", "submit", f"{HOME}/work/here.ipynb").strip()

    held = json.loads(second.run("jupyter-to-job", "wait", name, "--json", check=False))
    assert (held["state"], held["delivery"]["state"]) == ("succeeded", "held")
    assert name not in second.run("jupyter-to-job", "list", "--all")
    answer = second.run("sh", "-c", f"jupyter-to-job deliver {name} 2>&1", check=False)
    assert "comes from another workspace" in answer
    assert name not in second.run("ls", f"{HOME}/work")

    assert name in first.run("jupyter-to-job", "list", "--all")
    first.run("jupyter-to-job", "deliver", name)
    assert "here" in text_of(first.read_json(f"{HOME}/work/{name}.ipynb"))


def test_a_user_of_the_same_name_in_another_namespace(
    dev_pod: DevPod, cluster: Cluster, images: Images
) -> None:
    dev_pod.write(f"{HOME}/mine.ipynb", notebook("print('mine')"))
    name = submit(dev_pod, f"{HOME}/mine.ipynb")["name"]
    rival = start_dev_pod(cluster, images, namespace=RIVALS)

    for command in ("show", "logs", "cancel", "rerun", "deliver", "delete"):
        answer = rival.run("sh", "-c", f"jupyter-to-job {command} {name} 2>&1; echo code $?")
        assert "There is no job" in answer
        assert "code 3" in answer
    assert json.loads(rival.run("jupyter-to-job", "list", "--all", "--json")) == []

    rival.write(f"{HOME}/mine.ipynb", notebook("print('of the rival')"))
    job = submit(rival, f"{HOME}/mine.ipynb")
    assert (job["state"], job["owner"]) == ("succeeded", f"{RIVALS}/ada")
    assert "of the rival" in text_of(rival.read_json(f"{HOME}/{job['name']}.ipynb"))
    assert job["name"] not in dev_pod.run("jupyter-to-job", "list", "--all")
