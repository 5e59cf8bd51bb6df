"""The API server's audit log: who asked it what."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from ssl import create_default_context

import pytest

from tests.cluster.box.boot import Box
from tests.cluster.box.wait import wait_for
from tests.cluster.eve import until_allowed

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def ask(box: Box, token: str, path: str, document: object = None) -> int:
    """Send a request with a token (POST where there is a document); the answer's status."""
    request = urllib.request.Request(
        box.api_url + path,
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        data=None if document is None else json.dumps(document).encode(),
    )
    context = create_default_context(cafile=str(box.ca_file))
    try:
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            answer.read()
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.side_by_side
def test_the_audit_log_has_each_request_of_a_user_once(box: Box) -> None:
    box.kubectl("create", "serviceaccount", "audited")
    edit = ("--clusterrole=edit", "--serviceaccount=default:audited")
    box.kubectl("create", "rolebinding", "audited", *edit)
    token = box.kubectl("create", "token", "audited").strip()
    until_allowed(box, "system:serviceaccount:default:audited", "default")
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}}

    codes = [
        ask(box, token, f"{CONFIGMAPS}?dryRun=All", made),
        ask(box, token, CONFIGMAPS, made),
        ask(box, token, f"{CONFIGMAPS}/made"),
        ask(box, token, f"{CONFIGMAPS}?watch=true&timeoutSeconds=1"),
        ask(box, token, "/api/v1/namespaces/kube-system/secrets"),
    ]

    user = "system:serviceaccount:default:audited"
    wait_for("all is written", lambda: len(box.audit.requests(user)) == len(codes))
    requests = box.audit.requests(user)
    assert [request.code for request in requests] == codes == [201, 201, 200, 200, 403]
    assert [request.verb for request in requests] == ["create", "create", "get", "watch", "list"]
    assert [request.is_dry_run for request in requests] == [True, False, False, False, False]
    assert (requests[2].resource, requests[2].name) == ("configmaps", "made")
    assert (requests[4].resource, requests[4].namespace) == ("secrets", "kube-system")
