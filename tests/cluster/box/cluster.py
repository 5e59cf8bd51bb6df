"""A cluster, as tests see it: the box, or one that somebody's kubeconfig leads to."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any


class KubectlError(Exception):
    """kubectl ended with an error; the message is its standard error."""


class Cluster:
    """A running cluster and a `kubectl` whose kubeconfig makes it the administrator."""

    def __init__(self, kubectl: Path, kubeconfig: Path, cache: Path) -> None:
        self._kubectl = kubectl
        self.kubeconfig = kubeconfig
        self._cache = cache

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
        """One object as decoded JSON; raises `KubectlError` where there is none."""
        return json.loads(self.kubectl("get", kind, name, f"--namespace={namespace}", "-o=json"))

    def apply(self, *manifests: object) -> None:
        """Server-side apply of decoded manifests."""
        items = {"apiVersion": "v1", "kind": "List", "items": manifests}
        self.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(items))

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
