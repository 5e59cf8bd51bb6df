"""From `submit` in a dev pod without a GPU to the delivered notebook, on a real cluster."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import nbformat.v4 as v4

from tests.cluster.box.cluster import Cluster
from tests.cluster.box.images import Images
from tests.cluster.box.wait import wait_for
from tests.cluster.product import HOME, TEAM, DevPod, start_dev_pod

GPU_CELL = "import os, helper; print('gpu:', os.environ['NVIDIA_VISIBLE_DEVICES'], helper.WORD)"


def notebook(*cells: str) -> str:
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    code = [v4.new_code_cell(source) for source in cells]
    code[0].metadata["tags"] = ["parameters"]
    return json.dumps(v4.new_notebook(cells=code, metadata=metadata))


def text_of(document: Any) -> str:
    outputs = [o for cell in document["cells"] for o in cell.get("outputs", [])]
    return "".join("".join(o.get("text", "")) for o in outputs)


def submit(dev_pod: DevPod, path: str, *options: str) -> Any:
    """Submit and wait; the final job."""
    command = ("jupyter-to-job", "submit", path, "--wait", "--json", *options)
    return json.loads(dev_pod.run(*command, check=False))


def runner_pid(job: str) -> int | None:
    """Find the runner of a job from outside of its container."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                line = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if b"job_runner" in line and f"/jupyter-to-job/{job}".encode() in line:
                return int(process.name)
    return None


def test_a_notebook_goes_to_a_gpu_and_comes_back(dev_pod: DevPod, cluster: Cluster) -> None:
    dev_pod.write(f"{HOME}/work/helper.py", "WORD = 'from the helper'\n")
    source = notebook("epochs = 1", GPU_CELL, "print('epochs:', epochs)")
    dev_pod.write(f"{HOME}/work/train.ipynb", source)

    options = ("-f", "gpu-1", "-d", "nvidia", "-p", "epochs", "5", "-i", f"{HOME}/work/helper.py")
    job = submit(dev_pod, f"{HOME}/work/train.ipynb", *options)

    assert (job["state"], job["reason"]) == ("succeeded", None)
    assert job["backend"] == "kubernetes"
    result = dev_pod.read_json(f"{HOME}/work/{job['name']}.ipynb")
    assert "gpu: GPU-" in text_of(result)
    assert "from the helper" in text_of(result)
    assert "epochs: 5" in text_of(result)
    assert dev_pod.run("cat", f"{HOME}/work/train.ipynb") == source
    # The dev pod never had a GPU; the job's pod has one, and none of the dev pod's secrets.
    assert "NVIDIA_VISIBLE_DEVICES" not in dev_pod.run("env")
    pod = job_pod(cluster, job["name"])
    assert "secret-of-the-hub" not in json.dumps(pod)
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_a_raising_cell_comes_back_with_its_banner(dev_pod: DevPod) -> None:
    cells = ("print('before')", "raise ValueError('no such row')", "print('never')")
    dev_pod.write(f"{HOME}/failing.ipynb", notebook(*cells))

    job = submit(dev_pod, f"{HOME}/failing.ipynb")

    assert (job["state"], job["reason"]) == ("failed", "CellError")
    result = dev_pod.read_json(f"{HOME}/{job['name']}.ipynb")
    assert "papermill-error-cell-tag" in result["cells"][0]["metadata"]["tags"]
    assert "before" in text_of(result)
    assert "never" not in text_of(result)


def test_a_killed_container_keeps_what_it_printed(dev_pod: DevPod) -> None:
    cells = ("print('kept', flush=True)", "import time; print('waiting'); time.sleep(600)")
    dev_pod.write(f"{HOME}/killed.ipynb", notebook(*cells))
    name = dev_pod.run("jupyter-to-job", "submit", f"{HOME}/killed.ipynb").strip()
    wait_for(
        "the second cell has printed",
        lambda: "waiting" in dev_pod.run("jupyter-to-job", "logs", name),
        timeout=90,
    )

    pid = runner_pid(name)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    job = json.loads(dev_pod.run("jupyter-to-job", "wait", name, "--json", check=False))

    assert (job["state"], job["reason"]) == ("failed", "Lost")
    assert "killed" in job["message"]
    result = dev_pod.read_json(f"{HOME}/{name}.ipynb")
    assert "kept" in text_of(result)
    assert "waiting" in text_of(result)


def test_a_cancelled_job_ends_and_comes_back(dev_pod: DevPod, cluster: Cluster) -> None:
    dev_pod.write(f"{HOME}/long.ipynb", notebook("import time; print('begun'); time.sleep(600)"))
    name = dev_pod.run("jupyter-to-job", "submit", f"{HOME}/long.ipynb").strip()
    wait_for(
        "the cell has printed",
        lambda: "begun" in dev_pod.run("jupyter-to-job", "logs", name),
        timeout=90,
    )

    dev_pod.run("jupyter-to-job", "cancel", name)
    job = json.loads(dev_pod.run("jupyter-to-job", "wait", name, "--json", check=False))

    assert (job["state"], job["reason"]) == ("cancelled", None)
    assert "begun" in text_of(dev_pod.read_json(f"{HOME}/{name}.ipynb"))


def test_a_pod_may_only_touch_what_is_its_own(dev_pod: DevPod) -> None:
    answer = dev_pod.run(
        "python3",
        "-c",
        "import os, httpx\n"
        "token = open('/var/run/secrets/jupyter-to-job/token').read()\n"
        "api = os.environ['JUPYTER_TO_JOB_GATEWAY'] + '/api/'\n"
        "mine = {'Authorization': 'Bearer ' + token}\n"
        "name = httpx.get(api + 'jobs', headers=mine).json()['jobs'][0]['name']\n"
        "print(httpx.get(api + 'jobs').status_code)\n"
        "print(httpx.get(api + 'jobs', headers={'Authorization': 'Bearer x'}).status_code)\n"
        "put = api + f'exchange/{name}/attempt-1/outcome.json'\n"
        "print(httpx.put(put, headers=mine, content=b'{\"v\": 1}').status_code)\n"
        "escape = api + f'exchange/{name}/%2e%2e/%2e%2e/etc/passwd'\n"
        "print(httpx.get(escape, headers=mine).status_code)\n",
    )

    assert answer.split() == ["403", "403", "403", "400"]


def test_a_pod_of_another_namespace_is_a_stranger(cluster: Cluster, images: Images) -> None:
    """Who can make a pod somewhere cannot be ada by writing so on it."""
    stranger = start_dev_pod(cluster, images, namespace="elsewhere")

    answer = stranger.run("sh", "-c", "jupyter-to-job list 2>&1; echo code $?")

    assert "may not submit jobs" in answer
    assert "code 4" in answer


def job_pod(cluster: Cluster, job: str) -> Any:
    selector = f"--selector=jupyter-to-job.io/job={job}"
    answer = cluster.kubectl("get", "pods", "-n", TEAM, selector, "-o=json")
    (pod,) = json.loads(answer)["items"]
    return pod
