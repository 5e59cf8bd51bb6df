"""The audit log: what the API server was asked, by whom. It holds no bodies."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

OWN_USERS = [
    "system:apiserver",
    "system:kube-controller-manager",
    "system:kube-proxy",
    "system:kube-scheduler",
]
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        # What the control plane and the nodes read all day would hide the rest.
        {"level": "None", "users": OWN_USERS, "verbs": ["get", "list", "watch"]},
        {
            "level": "None",
            "userGroups": ["system:nodes", "system:serviceaccounts:kube-system"],
            "verbs": ["get", "list", "watch"],
        },
        {"level": "None", "resources": [{"group": "coordination.k8s.io"}]},
        {"level": "Metadata"},
    ],
}


@dataclass(frozen=True)
class Request:
    """One request to the API server, as the audit log has it; `code` is the answer's status.

    `time` is when it came, `answered` when the answer was complete, or a watch began.
    `resource` is empty where the path names none (`/readyz`), and `group` for the core's resources.
    `is_allowed`: the user had the right; what admission refuses is another matter. A watch is there
    once it began.
    """

    time: datetime
    answered: datetime
    user: str
    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    uri: str
    code: int
    is_allowed: bool

    @property
    def is_dry_run(self) -> bool:
        """Tell whether it changed nothing, by its own wish."""
        return "dryRun=All" in self.uri


@dataclass(frozen=True)
class AuditLog:
    """Written by the API server into `directory`."""

    directory: Path

    @property
    def _log(self) -> Path:
        return self.directory / "audit.log"

    def flags(self) -> list[str]:
        """Make the directory; return the API server's flags."""
        self.directory.mkdir(exist_ok=True)
        policy = self.directory / "policy.json"
        policy.write_text(json.dumps(POLICY, indent=1))
        return [
            f"--audit-policy-file={policy}",
            f"--audit-log-path={self._log}",
            "--audit-log-maxsize=10000",  # megabytes; one file, or the reader would miss some
        ]

    def requests(self, user: str) -> list[Request]:
        """Return a user's requests in the order of their answers, each once.

        The user is written as Kubernetes does: `system:serviceaccount:NAMESPACE:NAME`.
        """
        found: dict[str, Request] = {}
        if not self._log.exists():
            return []
        with self._log.open() as lines:
            for line in lines:
                if user not in line or not line.endswith("\n"):
                    continue  # the last line may be in the making
                event = json.loads(line)
                if event["user"].get("username") == user:
                    # A watch is written when it begins and when it ends.
                    found.setdefault(event["auditID"], _request(event))
        return list(found.values())


def _request(event: Any) -> Request:
    target = event.get("objectRef", {})
    return Request(
        time=_moment(event["requestReceivedTimestamp"]),
        answered=_moment(event["stageTimestamp"]),
        user=event["user"]["username"],
        verb=event["verb"],
        group=target.get("apiGroup", ""),
        resource=target.get("resource", ""),
        subresource=target.get("subresource", ""),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        uri=event["requestURI"],
        code=event.get("responseStatus", {}).get("code", 0),
        is_allowed=event.get("annotations", {}).get("authorization.k8s.io/decision") == "allow",
    )


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
