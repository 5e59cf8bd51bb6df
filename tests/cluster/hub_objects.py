"""What is applied for JupyterHub on the box: what zero-to-jupyterhub applies, under its names.

`VALUES` are ours, which an administrator adds to those of that chart; all else is its defaults.
Left out are its own scheduler, its image puller, and the privileged container that blocks the
cloud's metadata server.
"""

from __future__ import annotations

import json
from typing import Any

import yaml

from tests.cluster.product import HOME, ROOT
from tests.cluster.product import HUB as NAMESPACE

PORT = 8081
SECRET = "a-secret-of-the-tests"  # of a hub, its proxy and its culler, which live for one test
START_TIMEOUT = 300
"""How many seconds the server of a user may take to start, as the chart has it."""
CULLER = "jupyterhub-idle-culler"
CONFIG = "jupyterhub_config.json"
LABELS = {"app.kubernetes.io/name": "jupyterhub", "app.kubernetes.io/component": "hub"}
VALUES: Any = yaml.safe_load((ROOT / "k8s/overlays/jupyterhub/values.yaml").read_text())


def config(image: str, hub_url: str, proxy_api_url: str) -> dict[str, Any]:
    """Return JupyterHub's configuration. Any password is right; all users are normal ones."""
    hub = {
        "authenticator_class": "dummy",
        "spawner_class": "kubespawner.KubeSpawner",
        "cleanup_servers": False,
        "last_activity_interval": 60,
        "tornado_settings": {"slow_spawn_timeout": 0},
        "db_url": "sqlite://",
        "hub_bind_url": f"http://:{PORT}",
        "hub_connect_url": hub_url,
        "services": [{"name": CULLER, "api_token": SECRET}],
        "load_roles": [
            {
                "name": CULLER,
                "scopes": [
                    "list:users",
                    "read:users:activity",
                    "read:servers",
                    "delete:servers",
                ],
                "services": [CULLER],
            }
        ],
    }
    proxy = {"should_start": False, "api_url": proxy_api_url, "auth_token": SECRET}
    return {
        "JupyterHub": hub,
        "ConfigurableHTTPProxy": proxy,
        "KubeSpawner": _spawner(image, VALUES["singleuser"]),
    }


def _spawner(image: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return what zero-to-jupyterhub makes of its section `singleuser`, defaults included."""
    volume = "volume-{user_server}"
    home = {"name": volume, "persistentVolumeClaim": {"claimName": "{pvc_name}"}}
    return {
        "namespace": NAMESPACE,
        "image": image,
        "cmd": ["jupyterhub-singleuser"],
        "args": ["--LabApp.expose_app_in_browser=True"],  # for the test in the browser
        "extra_labels": {"hub.jupyter.org/network-access-hub": "true"},
        "allow_privilege_escalation": False,
        "uid": 1000,
        "fs_gid": 100,
        "mem_guarantee": "1G",
        "start_timeout": START_TIMEOUT,
        "http_timeout": START_TIMEOUT,  # half a minute is short on a machine that is as busy
        "cpu_guarantee": 0.1,
        "storage_pvc_ensure": True,
        "storage_capacity": "10Gi",
        "storage_access_modes": ["ReadWriteOnce"],
        "environment": values["extraEnv"],
        "volumes": [home, *values["storage"]["extraVolumes"]],
        "volume_mounts": [
            {"name": volume, "mountPath": HOME},
            *values["storage"]["extraVolumeMounts"],
        ],
    }


def config_map(content: dict[str, Any]) -> dict[str, Any]:
    """Return the ConfigMap with the configuration."""
    return _object("v1", "ConfigMap", data={CONFIG: json.dumps(content)})


def access() -> list[dict[str, Any]]:
    """Return the hub's account and rights."""
    group = "rbac.authorization.k8s.io"
    return [
        _object("v1", "ServiceAccount"),
        _object(
            f"{group}/v1",
            "Role",
            rules=[
                {
                    "apiGroups": [""],
                    "resources": ["pods", "persistentvolumeclaims", "secrets", "services"],
                    "verbs": ["get", "watch", "list", "create", "delete"],
                },
                {"apiGroups": [""], "resources": ["events"], "verbs": ["get", "watch", "list"]},
            ],
        ),
        _object(
            f"{group}/v1",
            "RoleBinding",
            roleRef={"apiGroup": group, "kind": "Role", "name": "hub"},
            subjects=[{"kind": "ServiceAccount", "name": "hub", "namespace": NAMESPACE}],
        ),
    ]


def service() -> dict[str, Any]:
    """Return the Service by which the proxy and the users' servers reach the hub."""
    return _object("v1", "Service", spec={"selector": LABELS, "ports": [{"port": PORT}]})


def deployment(image: str) -> dict[str, Any]:
    """Return the hub itself."""
    container = {
        "name": "hub",
        "image": image,
        "command": ["jupyterhub", f"--config=/etc/jupyterhub/{CONFIG}"],
        "workingDir": "/srv/jupyterhub",
        "readinessProbe": {"httpGet": {"path": "/hub/health", "port": PORT}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "20m"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/jupyterhub"},
            {"name": "state", "mountPath": "/srv/jupyterhub"},
        ],
    }
    pod = {
        "serviceAccountName": "hub",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "fsGroup": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [
            {"name": "config", "configMap": {"name": "hub"}},
            {"name": "state", "emptyDir": {}},
        ],
        "terminationGracePeriodSeconds": 0,
    }
    template = {"metadata": {"labels": LABELS}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": template}
    return _object("apps/v1", "Deployment", spec={**spec, "strategy": {"type": "Recreate"}})


def _object(version: str, kind: str, **rest: Any) -> dict[str, Any]:
    """Return an object of the hub, which all have one name."""
    metadata = {"name": "hub", "namespace": NAMESPACE}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}
