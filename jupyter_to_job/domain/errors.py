"""The one error tree. Every error says what happened (message) and what to do (hint).

JobsError
├── BadInput                 the request is wrong: fix it and send again
│   ├── BadNotebook          the file is no notebook that can run
│   ├── BadCatalog           flavors.yaml is broken
│   ├── UnknownChoice        no such flavor, device, kernel
│   ├── SpecialFile          a folder, pipe, socket or device where a file is expected
│   └── CannotPublish        the result's folder is gone, read-only or full: held
├── Refused                  understood, and not allowed
│   └── NeverFits            larger than anything this backend has
├── NotFound                 no such job, or another owner's
│   ├── Cleared              it is over its retention: only request and outcome remain
│   └── NoRoute              no such route: the client may be newer
├── Conflict                 collides with what is recorded already
│   ├── Stale                the notebook changed since the client read it
│   ├── PlanChanged          the job would not run as its submitter was told
│   ├── Withdrawn            a submission that its client withdrew while it was sent
│   └── WrongOffset          an append that does not begin at the end
├── TooLarge                 over a size cap
│   └── OverBudget           over what a gateway keeps of one attempt: it takes no more of it
├── StorageFull              the exchange, or its owner's share of it, has no room for new jobs
├── PartlySubmitted          a sweep of which only some jobs are recorded
├── CannotDeliver            no courier can deliver this now: held
├── Unavailable              backend or exchange cannot be used now; try again (retryable)
│   └── TimedOut             a request came too slowly
└── Damaged                  a record on disk is not readable

Edges translate: `api.errors` to HTTP status codes, `cli.exits` to exit codes. Lower layers never
know about either. `retryable` decides requeue or fail in the loops.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple


class JobsError(Exception):
    """Root of the tree: `message` says what happened, `hint` what to do about it.

    `request_id`: a user can quote it, and log lines about this error have it; "" where none do.
    """

    code = "error"
    retryable = False
    is_caller_at_fault = False
    """Whether the caller alone can mend it; of others an administrator's log says more."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.request_id = ""

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class BadInput(JobsError):
    """The request is wrong as it stands."""

    code = "bad_input"
    is_caller_at_fault = True


class BadNotebook(BadInput):
    """The file is missing or is no notebook."""

    code = "bad_notebook"


class Fault(NamedTuple):
    """One thing that is wrong in a file; line and column count from 1."""

    line: int
    column: int
    message: str
    hint: str = ""


class BadCatalog(BadInput):
    """The catalog file cannot be used; `faults` has all that is wrong with it, in its order."""

    code = "bad_catalog"
    is_caller_at_fault = False

    def __init__(self, message: str, hint: str = "", faults: Sequence[Fault] = ()) -> None:
        super().__init__(message, hint)
        self.faults = tuple(faults)


class UnknownChoice(BadInput):
    """A flavor, device or kernel that does not exist here."""

    code = "unknown_choice"


class Refused(JobsError):
    """Understood, and not allowed."""

    code = "refused"


class NeverFits(Refused):
    """Asks for more than the backend has in all."""

    code = "never_fits"


class NotFound(JobsError):
    """No such job, or another owner's: the answer is the same."""

    code = "not_found"
    is_caller_at_fault = True


class Cleared(NotFound):
    """Snapshot, journal and result were removed when the job's retention was over."""

    code = "cleared"


class NoRoute(NotFound):
    """There is no such route: the client may be newer than this server, or older."""

    code = "no_route"


class Conflict(JobsError):
    """Collides with what is already recorded."""

    code = "conflict"
    is_caller_at_fault = True


class Stale(Conflict):
    """The notebook on disk is not the one that the caller read."""

    code = "stale"


class PlanChanged(Conflict):
    """The job would not run as its submitter was told before."""

    code = "plan_changed"


class Withdrawn(Conflict):
    """The client withdrew the submission before it was recorded."""

    code = "withdrawn"


class WrongOffset(Conflict):
    """An append that does not begin at the end, which is at `length` bytes."""

    code = "wrong_offset"

    def __init__(self, message: str, length: int) -> None:
        super().__init__(message, "Send from there.")
        self.length = length


class TooLarge(JobsError):
    """Over a size cap."""

    code = "too_large"
    is_caller_at_fault = True


class OverBudget(TooLarge):
    """Over what a gateway keeps of one attempt: sending it again is of no use."""

    code = "over_budget"


class StorageFull(JobsError):
    """There is no room for new jobs; those that run can still end."""

    code = "storage_full"


class PartlySubmitted(JobsError):
    """An error ended a sweep after some of its jobs were recorded: these stay."""

    code = "partly_submitted"


class CannotDeliver(JobsError):
    """No courier can deliver a result now. `is_final`: nor will one ever."""

    def __init__(self, message: str, hint: str = "", *, is_final: bool = False) -> None:
        super().__init__(message, hint)
        self.is_final = is_final


class Unavailable(JobsError):
    """The backend or gateway cannot be reached, or the exchange not be written to, now."""

    code = "unavailable"
    retryable = True


class TimedOut(Unavailable):
    """A request's body came too slowly, or stopped coming."""

    code = "timed_out"


def no_job(name: str) -> NotFound:
    """Return the error for a job that does not exist, or is another owner's: nobody sees which."""
    return NotFound(f"There is no job {name!r}.")


def no_group(group: str) -> NotFound:
    """Return the error for a group that no job belongs to. Its name may be mistyped."""
    return NotFound(f"There is no group {group!r}.")


def too_large_notebook(max_size: int) -> TooLarge:
    """Return the error for a notebook that is not parsed or converted for a browser."""
    return TooLarge(
        f"The notebook is over {max_size >> 20} MiB.",
        "Open it to see its pictures; the command line exports it as HTML or PDF.",
    )


def no_room(problem: str, error: OSError) -> Unavailable:
    """Return the error for a temporary file that cannot be written; `problem` begins its text."""
    import tempfile  # every command imports this module, and few need this

    hint = f"Make space in {tempfile.gettempdir()}, then try again."
    return Unavailable(f"{problem}: {error.strerror or error}.", hint)


class Damaged(JobsError):
    """A record in the exchange cannot be read."""

    code = "damaged"


BY_CODE: dict[str, type[JobsError]] = {
    cls.code: cls
    for cls in (
        JobsError,
        BadInput,
        BadNotebook,
        BadCatalog,
        UnknownChoice,
        Refused,
        NeverFits,
        NotFound,
        Cleared,
        NoRoute,
        Conflict,
        Stale,
        PlanChanged,
        Withdrawn,
        TooLarge,
        OverBudget,
        StorageFull,
        PartlySubmitted,
        Unavailable,
        TimedOut,
        Damaged,
    )
}
"""Each error by its code: how an error that crossed REST becomes itself again."""


ADDRESS_HINT = "Set JUPYTER_TO_JOB_GATEWAY to the address at which the gateway itself answers."
_BY_STATUS: dict[int, type[JobsError]] = {401: Refused, 403: Refused, 404: NotFound, 409: Conflict}
_MAY_PASS = (404, 405, 408, 429)
"""What an ingress answers below 500 while the gateway starts, or for too many requests."""


def error_of_answer(status: int, content: bytes, content_type: str = "") -> JobsError:
    """Return the error that a gateway's answer describes.

    All errors of a gateway are documents with a code. Those of later versions may have codes that
    are not known here: then the status decides. An answer to HEAD has the type of a document only.
    """
    try:
        body = json.loads(content)["error"]
    except (ValueError, KeyError, TypeError):
        body = None
    if not content and content_type.startswith("application/json"):
        body = {"code": ""}
    if not isinstance(body, dict) or not isinstance(body.get("code"), str):
        return _error_in_between(status)
    message = body.get("message") or f"The gateway answered {status}."
    if body["code"] == WrongOffset.code:
        return WrongOffset(message, body["length"])
    fallback = _BY_STATUS.get(status, Unavailable if status >= 500 else JobsError)
    error = BY_CODE.get(body["code"], fallback)(message, body.get("hint", ""))
    error.request_id = str(body.get("request_id", ""))
    return error


def _error_in_between(status: int) -> JobsError:
    """Return the error for an answer of a proxy: its 404 says nothing about jobs and files.

    Below 400 it led elsewhere, or had a page where the gateway has a document.
    """
    if status >= 500:
        return Unavailable(f"The gateway answered {status}.")
    message = f"Something else than a gateway answered {status}."
    if status == 413:
        return JobsError(message, "Have the proxy in front of the gateway take bodies of 16 MiB.")
    if status in _MAY_PASS or status < 400:
        hint = "JUPYTER_TO_JOB_GATEWAY has to be the address of the gateway itself."
        return Unavailable(message, f"Try again in a moment. {hint}")
    return (Refused if status in (401, 403) else JobsError)(message, ADDRESS_HINT)
