"""The API server: who asked it what, and what goes on while it is away."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from ssl import create_default_context

import pytest

from tests.cluster.box.boot import Box
from tests.cluster.box.cluster import KubectlError
from tests.cluster.box.images import Images
from tests.cluster.box.wait import wait_for
from tests.cluster.workloads import delete_jobs, job, phases

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


def test_the_audit_log_has_each_request_of_a_user_once(box: Box) -> None:
    box.kubectl("create", "serviceaccount", "audited")
    edit = ("--clusterrole=edit", "--serviceaccount=default:audited")
    box.kubectl("create", "rolebinding", "audited", *edit)
    token = box.kubectl("create", "token", "audited").strip()
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


def test_pods_run_on_while_the_api_server_is_away(box: Box, images: Images) -> None:
    script = "until [ -e /tmp/go ]; do sleep 0.1; done; date +%s"
    box.apply(job("patient", images.notebook, script))
    wait_for("it runs", lambda: phases(box, "patient") == ["Running"], timeout=60)

    with box.without_api_server(), pytest.raises(KubectlError, match="refused"):
        box.kubectl("get", "nodes")

    # What was there is there, and the other programs found it again.
    box.kubectl("exec", "job/patient", "--", "touch", "/tmp/go")
    wait_for("it ends", lambda: phases(box, "patient") == ["Succeeded"], timeout=60)
    box.apply(job("after", images.notebook, "true"))
    wait_for("a new Job runs", lambda: phases(box, "after") == ["Succeeded"], timeout=60)
    delete_jobs(box, "patient", "after")
