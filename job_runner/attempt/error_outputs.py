"""Finds the error in the outputs of a cell whose kernel replies "ok", as after `%run`, `%%capture`.

IPython shows such an exception by itself, and the run goes on. papermill looks for it in the
outputs once all cells ran.
"""

from __future__ import annotations

from typing import Any

from ..diagnosis.error_patterns import is_clean_exit

Record = dict[str, Any]


class ErrorOutputs:
    """The error outputs of one cell, record by record; `first` is None while it has none.

    What an Output widget captures is no output of the cell. `clear_output` removes outputs.
    """

    def __init__(self) -> None:
        self.first: dict[str, Any] | None = None
        self._capturing: set[str] = set()
        self._clear_next = False

    def feed(self, record: Record) -> None:
        """Take one more record of the cell, a valid one."""
        match record:
            case {"k": "widget", "id": identifier, "state": {"msg_id": message}}:
                self._capturing.discard(identifier)
                if message:
                    self._capturing.add(identifier)
            case {"k": "widget_close", "id": identifier}:
                self._capturing.discard(identifier)
            case {"k": "clear", "wait": wait} if not self._capturing:
                self._clear_next = True
                if not wait:
                    self._clear_if_due()
            case {"k": "output", "output": output} if not self._capturing:
                self._clear_if_due()
                if self.first is None and _is_failure(output):
                    self.first = output

    def _clear_if_due(self) -> None:
        if self._clear_next:
            self.first, self._clear_next = None, False


def _is_failure(output: dict[str, Any]) -> bool:
    """Tell whether an output is an error that counts: an exit with 0 does not."""
    if output["output_type"] != "error":
        return False
    return not is_clean_exit(output["ename"], output["evalue"])
