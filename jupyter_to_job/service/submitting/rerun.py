"""Submits a job again from the snapshot and inputs in the exchange, not from the workspace."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from job_runner.protocol import layout

from ...domain.errors import BadInput, Damaged, Refused
from ...domain.job import Changes, Submission
from ...domain.names import SUFFIX, slug
from ...domain.run_place import RunPlace
from ...domain.suggestions import did_you_mean
from ...exchange import FileExchange, Request
from ...exchange.retention import raise_if_cleared
from ...workspace import Frozen, Input
from ...workspace.paths import open_regular
from .submission import Caller, PlaceRun

if TYPE_CHECKING:
    from ...flavors.catalog import Choice

_Value = TypeVar("_Value")


def stored_snapshot(exchange: FileExchange, request: Request, *, share: bool = False) -> Frozen:
    """Return the job's own snapshot and inputs. Raises Cleared, or Damaged if the snapshot changed.

    `freeze_input` raises Damaged for an input that it copies, and that changed. `share`: no run
    writes to inputs in the exchange, so that two jobs may have the same files. An agent compares
    these when it fetches them.
    """
    name = request.name
    raise_if_cleared(exchange, name)
    data = exchange.read(name, layout.SNAPSHOT)
    folder = exchange.directory(name) / layout.INPUTS
    inputs = tuple(
        Input(
            i.path,
            i.size,
            partial(open_regular, str(folder / i.path), i.path),
            i.sha256,
            folder / i.path if share else None,
        )
        for i in request.inputs
    )
    if data is None or hashlib.sha256(data).hexdigest() != request.snapshot_sha256:
        raise_if_cleared(exchange, name)  # it may have been cleared just now
        raise Damaged(f"The snapshot of {name} is not what was submitted.", "Submit the notebook.")
    source = Path(request.source)
    return Frozen(request.notebook, source, data, request.snapshot_sha256, request.kernel, inputs)


def resubmission(request: Request, changes: Changes) -> Submission:
    """Return the job's submission with the changes. Raises BadInput for an unset unknown name."""
    flavor = request.flavor if changes.flavor is None else changes.flavor
    device = request.device if flavor == request.flavor else None
    asked, unset = request.asked, set(changes.unset)
    limit = None if "max_runtime" in unset else asked.max_runtime
    output = None if "output" in unset else asked.output
    name = None if "name" in unset else asked.name or _label(request)
    return Submission(
        notebook=request.notebook,
        flavor=flavor,
        device=device if changes.device is None else changes.device,
        parameters={**without_unset("parameter", request.parameters, unset), **changes.parameters},
        inputs=asked.inputs,
        packages=request.packages,
        isolated=asked.isolated,
        env={**without_unset("variable", request.env, unset), **changes.env},
        max_runtime=limit if changes.max_runtime is None else changes.max_runtime,
        output=output if changes.output is None else changes.output,
        name=changes.name or name,
        priority=request.priority if changes.priority is None else changes.priority,
        group=request.group,
        group_limit=request.group_limit,
        rerun_of=request.name,
        results=changes.results,
        plan=changes.plan,
        idempotency_key=changes.idempotency_key,
    )


_UNSET_PREFIXES = {"parameter": "parameters.", "variable": "env."}


def without_unset(
    kind: str, values: dict[str, _Value], unset: Collection[str]
) -> dict[str, _Value]:
    """Return the values that are not unset. Raises BadInput for a name that is not among them."""
    prefix = _UNSET_PREFIXES[kind]
    removed = {name.removeprefix(prefix) for name in unset if name.startswith(prefix)}
    for name in sorted(removed - values.keys()):
        hint = did_you_mean(name, values) if values else f"It has no {kind}."
        raise BadInput(f"The job has no {kind} {name!r}.", hint)
    return {name: value for name, value in values.items() if name not in removed}


def _label(request: Request) -> str | None:
    """Return the first part of an older job's name, None if it follows from the notebook."""
    label = request.name[: -SUFFIX - 1]
    return None if label == slug(PurePosixPath(request.notebook).stem) else label


def original_caller(request: Request, caller: Caller) -> Caller:
    """Return the caller with the workspace and the environment of the original submission.

    A rerun that would lose the notebook's folder is refused when it is placed. The environment and
    the kernel are used if they are of this host and the interpreter still
    exists: the kernel's name may mean nothing in this process's environment.
    """
    original = request.environment
    usable = original.host == caller.environment.host and Path(original.interpreter).is_file()
    is_recorded = request.kernel_spec is not None or original != caller.environment
    place_run = caller.place_run
    return replace(
        caller,
        place_run=None if place_run is None else partial(_place_rerun, request, place_run),
        workspace=request.workspace,
        roots=request.roots,
        environment=original if usable else caller.environment,
        resolve_kernel=(
            (lambda _: request.kernel_spec) if usable and is_recorded else caller.resolve_kernel
        ),
    )


def _place_rerun(request: Request, place_run: PlaceRun, choice: Choice, source: Path) -> RunPlace:
    """Return where a rerun works.

    Raises Refused if the job worked in its notebook's folder, and this run would have no file of
    it: nothing was sent along, and nothing can be taken from a workspace as it is now.
    """
    place = place_run(choice, source)
    if place.isolated and not request.isolated and not request.inputs:
        why = "".join(f" {sentence}" for sentence in place.left_behind)
        raise Refused(
            f"{request.name} ran in its notebook's folder. With {choice.flavor_name} on "
            f"{choice.device_name} it cannot, and no files were sent along.{why}",
            "Keep flavor and device, or submit the notebook itself with the files that it needs as "
            "inputs.",
        )
    return place
