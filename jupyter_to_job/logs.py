"""Log lines of controller, agents and couriers, and the id that those of one request share.

A browser or a command makes the id, or the first server that is asked. It goes along with each
request, is recorded with the job, and is in every line about that job, from the gateway's to the
agent's. So a user can quote it, and an administrator finds all that happened by one search.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

TEXT, JSON = FORMATS = ("text", "json")
HEADER = "X-Request-ID"
FORMAT_VARIABLE = "JUPYTER_TO_JOB_LOG_FORMAT"
REQUEST_VARIABLE = "JUPYTER_TO_JOB_REQUEST_ID"
"""How an agent or a courier learns the format, and the id of the request that its job came by."""
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_NOTHING: Mapping[str, str] = {}
_context: ContextVar[Mapping[str, str]] = ContextVar("jupyter_to_job_log_context", default=_NOTHING)


def new_request_id() -> str:
    """Return a new id: short enough to be read out, and as good as unique."""
    return secrets.token_hex(8)


def accepted_request_id(sent: str | None) -> str:
    """Return the id that a client sent if it is one, else a new one: it gets into logs."""
    return sent if sent is not None and _ID.fullmatch(sent) else new_request_id()


def request_id() -> str | None:
    """Return the id of the request that this task or thread works on."""
    return _context.get().get("request_id")


@contextlib.contextmanager
def context(**fields: str | None) -> Iterator[None]:
    """Add fields to the log lines of a block, and of the tasks that begin in it."""
    token = _context.set(_context.get())
    try:
        add_context(**fields)
        yield
    finally:
        _context.reset(token)


def add_context(**fields: str | None) -> None:
    """Add fields to all further log lines of this task, or of the present `context`."""
    values = {name: value for name, value in fields.items() if value is not None}
    _context.set({**_context.get(), **values})


def configure(log_format: str) -> None:
    """Write what is logged in this process to stderr, in one of `FORMATS`."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == JSON else TextFormatter())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)


class TextFormatter(logging.Formatter):
    """Lines for people. A request's id stands at the end of those that belong to one."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - of the library
        """Return the line without a traceback."""
        line = super().formatMessage(record)
        request = request_id()
        return line if request is None else f"{line} request_id={request}"


class JsonFormatter(logging.Formatter):
    """One JSON object a line, for programs that collect logs.

    It has `time`, `level`, `logger`, `message`; `job` and `request_id` of what it is about; the
    `fields` that a call of the logger gave in `extra`; and `exception`, a traceback.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_context.get(),
            **getattr(record, "fields", _NOTHING),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)
