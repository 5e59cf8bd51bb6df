"""Tells a command of an event: its facts are in variables, and as JSON on standard input."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from pathlib import Path

from .failure import NotSent
from .hooks import Hook
from .message import HookMessage

_PREFIX = "JOB_"
_TRY_AGAIN = 75
"""The exit status (EX_TEMPFAIL) of a command that wants to be started again."""
_MAX_WORDS = 200


def run_command(hook: Hook, message: HookMessage) -> None:
    """Run a hook's command in a session of its own. Raises NotSent."""
    assert hook.command is not None
    facts = {**message.data, "event": message.event, "title": message.title, "id": message.id}
    variables = {
        f"{_PREFIX}{key.upper()}": "" if value is None else str(value).replace("\0", "")
        for key, value in facts.items()
    }
    with tempfile.TemporaryFile() as facts_file, tempfile.TemporaryFile() as errors:
        facts_file.write(message.as_json())
        facts_file.seek(0)
        try:
            process = subprocess.Popen(
                hook.command,
                env={**os.environ, **variables},
                cwd=Path.home() if Path.home().is_dir() else "/",
                stdin=facts_file,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise NotSent(f"It cannot be started: {error}.", is_final=True) from error
        status = _wait(process, hook.timeout)
        errors.seek(0)
        words = errors.read()[-_MAX_WORDS:].decode(errors="replace").strip().splitlines()
    if status is None:
        raise NotSent(f"It took longer than {hook.timeout} s, and was ended.", is_final=True)
    if status != 0:
        details = f": {words[-1]}" if words else ""
        message_text = f"It ended with exit status {status}{details}"
        raise NotSent(message_text, is_final=status != _TRY_AGAIN)


def _wait(process: subprocess.Popen[bytes], timeout: float) -> int | None:
    """Return the exit status of a command; None if it took too long, and was killed."""
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None
