"""The controller as its Deployment describes it: settings, service account, volumes, pods."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from ....backends.kubernetes.manifest import JobPods, sample_template
from ....backends.kubernetes.pod_patch import patched, read_patch
from ....domain.errors import BadInput, NotFound, Refused
from .api import ClusterApi, Manifest

CONTROLLER = {"app.kubernetes.io/name": "jupyter-to-job-controller"}
"""The labels of the controller's pods."""
DEV_PODS = {"jupyter-to-job.io/dev-pods": "true"}
"""The labels of namespaces of dev pods, by which policies know them."""
EVERYWHERE = "*"
"""Stands for all namespaces in JUPYTER_TO_JOB_NAMESPACES."""


@dataclass(frozen=True)
class Installation:
    """A Deployment with the values of its variables, also of those from ConfigMaps."""

    api: ClusterApi
    deployment: Manifest
    variables: dict[str, str]

    @classmethod
    def find(cls, api: ClusterApi, namespace: str) -> Installation:
        """Read the controller's Deployment in a namespace. Raises NotFound."""
        for deployment in api.items(f"/apis/apps/v1/namespaces/{namespace}/deployments"):
            template = deployment["spec"]["template"]
            if CONTROLLER.items() <= (template["metadata"].get("labels") or {}).items():
                container = _main_container(template["spec"])
                variables = dict(_variables(api, namespace, container))
                return cls(api, deployment, variables)
        raise NotFound(
            f"There is no controller in the namespace {namespace!r}.",
            "Apply an overlay of k8s/, or name the controller's namespace with -n.",
        )

    @property
    def namespace(self) -> str:
        """The controller's own namespace."""
        return str(self.deployment["metadata"]["namespace"])

    @property
    def pod_spec(self) -> Manifest:
        """The spec of its pods."""
        spec: Manifest = self.deployment["spec"]["template"]["spec"]
        return spec

    @property
    def container(self) -> Manifest:
        """Its container."""
        return _main_container(self.pod_spec)

    @property
    def account(self) -> str:
        """Its service account, as a user."""
        name = self.pod_spec.get("serviceAccountName") or "default"
        return f"system:serviceaccount:{self.namespace}:{name}"

    def setting(self, name: str) -> str:
        """Return a setting as text: its variable's, or else its default."""
        from ....wiring.settings import PREFIX, Settings

        default = Settings.class_traits()[name].default()
        return self.variables.get(PREFIX + name.upper()) or str(default)

    @property
    def namespaces(self) -> list[str]:
        """The namespaces of dev pods, as they are listed; `*` for all."""
        return list(filter(None, map(str.strip, self.setting("namespaces").split(","))))

    @cached_property
    def dev_namespace(self) -> str:
        """A namespace of dev pods to try things in: the first that there is.

        Where all are served it is the first with our label, as network policies let pods of such
        namespaces through, and without one the controller's own.
        """
        for name in self.namespaces:
            if name != EVERYWHERE and self.has_namespace(name):
                return name
        labelled = self.labelled_namespaces if EVERYWHERE in self.namespaces else []
        return next(iter(labelled), self.namespace)

    @cached_property
    def labelled_namespaces(self) -> list[str]:
        """The namespaces with our label: where all are served, those that are for dev pods."""
        namespaces = self.api.items("/api/v1/namespaces", labelSelector=label_selector(DEV_PODS))
        return [str(namespace["metadata"]["name"]) for namespace in namespaces]

    def has_namespace(self, name: str) -> bool:
        """Tell whether a namespace exists."""
        try:
            self.api.get(f"/api/v1/namespaces/{name}")
        except NotFound:
            return False
        return True

    @property
    def owner_rule(self) -> tuple[str, str]:
        """Where the name of a dev pod's owner stands: the rule's source, and its key."""
        source, _, key = self.setting("owner_rule").partition("=")
        return source.strip(), key.strip()

    @cached_property
    def authority(self) -> str | None:
        """The certificates by which agents trust the gateway, "" for the usual ones.

        None if those that it has cannot be read here.
        """
        folder = self.setting("gateway_tls")
        if not folder:
            return ""
        volume = self.volume_at(f"{folder}/ca.crt")
        source = (volume[0].get("secret") or {}) if volume else {}
        if not source or volume is None:
            return None
        try:
            path = f"/api/v1/namespaces/{self.namespace}/secrets/{source['secretName']}"
            data = self.api.get(path).get("data") or {}
        except (NotFound, Refused):
            return None
        return base64.b64decode(data.get(_key(source, volume[1]), "")).decode()

    @property
    def counts_devices(self) -> bool:
        """Whether it watches pods everywhere."""
        return self.setting("device_counts").lower() in ("1", "true")

    def volume_at(self, path: str) -> tuple[Manifest, PurePosixPath] | None:
        """Return the volume that has a path, and the path inside of it; None without one."""
        mounts = self.container.get("volumeMounts") or []
        having = [m for m in mounts if PurePosixPath(path).is_relative_to(m["mountPath"])]
        if not having:
            return None
        mount = max(having, key=lambda m: len(m["mountPath"]))
        inside = PurePosixPath(mount.get("subPath") or "") / PurePosixPath(path).relative_to(
            mount["mountPath"]
        )
        volumes = self.pod_spec.get("volumes") or []
        return next(v for v in volumes if v["name"] == mount["name"]), inside

    def file(self, path: str) -> str | None:
        """Return a file that comes from a ConfigMap; None if it comes from elsewhere."""
        volume = self.volume_at(path)
        source = (volume[0].get("configMap") or {}) if volume else {}
        if not source or volume is None:
            return None
        document = self.api.get(f"/api/v1/namespaces/{self.namespace}/configmaps/{source['name']}")
        text: str | None = (document.get("data") or {}).get(_key(source, volume[1]))
        return text

    @property
    def pod_patch(self) -> Manifest:
        """The patch of job pods; {} where it comes from no ConfigMap, or has a fault."""
        return self._pod_patch[0]

    @property
    def pod_patch_fault(self) -> BadInput | None:
        """Why no controller takes the patch of job pods."""
        return self._pod_patch[1]

    @cached_property
    def _pod_patch(self) -> tuple[Manifest, BadInput | None]:
        path = self.setting("pod_patch")
        text = self.file(path) if path else None
        try:
            patch = read_patch((text or "").encode(), path)
            patched(sample_template(JobPods("agent", "http://gateway")), patch)
        except BadInput as error:
            return {}, error
        return patch, None

    def pods(self) -> list[Manifest]:
        """Return its pods, the newest last."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        pods = self.api.items(path, labelSelector=label_selector(CONTROLLER))
        return sorted(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))

    def health_path(self) -> str:
        """Return where the API server passes on to the controller's health. Raises NotFound."""
        for pod in reversed(self.pods()):
            if pod.get("status", {}).get("phase") == "Running":
                scheme = "https:" if self.setting("gateway_url").startswith("https:") else ""
                port = (self.container.get("ports") or [{}])[0].get("containerPort", 8080)
                place = f"{scheme}{pod['metadata']['name']}:{port}"
                return f"/api/v1/namespaces/{self.namespace}/pods/{place}/proxy/api/health"
        raise NotFound("No pod of the controller runs.", "See the lines about the controller.")


def label_selector(labels: dict[str, str]) -> str:
    """Return the query for what has all of these labels."""
    return ",".join(f"{key}={value}" for key, value in labels.items())


def _key(source: Manifest, path: PurePosixPath) -> str:
    """Return the key of a file in the ConfigMap or secret that a volume has."""
    keys = {item["path"]: item["key"] for item in source.get("items") or ()}
    return str(keys.get(str(path), path))


def _main_container(spec: Manifest) -> Manifest:
    containers: list[Manifest] = spec["containers"]
    return next((c for c in containers if c["name"] == "controller"), containers[0])


def _variables(api: ClusterApi, namespace: str, container: Manifest) -> Iterator[tuple[str, str]]:
    """Yield the variables of a container, without those whose value is in a secret."""

    def data(name: str) -> dict[str, Any]:
        try:
            config_map = api.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
        except NotFound:
            return {}
        return config_map.get("data") or {}

    for source in container.get("envFrom") or ():
        if "configMapRef" in source:
            for key, value in data(source["configMapRef"]["name"]).items():
                yield f"{source.get('prefix') or ''}{key}", value
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("configMapKeyRef")
        if reference is not None:
            yield variable["name"], data(reference["name"]).get(reference["key"], "")
        elif "value" in variable:
            yield variable["name"], variable["value"]
