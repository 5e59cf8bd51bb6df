"""A cluster, as tests see it: the box, or one that somebody's kubeconfig leads to."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Callable
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import Any

from kubernetes import client, config
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import (
    DynamicApiError,
    ResourceNotFoundError,
    ResourceNotUniqueError,
)
from urllib3 import Retry
from urllib3.exceptions import HTTPError

from tests.cluster.box.wait import Found, wait_for

_RBAC = "apis/rbac.authorization.k8s.io/v1"
_GROUPS = {
    **dict.fromkeys(("events", "namespaces", "nodes", "pods", "resourcequotas"), "api/v1"),
    **dict.fromkeys(("serviceaccounts", "services"), "api/v1"),
    **dict.fromkeys(("clusterroles", "roles"), _RBAC),
    "deployments": "apis/apps/v1",
    "jobs": "apis/batch/v1",
}
"""Where the resources are that are read without kubectl."""
_CLUSTER_WIDE = ("clusterroles", "namespaces", "nodes")
_TIMEOUT = 60
"""Seconds for one answer."""


class KubectlError(Exception):
    """The API server refused a request, or kubectl ended with an error; the message says why."""


def until_taken(what: str, ask: Callable[[], Found]) -> Found:
    """Return what `ask` returns, once the cluster does not refuse it any more.

    Its parts learn in their own time of new rights, containers and labels.
    """
    answers: list[Found] = []

    def is_taken() -> bool:
        with contextlib.suppress(KubectlError):
            answers.append(ask())
        return bool(answers)

    wait_for(what, is_taken)
    return answers[0]


class NotFoundError(KubectlError):
    """There is no such object."""


class Cluster:
    """A running cluster and a `kubectl` whose kubeconfig makes it the administrator."""

    def __init__(self, kubectl: Path, kubeconfig: Path, cache: Path) -> None:
        self._kubectl = kubectl
        self.kubeconfig = kubeconfig
        self._cache = cache
        self._discovery = threading.Lock()

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout: float = 60) -> str:
        """Run kubectl as the cluster's administrator; its standard output, or `KubectlError`."""
        flags = [f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self._cache}"]
        answer = subprocess.run(
            [self._kubectl, *flags, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if answer.returncode:
            raise KubectlError(answer.stderr.strip())
        return answer.stdout

    def get(self, kind: str, name: str, namespace: str = "default") -> Any:
        """Return one object (a `pod`) as decoded JSON. Raises `NotFoundError`."""
        return self._read(f"{_path(f'{kind.lower()}s', namespace)}/{name}")

    def items(self, resource: str, namespace: str | None = None, selector: str = "") -> list[Any]:
        """Return objects (`pods`) with such labels, those of all namespaces if none is named.

        In a list they lack `apiVersion` and `kind`.
        """
        found: list[Any] = self._read(_path(resource, namespace), selector)["items"]
        return found

    def until_ready(self, pod: str, namespace: str = "default", timeout: float = 120) -> None:
        """Wait until a pod is ready; it may be there only later."""

        def is_ready() -> bool:
            try:
                found = self.get("pod", pod, namespace)
            except NotFoundError:
                return False
            conditions = found["status"].get("conditions", [])
            return ("Ready", "True") in [(c["type"], c["status"]) for c in conditions]

        wait_for(f"{namespace}/{pod} is ready", is_ready, timeout=timeout)

    def _read(self, path: str, selector: str = "") -> Any:
        """Ask the API server from this process: a kubectl takes a tenth of a processor's second."""
        request = self._api.param_serialize(
            "GET", path, query_params=[("labelSelector", selector)], auth_settings=["BearerToken"]
        )
        try:
            answer = self._api.call_api(*request, _request_timeout=_TIMEOUT)
            body: bytes = answer.read()  # type: ignore[no-untyped-call]
        except HTTPError as error:
            raise KubectlError(str(error)) from error
        if answer.status == HTTPStatus.NOT_FOUND:
            raise NotFoundError(body.decode())
        if answer.status != HTTPStatus.OK:
            raise KubectlError(body.decode())
        return json.loads(body)

    @cached_property
    def _api(self) -> client.ApiClient:
        configuration = client.Configuration()
        # As kubectl does, when a busy API server says that it is to be asked again.
        configuration.retries = Retry(
            10, connect=3, read=0, allowed_methods=None, raise_on_status=False
        )
        made: client.ApiClient = config.new_client_from_config(  # type: ignore[no-untyped-call]
            str(self.kubeconfig), client_configuration=configuration
        )
        return made

    @cached_property
    def _dynamic(self) -> Any:
        """A client of any kind of object. What the API server has is learnt once."""
        return DynamicClient(self._api, cache_file=str(self._cache.with_name("discovery")))  # type: ignore[no-untyped-call]

    def apply(self, *manifests: Any) -> None:
        """Server-side apply of decoded manifests, with the name that kubectl has for that."""
        for manifest in manifests:
            self._send("server_side_apply", manifest, field_manager="kubectl")

    def create(
        self, manifest: Any, user: str = "", namespace: str = "default", *, trial: bool = False
    ) -> Any:
        """Create an object, as `user` if one is named; return what is stored.

        `namespace` counts if the manifest names none; `trial`: nothing is stored.
        """
        headers = {"Impersonate-User": user} if user else {}
        return self._send(
            "create",
            manifest,
            namespace,
            field_manager="kubectl-create",
            dry_run="All" if trial else None,
            header_params=headers,
        )

    def _send(self, verb: str, manifest: Any, namespace: str = "default", **parameters: Any) -> Any:
        """Send an object as kubectl does: a field that does not exist is an error."""
        version, kind = manifest["apiVersion"], manifest["kind"]
        prefix = "apis" if "/" in version else "api"
        try:
            with self._discovery:
                found = self._dynamic.resources.get(prefix=prefix, api_version=version, kind=kind)
            namespace = manifest["metadata"].get("namespace", namespace)
            answer = getattr(self._dynamic, verb)(
                found,
                body=manifest,
                namespace=namespace if found.namespaced else None,
                query_params=[("fieldValidation", "Strict")],
                _request_timeout=_TIMEOUT,
                **parameters,
            )
        except DynamicApiError as error:
            raise KubectlError(_message_of(error)) from error
        except (HTTPError, ResourceNotFoundError, ResourceNotUniqueError) as error:
            raise KubectlError(str(error)) from error
        return answer.to_dict()

    def snapshot(self) -> str:
        """Jobs, pods, their latest output and events, for a reader of a failed test."""

        def ask(*arguments: str) -> str:
            try:
                return self.kubectl(*arguments, timeout=10)
            except (KubectlError, subprocess.TimeoutExpired) as error:
                return f"{error}\n"

        parts = [ask("get", "nodes,jobs,pods", "-A", "-o=wide"), ask("get", "events", "-A")]
        names = "{range .items[*]}{.metadata.namespace} {.metadata.name}{'\\n'}{end}"
        for line in ask("get", "pods", "-A", f"-o=jsonpath={names}").splitlines():
            namespace, _, name = line.partition(" ")
            logs = ask("logs", name, f"--namespace={namespace}", "--all-containers", "--tail=20")
            parts.append(f"--- logs of {line}\n{logs}")
        return "\n".join(parts)


def _message_of(error: DynamicApiError) -> str:
    """Return what a refusal says: most are a `Status`, and a busy API server sends plain text."""
    try:
        return str(json.loads(error.body or "")["message"])
    except (ValueError, LookupError, TypeError):
        return str(error.body or error.reason)


def _path(resource: str, namespace: str | None) -> str:
    """Return where a resource is; without a namespace that of all."""
    within = "" if namespace is None or resource in _CLUSTER_WIDE else f"namespaces/{namespace}/"
    return f"/{_GROUPS[resource]}/{within}{resource}"
