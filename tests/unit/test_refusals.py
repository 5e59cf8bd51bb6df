"""What the API server says when it refuses a Job or a pod, in plain words."""

from __future__ import annotations

import pytest

from jupyter_to_job.backends.kubernetes import explain_refusal

FORBIDDEN = 'Kubernetes answered 403: jobs.batch "train-abcdefgh" is forbidden: '
EVENT = 'Error creating: pods "train-abcdefgh-x7c2p" is forbidden: '
FULL = "exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=2"
SEVERAL = (
    "exceeded quota: small, requested: limits.memory=8Gi,pods=1, used: limits.memory=0,pods=3, "
    "limited: limits.memory=4Gi,pods=3"
)
CASES = {
    "no room now": (
        f"{EVENT}{FULL}, limited: requests.nvidia.com/gpu=2", "quota", True,
        "The namespace's quota 'gpus' has no room now: the job asks for 1 nvidia.com/gpu, "
        "and 2 of 2 are in use. It waits until others have ended.",
    ),
    "never room": (
        f"{EVENT}{SEVERAL}", "quota", False,
        "The namespace's quota 'small' is too small: the job asks for 8Gi memory of 4Gi allowed; "
        "1 pods of 3 allowed. Choose a smaller flavor, or ask your administrator.",
    ),
    "no Jobs at all": (
        f"{FORBIDDEN}exceeded quota: none, requested: count/jobs.batch=1, "
        "used: count/jobs.batch=0, limited: count/jobs.batch=0", "quota", False,
        "The namespace's quota 'none' is too small: the job asks for 1 Jobs of 0 allowed. "
        "Choose a smaller flavor, or ask your administrator.",
    ),
    "an amount in a rare spelling": (
        f"{EVENT}exceeded quota: odd, requested: cpu=1e3, used: cpu=0, limited: cpu=1", "quota",
        True, "The namespace's quota 'odd' has no room now: the job asks for 1e3 CPU, "
        "and 0 of 1 are in use. It waits until others have ended.",
    ),
    "a quota in other words": (
        "Kubernetes answered 403: exceeded quota: gpus.", "quota", True,
        "A quota of the namespace has no room now: gpus. The job waits until others have ended.",
    ),
    "a quota wants to know more": (
        f"{EVENT}failed quota: disk: must specify requests.ephemeral-storage for: notebook",
        "quota", False,
        "The namespace's quota 'disk' wants every container to say its "
        "requests.ephemeral-storage (not said by notebook). "
        "The administrator sets that of the notebook in the catalog, that of the agent in the pod "
        "patch, or both by a LimitRange.",
    ),
    "a quota wants to know more of several containers": (
        f"{EVENT}failed quota: disk: must specify limits.ephemeral-storage for: agent,notebook; "
        "requests.ephemeral-storage for: agent",
        "quota", False,
        "The namespace's quota 'disk' wants every container to say its "
        "limits.ephemeral-storage (not said by agent, notebook); "
        "requests.ephemeral-storage (not said by agent). "
        "The administrator sets that of the notebook in the catalog, that of the agent in the pod "
        "patch, or both by a LimitRange.",
    ),
    "a quota of a Kubernetes that names no container": (
        f"{EVENT}failed quota: disk: must specify limits.cpu,limits.memory", "quota", False,
        "The namespace's quota 'disk' wants every container to say its limits.cpu,limits.memory. "
        "The administrator sets that of the notebook in the catalog, that of the agent in the pod "
        "patch, or both by a LimitRange.",
    ),
    "a limit range": (
        f"{EVENT}maximum memory usage per Container is 256Mi, but limit is 512Mi",
        "limit_range", False,
        "A limit range of the namespace refuses it: maximum memory usage per Container is 256Mi, "
        "but limit is 512Mi. Choose another flavor or device. If each is refused, it may be "
        "the agent's container: the administrator sets its resources in the pod patch.",
    ),
    "Pod Security": (
        f'{EVENT}violates PodSecurity "restricted:latest": runAsNonRoot != true (pod must not)',
        "pod_security", False,
        "The namespace's Pod Security (restricted) refuses the pod: runAsNonRoot != true "
        "(pod must not). The administrator changes the dev pod's user and image, or the "
        "namespace's level.",
    ),
    "a webhook": (
        'Kubernetes answered 400: admission webhook "limits.example" denied the request: too big',
        "policy", False,
        "The cluster's policy 'limits.example' refuses it: too big. "
        "Choose another flavor or device, or ask your administrator.",
    ),
    "a policy": (
        f"{FORBIDDEN}ValidatingAdmissionPolicy 'night' with binding 'all' denied request: Asleep.",
        "policy", False,
        "The cluster's policy 'night' refuses it: Asleep. "
        "Choose another flavor or device, or ask your administrator.",
    ),
    "missing rights": (
        'Kubernetes answered 403: jobs.batch is forbidden: User "system:serviceaccount:a:b" '
        'cannot create resource "jobs" in API group "batch" in the namespace "team"',
        "rights", False,
        "The controller may not create jobs in the namespace team. "
        "The administrator applies the Role of k8s/dev-namespace there.",
    ),
    "not valid": (
        'Kubernetes answered 422: Job.batch "train" is invalid: spec.template: Invalid value',
        "invalid", False,
        "Kubernetes does not accept the job: spec.template: Invalid value. "
        "The administrator checks this flavor and device in the catalog.",
    ),
    "something else": (
        f"{EVENT}no PriorityClass with name urgent was found", "other", False,
        "The cluster refuses the job: no PriorityClass with name urgent was found. "
        "Choose another flavor or device, or ask your administrator.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "kind", "passes", "sentence"), CASES.values(), ids=CASES)
def test_it_is_said_in_plain_words(answer: str, kind: str, passes: bool, sentence: str) -> None:
    refusal = explain_refusal(answer)
    assert (refusal.kind, refusal.passes, refusal.sentence) == (kind, passes, sentence)
    assert refusal.reason == ("QuotaExceeded" if kind == "quota" else "BackendError")
