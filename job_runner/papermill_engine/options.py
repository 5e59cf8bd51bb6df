"""The options of an engine of papermill: time limits, and copies of the output."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TextIO


@dataclass(frozen=True)
class Options:
    """The options of papermill's own engine, by its names; limits are seconds, None: none.

    `execution_timeout` is for each cell. papermill's own engine passes what else it is given on to
    nbclient; that has no meaning here and is left out.
    """

    log_output: bool = False
    stdout_file: TextIO | None = None
    stderr_file: TextIO | None = None
    start_timeout: float | None = None
    execution_timeout: float | None = None

    @classmethod
    def from_arguments(cls, arguments: dict[str, Any]) -> Options:
        """Return the options among an engine's arguments."""
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in arguments.items() if name in names})

    def copy_output(self, output: dict[str, Any]) -> None:
        """Copy an output's text to papermill's log and to the files that were asked for."""
        if output["output_type"] == "stream":
            file = self.stdout_file if output["name"] == "stdout" else self.stderr_file
            if file is not None:
                file.write(output["text"])
                file.flush()
            self._log(output["text"], warn=output["name"] == "stderr")
        elif "text/plain" in output.get("data", ()):
            self._log(output["data"]["text/plain"], warn=False)

    def _log(self, text: str, *, warn: bool) -> None:
        if self.log_output:
            from papermill.log import logger

            (logger.warning if warn else logger.info)(text)
