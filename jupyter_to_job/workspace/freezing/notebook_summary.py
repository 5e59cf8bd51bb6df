"""The summary of a notebook: its kernel, its code and its parameters cell, without its outputs.

Python parses JSON with its lock held: 200 MB of notebook in a thread of a server would block all
requests for a second. So a subprocess parses a large one. It runs this file as a script with the
standard library alone, and starts in some hundredths of a second.
"""

from __future__ import annotations

import contextlib
import gc
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

LARGE = 2 << 20
"""Notebooks of more than this many bytes are parsed in a subprocess."""
MAX_CODE = 1 << 20
"""Characters of code that a summary has at most."""
_NEWEST = 4
_OLDEST = 3
"""The oldest nbformat that papermill upgrades by itself."""
_FAULT = 65
"""The exit status of the subprocess for an unreadable notebook."""
_MAX_ANSWER = 32 << 20
"""Characters of the answer of a subprocess with limited memory: its caller has little, too."""
_OOM_SCORE = 1000
"""Where the container is out of memory the kernel ends the subprocess, and not its caller."""
_PARAMETERS = "parameters"


class UnreadableNotebook(ValueError):
    """These bytes are no notebook that can run. Its arguments are a message and maybe a hint."""


@dataclass(frozen=True)
class NotebookSummary:
    """`kernel` and `language` as the notebook names them, None where it does not; `code` by cell.

    `parameters_notebook` is a notebook with only the cell that declares the parameters, if any
    does. It is None for a notebook in an old format: use the notebook itself.
    """

    kernel: str | None
    language: str | None
    code: tuple[str, ...]
    parameters_notebook: str | None


def summarize_notebook(data: bytes, label: str, max_memory: int | None = None) -> NotebookSummary:
    """Check that `data` is a notebook that can run, and return its summary.

    `max_memory` is how many bytes of address space the subprocess for a large notebook may have,
    None: as many as it likes. Raises BadNotebook, with line and column where the JSON is broken,
    and Unavailable where a large notebook cannot be passed to the subprocess.
    """
    from ...domain.errors import BadNotebook, no_room  # the script has no package

    try:
        if len(data) <= LARGE:
            return _read(_decode(data, label), label)
        return _read_in_subprocess(data, label, max_memory)
    except UnreadableNotebook as fault:
        raise BadNotebook(*fault.args) from fault
    except OSError as error:
        raise no_room(f"{label} cannot be looked at", error) from error


def _read_in_subprocess(data: bytes, label: str, max_memory: int | None) -> NotebookSummary:
    limits = [] if max_memory is None else [str(max_memory)]
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        ran = subprocess.run(
            [sys.executable, "-I", __file__, label, *limits],
            stdin=file,
            capture_output=True,
            cwd="/",
            check=False,
        )
    if ran.returncode == 0:
        answer = json.loads(ran.stdout)
        return NotebookSummary(**{**answer, "code": tuple(answer["code"])})
    if ran.returncode == _FAULT:
        raise UnreadableNotebook(*json.loads(ran.stdout))
    raise UnreadableNotebook(
        f"{label} could not be read (exit status {ran.returncode}).", "Make it smaller."
    )


def _read(text: str, label: str) -> NotebookSummary:
    document = _parse(text, label)
    version = document.get("nbformat") if isinstance(document, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise UnreadableNotebook(f"{label} is no notebook: it has no nbformat.")
    if version > _NEWEST:
        raise UnreadableNotebook(
            f"{label} is in nbformat {version}, which is newer than {_NEWEST}.",
            "Save it in the older format.",
        )
    if version < _OLDEST:
        raise UnreadableNotebook(
            f"{label} is in nbformat {version}, which is too old.", "Open it in Jupyter, save it."
        )
    _check_parts(document, version, label)
    metadata = document["metadata"]
    language = _name(metadata.get("language_info")) or _name(metadata.get("kernelspec"), "language")
    return NotebookSummary(
        kernel=_name(metadata.get("kernelspec")),
        language=language,
        code=tuple(_code(document.get("cells", ()))),
        parameters_notebook=_parameters_notebook(document) if version == _NEWEST else None,
    )


def _decode(data: bytes, label: str) -> str:
    if not data or data.isspace():
        raise UnreadableNotebook(
            f"{label} is no notebook: it is empty.", "Save it and submit again."
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UnreadableNotebook(f"{label} is no notebook: it is not UTF-8 text.") from error


def _parse(text: str, label: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UnreadableNotebook(
            f"{label} is no notebook: broken JSON at line {error.lineno}, column {error.colno} "
            f"({error.msg})."
        ) from error
    except (ValueError, RecursionError) as error:  # a number too long, or nested too deep
        raise UnreadableNotebook(f"{label} is no notebook: {error}.") from error


def _check_parts(document: dict[str, Any], version: int, label: str) -> None:
    """Check that the parts exist. The runner validates their content."""
    key = "cells" if version == _NEWEST else "worksheets"
    parts: tuple[tuple[str, type], ...] = ((key, list), ("metadata", dict), ("nbformat_minor", int))
    for part, kind in parts:
        if not isinstance(document.get(part), kind):
            raise UnreadableNotebook(f"{label} is no notebook: it has no {part}.")
    for index, item in enumerate(document[key]):
        if not isinstance(item, dict) or (key == "cells" and "cell_type" not in item):
            raise UnreadableNotebook(f"{label} is no notebook: {key}[{index}] is not one.")


def _name(part: Any, key: str = "name") -> str | None:
    name = part.get(key) if isinstance(part, dict) else None
    return name if isinstance(name, str) and name else None


def _code(cells: list[dict[str, Any]]) -> Iterator[str]:
    room = MAX_CODE
    for cell in cells:
        if cell["cell_type"] == "code" and room > 0:
            text = _text(cell.get("source"))[:room]
            room -= len(text)
            yield text


def _text(source: Any) -> str:
    lines = source if isinstance(source, list) else [source]
    return "".join(line for line in lines if isinstance(line, str))


def _parameters_notebook(document: dict[str, Any]) -> str:
    """Return a notebook with the first cell that is tagged `parameters`, or with none."""
    metadata = document["metadata"]
    copied = {k: metadata[k] for k in ("kernelspec", "language_info") if k in metadata}
    tagged = [
        {"cell_type": "code", "metadata": {"tags": [_PARAMETERS]}, "source": _text(c.get("source"))}
        for c in document["cells"]
        if _PARAMETERS in _tags(c)
    ]
    return json.dumps({"nbformat": _NEWEST, "metadata": copied, "cells": tagged[:1]})


def _tags(cell: dict[str, Any]) -> list[Any]:
    metadata = cell.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    return tags if isinstance(tags, list) else []


def _main(label: str, max_memory: int | None) -> int:
    gc.disable()  # it would look through the millions of lists of a hostile notebook all the time
    if max_memory is not None:
        _limit_memory(max_memory)
    try:
        # Nothing holds the bytes any longer when the text is parsed.
        answer: Any = asdict(_read(_decode(sys.stdin.buffer.read(), label), label))
        status = 0
    except UnreadableNotebook as fault:
        answer, status = fault.args, _FAULT
    text = json.dumps(answer)
    if max_memory is not None and len(text) > _MAX_ANSWER:
        return 1
    sys.stdout.write(text)
    return status


def _limit_memory(max_memory: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (max_memory, max_memory))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(_OOM_SCORE))


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None))
