"""The administrator's door to the cluster: documents of the API server, and errors of ours.

The controller's door has the operations that its rights are for. This one reads whatever the
administrator may read, with the administrator's own kubeconfig.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

import yaml

from ....backends.kubernetes.api_status import error_of_answer
from ....domain.errors import BadInput, Unavailable

Manifest = dict[str, Any]
TIMEOUT = 10.0
"""Seconds for one request."""
PAGE_SIZE = 500
_NO_CLUSTER = "Set KUBECONFIG, name another --context, or run it in a pod with a service account."
_PROXY = "/proxy/"
_NO_WAY = (
    "Does a network policy, such as k8s/network/gateway, or a private control plane keep the API "
    "server from there? Jobs do not need that way."
)


class Answer(NamedTuple):
    """What was answered, and when: by the clock of whoever answered, None where it does not say."""

    body: str
    clock: float | None


class ClusterApi:
    """The API server, as a kubeconfig reaches it."""

    def __init__(self, client: Any) -> None:
        self._client = client

    @classmethod
    def connect(cls, context: str | None = None) -> ClusterApi:
        """Read the kubeconfig, or the service account of this pod.

        Raises BadInput without the client, Unavailable without a cluster.
        """
        try:
            from kubernetes import client, config
        except ImportError as error:
            raise BadInput(
                "The Kubernetes client is not installed here.",
                "python -m pip install 'jupyter-to-job[controller]'",
            ) from error
        configuration = client.Configuration()
        configuration.retries = False
        load = partial(config.load_kube_config, context=context)
        try:
            try:
                load(client_configuration=configuration)
            except config.ConfigException as error:
                if context is not None:
                    raise
                try:
                    config.load_incluster_config(  # type: ignore[no-untyped-call]
                        client_configuration=configuration
                    )
                except config.ConfigException as of_pod:
                    raise config.ConfigException(f"{error} (as a pod: {of_pod})") from error
        except (config.ConfigException, OSError, ValueError, yaml.YAMLError) as error:
            raise Unavailable(f"No cluster is configured here: {error}", _NO_CLUSTER) from error
        return cls(client.ApiClient(configuration))

    @property
    def address(self) -> str:
        """The API server's."""
        return str(self._client.configuration.host)

    def get(self, path: str, **query: str) -> Manifest:
        """Return a document. Raises NotFound, Refused and Unavailable."""
        document: Manifest = json.loads(self.ask("GET", path, query).body)
        return document

    def items(self, path: str, **query: str) -> Iterator[Manifest]:
        """Yield the documents of a list, page by page."""
        parameters: dict[str, str] = {**query, "limit": str(PAGE_SIZE)}
        while True:
            page = self.get(path, **parameters)
            yield from page["items"]
            parameters["continue"] = page["metadata"].get("continue") or ""
            if not parameters["continue"]:
                return

    def create(self, path: str, body: Manifest, **query: str) -> Manifest:
        """Create an object, or with `dryRun` try to. Raises BadInput and Conflict, too."""
        document: Manifest = json.loads(self.ask("POST", path, query, body).body)
        return document

    def delete(self, path: str) -> None:
        """Delete an object at once."""
        self.ask("DELETE", path, {"gracePeriodSeconds": "0"})

    def ask(
        self, method: str, path: str, query: dict[str, str], body: Manifest | None = None
    ) -> Answer:
        """Make a request. Raises errors of our tree."""
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        resource = f"{path}?{urlencode(query)}" if query else path
        headers = {"Accept": "application/json, */*", "Content-Type": "application/json"}
        try:
            request = self._client.param_serialize(
                method, resource, header_params=headers, body=body, auth_settings=["BearerToken"]
            )
            response = self._client.call_api(*request, _request_timeout=TIMEOUT)
            text = response.read().decode(errors="replace")
        except (ApiException, HTTPError, OSError) as error:
            if _PROXY in path:
                raise Unavailable(f"No answer through {resource}: {error}", _NO_WAY) from error
            message = f"{self.address} cannot be reached: {error}"
            raise Unavailable(message, _NO_CLUSTER) from error
        if response.status >= 400:
            failure = error_of_answer(response.status, text, response.reason or text)
            if _PROXY in path and isinstance(failure, Unavailable):
                raise Unavailable(failure.message, _NO_WAY)
            raise failure
        return Answer(text, _moment(response.headers.get("Date")))

    def seconds_ahead(self, path: str) -> float | None:
        """Return how far the clock of whoever answers a path is ahead of this machine's."""
        begin = time.time()
        clock = self.ask("GET", path, {}).clock
        # Dates have whole seconds: half of one is added, so that the error is even.
        return None if clock is None else clock + 0.5 - (begin + time.time()) / 2


def _moment(date: str | None) -> float | None:
    """Return a Date header as unix time."""
    try:
        return None if date is None else parsedate_to_datetime(date).timestamp()
    except ValueError:
        return None
