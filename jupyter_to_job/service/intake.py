"""Taking a submission: check it, resolve it, record it. After this nothing else is consulted."""

from __future__ import annotations

import os
import shutil
import socket
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ..backends.port import Backend
from ..domain import times
from ..domain.errors import Conflict
from ..domain.job import Submission
from ..domain.names import SUFFIX, job_name
from ..exchange import FileExchange, InputFile, Request
from ..exchange.request import Environment, digest_of
from ..flavors import Catalog, Choice
from ..workspace import Frozen, FrozenInput

_PASSED_ON = frozenset(
    [
        "PATH",
        "HOME",
        "LANG",
        "TZ",
        "VIRTUAL_ENV",
        "PYTHONPATH",
        "LD_LIBRARY_PATH",
        "JUPYTER_PATH",
        "JUPYTER_CONFIG_PATH",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
    ]
)
_DRAWS = 8


@dataclass(frozen=True)
class Caller:
    """Who submits, and how the notebook's side looks from there.

    `workspace` is the absolute root on the caller's side; `environment` what its runner starts
    with; `origin` what a gateway read of the dev pod; `sees_workspace` whether a runner of this
    backend finds the workspace at the same path; `enforce_memory` whether the runner has to hold
    its kernel to the flavor's memory (a container does that by itself).
    """

    owner: str
    workspace: str
    groups: frozenset[str] = frozenset()
    environment: Environment = field(default_factory=Environment)
    origin: dict[str, Any] | None = None
    sees_workspace: bool = True
    enforce_memory: bool = False


@dataclass(frozen=True)
class Intake:
    """Turns submissions into recorded jobs."""

    exchange: FileExchange
    backend: Backend
    catalog: Catalog = field(repr=False)

    def accept(self, asked: Submission, frozen: Frozen, caller: Caller) -> tuple[str, bool]:
        """Record the job and return its name, and whether it is new.

        Raises UnknownChoice, Refused, NeverFits, or Conflict where the idempotency key belongs to
        another request.
        """
        choice = self.catalog.choose(asked.flavor, asked.device, caller.groups)
        self.backend.admit(choice.demand, frozen.kernel)
        digest = digest_of(_comparable(asked), frozen.sha256)
        for _ in range(_DRAWS):
            request = _request(asked, frozen, caller, choice, digest, self.backend.name)
            known = self._known(request) if asked.idempotency_key is not None else None
            inputs = {i.path: partial(_copy, i) for i in frozen.inputs}
            if known is None and self.exchange.create(request, frozen.data, inputs, caller.origin):
                return request.name, True
            if known is not None:
                if known.digest == digest:
                    return known.name, False
                raise Conflict(
                    "This idempotency key belongs to another submission.", "Use a new one."
                )
        raise Conflict("No free job name was found.", "Submit again.")

    def _known(self, request: Request) -> Request | None:
        """Return the job that has this request's idempotency key, whatever it was labelled."""
        for name in self.exchange.jobs():
            if name[-SUFFIX:] == request.name[-SUFFIX:]:
                found = self.exchange.request(name)
                if (found.owner, found.notebook) == (request.owner, request.notebook):
                    return found
        return None


def local_environment(interpreter: str) -> Environment:
    """Return what a runner of this process's own environment starts with."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED_ON or name.startswith(("LC_", "CONDA_"))
    }
    return Environment(interpreter, socket.gethostname(), variables)


def _request(
    asked: Submission, frozen: Frozen, caller: Caller, choice: Choice, digest: str, backend: str
) -> Request:
    """Fill in request.json."""
    source = Path(caller.workspace, frozen.notebook)
    isolated = asked.isolated or not caller.sees_workspace
    limits = [s for s in (asked.max_runtime, choice.flavor.max_runtime) if s is not None]
    name = job_name(
        frozen.notebook, owner=caller.owner, key=asked.idempotency_key, label=asked.name
    )
    return Request(
        name=name,
        owner=caller.owner,
        notebook=frozen.notebook,
        source=str(source),
        workspace=caller.workspace,
        flavor=choice.flavor_name,
        device=choice.device_name,
        flavor_spec=choice.flavor.model_dump(mode="json", exclude_defaults=True),
        device_spec=choice.device.model_dump(mode="json", exclude_defaults=True),
        demand={k: str(v) for k, v in choice.demand.items()},
        snapshot_sha256=frozen.sha256,
        submitted=times.now(),
        backend=backend,
        digest=digest,
        parameters=asked.parameters,
        inputs=tuple(InputFile(i.path, i.sha256, i.size) for i in frozen.inputs),
        isolated=isolated,
        cwd=None if isolated else str(source.parent),
        env=asked.env,
        environment=caller.environment,
        kernel=frozen.kernel,
        max_runtime=min(limits, default=None),
        memory_limit=int(choice.demand["memory"]) if caller.enforce_memory else None,
        priority=asked.priority,
        output=asked.output,
    )


def _comparable(asked: Submission) -> dict[str, Any]:
    document = asdict(asked)
    del document["idempotency_key"], document["expected_sha256"], document["input_digests"]
    return document


def _copy(item: FrozenInput, target: Path) -> None:
    shutil.copyfile(item.source, target)
