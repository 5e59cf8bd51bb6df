"""Publishes a job's result and artifacts in a workspace: the one function that does it.

The dispatcher calls it where the exchange is. A dev pod and a courier call it on the other side of
a gateway. So they have the same caps, say the same, and choose the same names: whoever comes second
finds the files of the first, and leaves them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO, NamedTuple, Protocol

from job_runner.protocol import times
from job_runner.protocol.fields import read_fields
from job_runner.protocol.outcome import ArtifactRecord
from job_runner.protocol.units import format_bytes

from ..domain.errors import Damaged, JobsError, TooLarge
from ..domain.names import printable
from ..exchange.records import DeliveryRecord, HeldRecord
from ..workspace import CannotPublish, Published, Workspace, publish
from ..workspace.publishing.artifacts import (
    PublishedArtifacts,
    find_artifacts,
    publish_artifacts,
)
from ..workspace.publishing.sign import MAX_SIGNED
from ..workspace.publishing.sign import sign as sign_notebook

MAX_LISTED, MAX_LISTED_NAME = 5, 200
"""Names of lost files in a message, the others are counted; and the characters of each."""
Sign = Callable[[Workspace, Published], str]
"""Signs a published notebook; returns what its user has to know of that, mostly nothing."""


@dataclass(frozen=True)
class Deliverable:
    """What is to be published of a job that has ended, and where.

    `notebook` and `output` are those of the request: paths of its workspace. The result, with the
    digest `sha256`, and the `artifacts` are those of an `attempt`. `published` is the notebook, if
    an earlier try published it.
    """

    name: str
    notebook: str
    output: str | None
    attempt: int
    sha256: str | None
    artifacts: tuple[ArtifactRecord, ...] = ()
    published: Published | None = None

    def to_document(self) -> dict[str, Any]:
        """Return the document that a gateway sends."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Deliverable:
        """Read it back. Raises FieldError."""
        return read_fields(cls, document)


class Result(NamedTuple):
    """A notebook to publish, its digest (None: not known), and what to say of it."""

    content: BinaryIO
    sha256: str | None
    message: str = ""


class ResultFiles(Protocol):
    """The files of an ended attempt: on this host, or behind a gateway.

    `artifacts_at` says where the artifacts are kept, as the end of a sentence.
    """

    artifacts_at: str

    def results(self) -> Iterable[Result]:
        """Yield the result, and then what can be had where that is damaged. Raises Damaged."""
        ...

    def artifact(self, path: str) -> BinaryIO:
        """Open a file that the run created. Raises OSError or BadInput if it is not there."""
        ...

    def note_published(self, published: Published) -> None:
        """Record that the notebook is in the workspace, unless another publisher has."""
        ...


def sign(workspace: Workspace, published: Published, max_size: int = MAX_SIGNED) -> str:
    """Have a published notebook signed by the user's notary, if it has at most `max_size` bytes."""
    if sign_notebook(workspace.root / published.path, published.sha256, max_size):
        return ""
    return (
        f"The notebook is over {format_bytes(max_size)}, so it is not signed: with Trust Notebook "
        "JupyterLab shows its HTML and JavaScript, too."
    )


def publish_job(
    deliverable: Deliverable,
    workspace: Workspace,
    files: ResultFiles,
    *,
    to_workspace: Callable[[str], str] = str,
    sign: Sign = sign,
) -> DeliveryRecord | HeldRecord:
    """Publish the result, then the artifacts; return delivery.json, or held.json with the reason.

    A notebook that was published before is left alone: its owner may be editing it. So it is noted
    before anything else that may take long. `to_workspace` converts a path of the request to one of
    `workspace`. Raises Unavailable where `files` cannot be reached now.
    """
    published, messages = deliverable.published, []
    try:
        if published is None:
            published, message = _publish_result(deliverable, workspace, files, to_workspace)
            files.note_published(published)
            messages += [message, sign(workspace, published)]
        artifacts, message = _publish_artifacts(deliverable, workspace, files, published)
        messages.append(message)
    except (CannotPublish, Damaged) as error:
        message = str(error)
        if published is not None:
            message = f"{published.path} is there, but not what the run created: {message}"
        return HeldRecord(message, failed=is_final(error))
    text = " ".join(filter(None, messages))
    return DeliveryRecord(
        published.path, published.sha256, times.now(), artifacts.paths, text or None
    )


def is_final(error: JobsError) -> bool:
    """Tell whether no later try can succeed: what is damaged, and no disk is to blame, stays so."""
    return isinstance(error, Damaged) and not isinstance(error.__cause__, OSError)


def _publish_result(
    deliverable: Deliverable,
    workspace: Workspace,
    files: ResultFiles,
    to_workspace: Callable[[str], str],
) -> tuple[Published, str]:
    """Publish the first result that is intact, and tell what is wrong with it, if anything.

    Raises CannotPublish, Damaged.
    """
    notebook = to_workspace(deliverable.notebook)
    output = None if deliverable.output is None else to_workspace(deliverable.output)
    name, damage = deliverable.name, None
    for result in files.results():
        try:
            with result.content as content:
                published = publish(workspace, notebook, output, name, content, result.sha256)
        except Damaged as error:
            damage = error
        else:
            return published, result.message
    raise damage or Damaged(f"The result of {name} is gone.", "Run it again.")


def _publish_artifacts(
    deliverable: Deliverable, workspace: Workspace, files: ResultFiles, published: Published
) -> tuple[PublishedArtifacts, str]:
    """Publish the files that the run created; tell what is missing."""
    try:
        artifacts = find_artifacts(
            deliverable.artifacts, deliverable.notebook, files.artifact, files.artifacts_at
        )
    except TooLarge as error:  # trying again would not help
        return PublishedArtifacts(), str(error)
    artifacts_found = publish_artifacts(workspace, published.path, deliverable.name, artifacts)
    if not artifacts_found.lost:
        return artifacts_found, ""
    lost = [printable(name)[:MAX_LISTED_NAME] for name in artifacts_found.lost]
    more = f" and {len(lost) - MAX_LISTED} more" if len(lost) > MAX_LISTED else ""
    return artifacts_found, (
        f"Of {len(artifacts)} files that the run created {len(lost)} are damaged or missing in "
        "the exchange, or have names that this folder cannot have, and were not copied: "
        f"{', '.join(lost[:MAX_LISTED])}{more}."
    )
