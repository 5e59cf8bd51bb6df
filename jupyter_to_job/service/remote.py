"""The same use cases behind a gateway. Freezing and publishing happen on this side.

A gateway knows no workspace roots. Paths cross as absolute ones without their leading slash, so a
server and a command line with different roots mean the same files.
"""

from __future__ import annotations

import io
import os
import uuid
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import httpx

from ..domain.errors import (
    BadInput,
    Unavailable,
    UnknownChoice,
    no_job,
)
from ..domain.job import Changes, Deleted, Job, State, Submission
from ..domain.known_fields import known_fields
from ..domain.names import is_job_name
from ..domain.preflight import Preflight
from ..domain.submission_rules import check_key, require_key
from ..domain.sweep import Run, submissions_of
from ..domain.transfer import Transfer
from ..exchange.blob_upload import BlobSender
from ..exchange.gateway import Gateway, GatewayExchange, GatewayJob, json_of
from ..exchange.patience import Patience
from ..exchange.result_download import fetch_notebook
from ..workspace import Frozen, resolve_output
from ..workspace.freezing.freeze import MAX_SENT_NOTEBOOK
from ..workspace.publishing.sign import MAX_SIGNED_IN_POD
from .catalog import require_choice
from .event_stream import parse_events
from .port import PAGE_SIZE, OpenNotebook, Page, Records, Text
from .publication import sign
from .remote_delivery import deliver_remotely
from .remote_files import RemoteFiles
from .submitting.packages import packages_of
from .submitting.preflight import inspect_files, merge_reports
from .submitting.submission import Caller, freeze_submission
from .submitting.utf8 import require_utf8

MAX_NAMES = 50
"""Names in an address: more of them do not pass every proxy."""
_sign = partial(sign, max_size=MAX_SIGNED_IN_POD)


class RemoteJobs:
    """Implements `service.port.Jobs` over a controller's REST, for one workspace on this host.

    `only_inside` hides jobs whose source is not in the workspace. Whoever knows the name of one can
    act on it: all are the caller's own.
    """

    backend = "kubernetes"
    pulls = True

    def __init__(
        self,
        url: str,
        token_file: Path,
        caller: Caller,
        ca_file: str = "",
        *,
        only_inside: bool = False,
    ) -> None:
        self._gateway = Gateway(url, token_file, ca_file)
        self._exchange = GatewayExchange(self._gateway)
        self._caller = replace(caller, max_notebook=MAX_SENT_NOTEBOOK)
        self._tree = caller.open_workspace()
        self._only_inside = only_inside

    def submit(self, submission: Submission, transfer: Transfer | None = None) -> tuple[Job, bool]:
        """See the port. Sent again after a lost connection it is still one job."""
        if submission.idempotency_key is not None:
            check_key(submission.idempotency_key)
        transfer, patience = transfer or Transfer(), Patience()
        submission, files = self._send_files(submission, transfer, patience)
        return self._submit(submission, files, transfer, patience)

    def sweep(
        self, submission: Submission, runs: Sequence[Run], transfer: Transfer | None = None
    ) -> Iterator[Job]:
        """See the port. The files are sent once, and not for a choice that the catalog refuses."""
        require_key(submission.idempotency_key)
        for run in runs:
            require_utf8(vars(run))
        transfer, patience = transfer or Transfer(), Patience()
        catalog = patience.call(self.flavors)
        for choice in dict.fromkeys((s.flavor, s.device) for s in submissions_of(submission, runs)):
            require_choice(catalog, *choice)
        submission, files = self._send_files(submission, transfer, patience)
        for run_submission in submissions_of(submission, runs):
            yield self._submit(run_submission, files, transfer, patience)[0]

    def preflight(self, submission: Submission) -> Preflight:
        """See the port: the problems of the workspace, then those of the gateway.

        Both are looked for at the same time: somebody waits for the answer.
        """
        require_utf8(vars(submission))
        body = self._body(replace(submission, results=None))  # checked on this side
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(self._gateway.call, "POST", "preflight", json=body)
            files = inspect_files(submission, self._caller)
            self._packages(files.kernel)  # cached for SEND, while the gateway is busy
            remote = Preflight.from_json(json_of(answer.result()))
        return merge_reports(files, remote, self._caller)

    def rerun(self, name: str, changes: Changes, transfer: Transfer | None = None) -> Job:
        """See the port. Sent again after a lost connection it is still one job."""
        require_utf8(vars(changes))
        if changes.idempotency_key is not None:
            check_key(changes.idempotency_key)
        body = {
            key: value
            for key, value in asdict(changes).items()
            if value is not None and key not in ("idempotency_key", "results")
        }
        if not changes.unset:
            del body["unset"]  # an older controller does not know it
        if changes.output is not None:
            output = resolve_output(self._tree, changes.output)
            self._caller.make_folder_of(output)
            body["output"] = self._absolute(output)
        patience = Patience()
        results = patience.call(lambda: self._results_of_rerun(name, changes))
        if results is not None:
            self._caller.make_folder_of(results)
            body["results"] = self._absolute(results)
        path, key = _path(name, "/rerun"), changes.idempotency_key
        response = self._post(path, body, key, transfer or Transfer(), patience)
        return self._job(json_of(response))

    def get(self, name: str) -> Job:
        """See the port. As one of a list: many wait, and the events of none are needed."""
        return self._job(self._require_visible(self._document(name)))

    def details(self, name: str) -> Job:
        """See the port."""
        document = json_of(self._gateway.call("GET", _path(name)))
        return self._job(self._require_visible(document))

    def files(self, name: str) -> RemoteFiles:
        """See the port."""
        return RemoteFiles(self._gateway, _path(name), self._relative)

    def find(
        self,
        states: Sequence[State] = (),
        limit: int = 50,
        cursor: str | None = None,
        notebook: str | None = None,
        group: str | None = None,
    ) -> Page:
        """See the port."""
        query: dict[str, Any] = {"limit": limit}
        if notebook is not None:
            query["notebook"] = self._absolute(notebook)
        if states:
            query["state"] = ",".join(s.value for s in states)
        if cursor is not None:
            query["cursor"] = cursor
        if group is not None:
            query["group"] = group
        while True:
            page = json_of(self._gateway.call("GET", "jobs", params=query))
            jobs = [self._job(document) for document in page["jobs"] if self._is_visible(document)]
            # An older gateway knows no groups, and answers with all jobs.
            jobs = [job for job in jobs if group is None or job.group == group]
            if jobs or page["next"] is None:  # readers take an empty page for the last one
                return Page(jobs, page["next"])
            query |= {"cursor": page["next"], "limit": PAGE_SIZE}  # there may be thousands

    def cancel(self, name: str) -> Job:
        """See the port."""
        return self._job(json_of(self._gateway.call("POST", _path(name, "/cancel"))))

    def delete(self, name: str) -> None:
        """See the port."""
        self._gateway.call("DELETE", _path(name))

    def deliver(self, name: str) -> Job:
        """Fetch the result and publish it in this workspace (`pull`), unless that was done.

        Raises Conflict if the notebook came from another volume than this pod has at its path. A
        job whose source or output is outside of this workspace is left to processes that reach it.
        Where the folder cannot be written the job is `held` for this reader; a later call tries
        again.
        """
        document = json_of(self._gateway.call("POST", _path(name, "/deliver")))
        job = self._job(document)
        paths = (document["notebook"], document["output"])
        is_inside = all(path is None or self._is_inside(path) for path in paths)
        if job.delivery.path is not None or not job.state.final or not is_inside:
            return job
        deliver_remotely(
            GatewayJob(self._exchange, name),
            name,
            self._tree,
            self._relative,
            self._absolute,
            sign=_sign,
        )
        return self.get(name)

    def logs(self, name: str, offset: int = 0) -> Text:
        """See the port."""
        response = self._gateway.call("GET", _path(name, "/logs"), params={"offset": offset})
        return Text(**known_fields(Text, json_of(response)))

    def journal(self, name: str, offset: int = 0) -> Records:
        """See the port."""
        response = self._gateway.call("GET", _path(name, "/journal"), params={"offset": offset})
        return Records(**known_fields(Records, json_of(response)))

    def notebook(self, name: str, max_size: int | None = None) -> OpenNotebook:
        """See the port: fetched into a file without a name."""
        return OpenNotebook(*fetch_notebook(self._gateway, _path(name, "/notebook"), max_size))

    def flavors(self) -> dict[str, Any]:
        """See the port."""
        catalog: dict[str, Any] = json_of(self._gateway.call("GET", "flavors"))
        return catalog

    def changes(self, names: Collection[str] | None = None) -> Iterator[Job | Deleted | None]:
        """See the port: the gateway's server-sent events; its heartbeats become None."""
        query = {"name": ",".join(names)} if names and len(names) <= MAX_NAMES else {}
        with self._gateway.stream("GET", "events", params=query) as response:
            for event in parse_events(response.iter_lines()):
                if not isinstance(event, dict):
                    yield event
                else:
                    yield self._job(event) if self._is_visible(event) else None
        raise Unavailable("The gateway ended the stream of events.", "It is taken up again.")

    def _document(self, name: str) -> dict[str, Any]:
        """Return a job with the gateway's paths. Raises NotFound."""
        if not is_job_name(name):
            raise no_job(name)
        page = json_of(self._gateway.call("GET", "jobs", params={"name": name}))
        for document in page["jobs"]:  # 0.1.0 does not know the query, and answers with all jobs
            if document["name"] == name:
                job_document: dict[str, Any] = document
                return job_document
        raise no_job(name)

    def _results_of_rerun(self, name: str, changes: Changes) -> str | None:
        """Return the folder that the caller's settings mean for the notebook of a job.

        None without a setting, or where it does not count. Raises BadInput.
        """
        if changes.output is not None or not (changes.results or self._caller.results):
            return None
        document = self._document(name)
        job = self._job(document)
        is_kept = job.asked is not None and job.asked.output and "output" not in changes.unset
        if is_kept or not self._is_inside(document["notebook"]):
            return None
        submission = Submission(job.notebook, results=changes.results)
        return self._caller.with_results(submission).results

    def _packages(self, kernel: str | None) -> dict[str, list[str]] | None:
        """Return the packages of a kernel; None if this process does not know them."""
        try:
            spec = self._caller.kernel_spec(kernel)
        except UnknownChoice:  # the job's image may have the kernel
            return None
        return None if spec is None else packages_of(spec["argv"])

    def _send_files(
        self, submission: Submission, transfer: Transfer, patience: Patience
    ) -> tuple[Submission, dict[str, Any]]:
        """Freeze, and send the files; return what a submission's body says of them."""
        submission = self._caller.with_results(submission)
        submission, frozen = freeze_submission(self._tree, submission, self._caller)
        paths = {"workspace": str(self._tree.root), "inputs": [i.path for i in frozen.inputs]}
        require_utf8({**vars(submission), **paths})
        self._caller.make_folder_of(submission.output or submission.results)
        inputs = self._upload(frozen, transfer, patience)
        packages = self._packages(frozen.kernel)
        files = {"expected_sha256": frozen.sha256, "inputs": inputs, "packages": packages}
        return submission, files

    def _submit(
        self,
        submission: Submission,
        files: dict[str, Any],
        transfer: Transfer,
        patience: Patience,
    ) -> tuple[Job, bool]:
        """Record a job whose files were sent; return it and whether it is new."""
        body = {**self._body(submission), **files}
        response = self._post("jobs", body, submission.idempotency_key, transfer, patience)
        return self._job(json_of(response)), response.status_code == 201

    def _upload(
        self, frozen: Frozen, transfer: Transfer, patience: Patience
    ) -> list[dict[str, str]]:
        """Send snapshot and inputs as blobs; return the inputs as the submission names them."""
        transfer.expect(sum(item.size for item in frozen.inputs))
        sender = BlobSender(self._gateway, patience)
        sender.send(io.BytesIO(frozen.data), len(frozen.data), frozen.notebook)
        inputs = []
        for item in frozen.inputs:
            try:
                with item.open() as file:
                    size = os.fstat(file.fileno()).st_size
                    label = f"the input {item.path}"
                    digest = sender.send(file, size, label, transfer.step)
            except OSError as error:
                raise BadInput(f"Cannot read the input {item.path}: {error.strerror}.") from error
            inputs.append({"path": self._absolute(item.path), "sha256": digest})
        return inputs

    def _post(
        self,
        path: str,
        body: dict[str, Any],
        key: str | None,
        transfer: Transfer,
        patience: Patience,
    ) -> httpx.Response:
        """Send a submission, again after a lost connection: with its key it is still one job."""
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        transfer.confirm()
        return patience.call(
            lambda: self._gateway.call("POST", path, json=body, headers=headers),
            transfer.check_repetition,
        )

    def _body(self, submission: Submission) -> dict[str, Any]:
        """Return the body of a submission, without the files that go as blobs."""
        # An older gateway refuses fields that it does not know.
        newer: dict[str, Any] = {
            "group": submission.group,
            "group_limit": submission.group_limit,
            "rerun_of": submission.rerun_of,
            "results": self._absolute_or_none(submission.results),
            "plan": submission.plan,
        }
        return {
            "notebook": self._absolute(submission.notebook),
            "flavor": submission.flavor,
            "device": submission.device,
            "parameters": submission.parameters,
            "isolated": submission.isolated,
            "env": submission.env,
            "max_runtime": submission.max_runtime,
            "output": self._absolute_or_none(submission.output),
            "name": submission.name,
            "priority": submission.priority,
            **{name: value for name, value in newer.items() if value is not None},
        }

    def _absolute(self, path: str) -> str:
        absolute = str(PurePosixPath(self._tree.root, path)).lstrip("/")
        return f"{absolute}/" if path.endswith("/") else absolute  # a resolved output's

    def _absolute_or_none(self, path: str | None) -> str | None:
        return None if path is None else self._absolute(path)

    def _relative(self, path: str) -> str:
        if not self._is_inside(path):
            return path
        relative = str(PurePosixPath("/", path).relative_to(self._tree.root))
        return f"{relative}/" if path.endswith("/") else relative

    def _is_visible(self, document: dict[str, Any]) -> bool:
        """Tell whether a job is not hidden; its document has the gateway's paths."""
        return not self._only_inside or self._is_inside(document["notebook"])

    def _require_visible(self, document: dict[str, Any]) -> dict[str, Any]:
        if not self._is_visible(document):
            raise no_job(document["name"])
        return document

    def _is_inside(self, path: str) -> bool:
        """Tell whether a path of the gateway's is in this workspace."""
        return PurePosixPath("/", path).is_relative_to(self._tree.root)

    def _job(self, document: dict[str, Any]) -> Job:
        return Job.from_json(document).with_paths(self._relative)


def _path(name: str, action: str = "") -> str:
    """Return the route of a job. Raises NotFound for an invalid name: it may be another route."""
    if not is_job_name(name):
        raise no_job(name)
    return f"jobs/{name}{action}"
