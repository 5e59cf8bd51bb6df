"""The manifest builder, a pure function: a request and its origin in, a Job out.

The job pod is the dev pod plus the flavor: its image, its user, its pull secrets, the variables on
a short list, the volumes that may come along; none of its tokens, secrets, sidecars or placement.
Only the agent holds a token.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from ... import logs
from ...domain.names import slug
from ...domain.quantities import EPHEMERAL_STORAGE
from ...exchange import Request
from .mounts import EXCHANGE, SHARED_MEMORY, job_volumes, mounts_claim, node_of
from .nodes import REQUIRED, selector_of
from .pod_patch import patched
from .records import AGENT, JOB_LABEL, NONCE, NOTEBOOK, PREFIX, QUEUE_LABEL, REQUEST_ID, Manifest
from .sidecars import AGENT_RESOURCES
from .start_command import start_command

AUDIENCE = "jupyter-to-job"
TOKEN_FOLDER = "/var/run/secrets/jupyter-to-job"  # noqa: S105 - a path
GRACE_SECONDS = 600
"""How long an agent may wait for an unreachable gateway at the end of its pod."""
ALLOWANCE_SECONDS = 3600
"""Added to max_runtime for start and end of the run, with the pull of a large image.

The runner keeps the limit: the pod's deadline is a last resort.
"""
TTL_SECONDS = 24 * 3600
"""The controller deletes a Job an hour after its end: this is for the time when it does not run."""


@dataclass(frozen=True)
class JobPods:
    """The settings that all job pods of a controller have in common.

    `files_timeout` is how many seconds a runner waits for its agent, 0 for as long as it takes.
    `log_format` is that of agents. `patch` is the administrator's, for the template of a job's
    pod. `gateway_ca` returns the certificates in PEM that agents check the gateway's own against;
    "": the usual ones.
    """

    agent_image: str
    gateway_url: str
    image_pull_policy: str = "IfNotPresent"
    files_timeout: int = 600
    log_format: str = logs.TEXT
    gateway_ca: Callable[[], str] = str
    patch: Manifest = field(default_factory=dict)


def job_manifest(request: Request, origin: Manifest, pods: JobPods) -> Manifest:
    """Return the batch/v1 Job that runs `request` beside the dev pod that `origin` describes.

    Raises BadInput if the administrator's patch touches what it must not.
    """
    labels = {
        JOB_LABEL: request.name,
        f"{PREFIX}/owner": _label(request.owner),
        f"{PREFIX}/flavor": _label(request.flavor),
        f"{PREFIX}/device": _label(request.device),
        **({} if request.group is None else {f"{PREFIX}/group": request.group}),
    }
    annotations = {
        f"{PREFIX}/notebook": request.notebook,
        f"{PREFIX}/request-digest": request.digest,
        **({} if request.request_id is None else {REQUEST_ID: request.request_id}),
    }
    nonce = {NONCE: origin["nonce"]} if "nonce" in origin else {}
    extra = {
        kind: {**request.flavor_spec.get(kind, {}), **request.device_spec.get(kind, {})}
        for kind in ("labels", "annotations")
    }
    template_metadata = {
        "labels": {**extra["labels"], **labels},
        "annotations": {**_NO_AUTOSCALER_EVICTS, **extra["annotations"], **annotations},
    }
    queue = request.flavor_spec.get("queue")
    queue_label = {QUEUE_LABEL: queue} if queue else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": request.name,
            "namespace": origin["namespace"],
            "labels": {**labels, **queue_label},
            "annotations": {**annotations, **nonce},
        },
        "spec": {
            "backoffLimit": request.flavor_spec.get("retries", 0),
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": _ONLY_DISRUPTIONS_ARE_RETRIED,
            "suspend": bool(queue),
            "ttlSecondsAfterFinished": TTL_SECONDS,
            "template": _template(request, origin, pods, template_metadata),
        },
    }


def _template(request: Request, origin: Manifest, pods: JobPods, metadata: Manifest) -> Manifest:
    """Return the template of the job's pod, with the patch; the run's node is chosen after it."""
    template = {"metadata": metadata, "spec": _pod(request, origin, pods)}
    template = patched(template, pods.patch)
    node = node_of(origin, request.mounts)
    return template if node is None else {**template, "spec": pinned(template["spec"], node)}


def sample_template(pods: JobPods) -> Manifest:
    """Return the template of some job's pod, by which a patch is checked before there is a job."""
    request = Request(
        name="sample-aaaaaaaa",
        owner="sample",
        notebook="sample.ipynb",
        source="/sample.ipynb",
        workspace="/",
        flavor="sample",
        device="sample",
        flavor_spec={},
        device_spec={},
        demand={"cpu": "1", "memory": "1Gi"},
        snapshot_sha256="",
        submitted="",
        backend="kubernetes",
        digest="",
    )
    origin = {
        "namespace": "sample",
        "service_account": "default",
        "image": "sample",
        "image_pull_secrets": [],
        "security_context": {},
        "env": {},
    }
    template: Manifest = job_manifest(request, origin, pods)["spec"]["template"]
    return template


def _pod(request: Request, origin: Manifest, pods: JobPods) -> Manifest:
    spec: Manifest = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "serviceAccountName": origin["service_account"],
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": {
            **origin["security_context"],
            "runAsNonRoot": True,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "imagePullSecrets": origin["image_pull_secrets"],
        "initContainers": [_agent(request, pods)],
        "containers": [_notebook(request, origin, pods)],
        "volumes": [*_volumes(request), *job_volumes(origin, request.mounts)[0]],
    }
    if request.max_runtime is not None:
        spec["activeDeadlineSeconds"] = request.max_runtime + ALLOWANCE_SECONDS
    for key, source in _PLACEMENT:
        value = request.device_spec.get(source) or request.flavor_spec.get(source)
        if value:
            spec[key] = value
    by_image = {} if catalog_image(request) else selector_of(origin.get("architecture"))
    if by_image:
        spec["nodeSelector"] = {**by_image, **spec.get("nodeSelector", {})}
    return spec


def pinned(spec: Manifest, node: str) -> Manifest:
    """Return a pod's specification with one node only on which it may run.

    A claim of one node is mounted there, and a node that comes later may have the device, too.
    """
    requirement = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = spec.get("affinity") or {}
    of_nodes = affinity.get("nodeAffinity") or {}
    required = of_nodes.get(REQUIRED) or {}
    terms = [
        {**term, "matchFields": [*term.get("matchFields", []), requirement]}
        for term in required.get("nodeSelectorTerms") or [{}]
    ]
    required = {**required, "nodeSelectorTerms": terms}
    return {**spec, "affinity": {**affinity, "nodeAffinity": {**of_nodes, REQUIRED: required}}}


_PLACEMENT = (
    ("nodeSelector", "node_selector"),
    ("tolerations", "tolerations"),
    ("runtimeClassName", "runtime_class"),
    ("schedulerName", "scheduler_name"),
    ("priorityClassName", "priority_class"),
)


def _agent(request: Request, pods: JobPods) -> Manifest:
    """Return the sidecar: the only container with a token."""
    return {
        "name": AGENT,
        "image": pods.agent_image,
        "imagePullPolicy": pods.image_pull_policy,
        "restartPolicy": "Always",
        "command": ["python3", "-m", "jupyter_to_job.agent"],
        "args": [
            request.name,
            *("--gateway", pods.gateway_url),
            *("--token-file", f"{TOKEN_FOLDER}/token"),
            *("--folder", EXCHANGE),
        ],
        "env": [
            {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
            *log_variables(request, pods.log_format),
            *trust_variables(pods.gateway_ca()),
        ],
        "resources": AGENT_RESOURCES,
        "securityContext": {**_RESTRICTED, "readOnlyRootFilesystem": True},
        "volumeMounts": [
            {"name": "exchange", "mountPath": EXCHANGE},
            {"name": "token", "mountPath": TOKEN_FOLDER, "readOnly": True},
        ],
    }


def log_variables(request: Request, log_format: str) -> list[Manifest]:
    """Return what tells an agent or a courier how to log, and for which request."""
    variables = [{"name": logs.FORMAT_VARIABLE, "value": log_format}]
    if request.request_id is not None:
        variables.append({"name": logs.REQUEST_VARIABLE, "value": request.request_id})
    return variables


def trust_variables(ca: str) -> list[Manifest]:
    """Return the variable of an agent or courier that has the certificates it shall trust.

    They are no secret, and a ConfigMap with them would have to be in every namespace of dev pods.
    """
    return [{"name": "JUPYTER_TO_JOB_GATEWAY_CA_DATA", "value": ca}] if ca else []


def _notebook(request: Request, origin: Manifest, pods: JobPods) -> Manifest:
    """Return the container of the runner, the only one with a GPU.

    No probe makes it wait for the agent: it starts meanwhile, and waits for the job's files.
    """
    specs = (request.flavor_spec, request.device_spec)
    resources = dict(request.demand)
    storage = next((s["ephemeral_storage"] for s in specs if "ephemeral_storage" in s), None)
    if storage is not None:
        resources[EPHEMERAL_STORAGE] = storage
    resources["cpu"] = str(request.flavor_spec.get("cpu", request.demand["cpu"]))
    resources["memory"] = str(request.flavor_spec.get("memory", request.demand["memory"]))
    sources = origin.get("env_sources") or {}
    variables = {**origin["env"], **specs[0].get("env", {}), **specs[1].get("env", {})}
    if "JUPYTER_TO_JOB_GATEWAY" not in sources:
        # Without a token: a command in the notebook fails, and submits nothing to the pod's disk.
        variables.setdefault("JUPYTER_TO_JOB_GATEWAY", pods.gateway_url)
    variables["JUPYTER_TO_JOB_TERMINATION_LOG"] = "/dev/termination-log"
    mounts: list[Manifest] = [{"name": "exchange", "mountPath": EXCHANGE}]
    if "shm" in request.flavor_spec:
        mounts.append({"name": "shm", "mountPath": SHARED_MEMORY})
    mounts += job_volumes(origin, request.mounts)[1]
    return {
        "name": NOTEBOOK,
        "image": image_of(request, origin),
        "imagePullPolicy": pods.image_pull_policy,
        **start_command(
            f"{EXCHANGE}/{request.name}",
            pods.files_timeout,
            waits_for_admission=mounts_claim(origin, request.mounts),
        ),
        "env": _variables(variables, sources),
        **({"envFrom": origin["env_from"]} if origin.get("env_from") else {}),
        "resources": {"requests": resources, "limits": dict(resources)},
        "securityContext": _RESTRICTED,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def catalog_image(request: Request) -> str | None:
    """Return the image that flavor or device name, None where the job runs in the dev pod's."""
    specs = (request.flavor_spec, request.device_spec)
    return next((s["image"] for s in specs if "image" in s), None)


def image_of(request: Request, origin: Manifest) -> str:
    """Return the image of the notebook's container: the catalog's, or the dev pod's."""
    return str(catalog_image(request) or origin["image"])


_NO_UID = "00000000-0000-0000-0000-000000000000"


def pod_manifest(job: Manifest) -> Manifest:
    """Return the pod that Kubernetes' Job controller makes of a Job.

    It has an owner as that one has: policies refuse pods that have none. The Job's uid is not known
    before there is one.
    """
    metadata, template = job["metadata"], job["spec"]["template"]
    place = {"name": f"{metadata['name']}-trial", "namespace": metadata["namespace"]}
    labels = {**template["metadata"]["labels"], "batch.kubernetes.io/job-name": metadata["name"]}
    owner = {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": metadata["name"],
        "uid": _NO_UID,
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **template["metadata"],
            **place,
            "labels": labels,
            "ownerReferences": [owner],
        },
        "spec": template["spec"],
    }


def _variables(values: dict[str, str], sources: dict[str, Manifest]) -> list[Manifest]:
    """Return the container's variables: a value of the catalog wins over a ConfigMap's."""
    entries = {name: {"name": name, "valueFrom": source} for name, source in sources.items()}
    entries.update({name: {"name": name, "value": value} for name, value in values.items()})
    return [entries[name] for name in sorted(entries)]


def _volumes(request: Request) -> list[Manifest]:
    token = {"audience": AUDIENCE, "expirationSeconds": 3600, "path": "token"}
    volumes: list[Manifest] = [
        {"name": "exchange", "emptyDir": {}},
        {"name": "token", "projected": {"sources": [{"serviceAccountToken": token}]}},
    ]
    shm = request.flavor_spec.get("shm")
    if shm is not None:
        volumes.append({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": shm}})
    return volumes


_NO_AUTOSCALER_EVICTS = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}
"""Annotations of the pod that keep autoscalers from evicting it, to do with fewer nodes.

A Job makes another pod for one that is evicted, so they take its pods for safe to evict. But that
ends the run.
"""
_ONLY_DISRUPTIONS_ARE_RETRIED: Manifest = {
    "rules": [
        {"action": "Count", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}},
    ]
}
"""The first rule that matches counts. An error of any container would only happen again.

Init containers of the pod patch are among them. A failure without a rule would be retried, too.
"""
_RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""Required of every container by Pod Security `restricted`."""


def _label(text: str) -> str:
    """Return a label value for any text: readable, with a digest where it had to change."""
    plain = slug(text)
    if plain == text:
        return text
    return f"{plain[:40].rstrip('-')}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
