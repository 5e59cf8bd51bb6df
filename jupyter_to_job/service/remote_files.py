"""One job in detail, as a gateway tells it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from ..domain.job_record import CellReceipt, JobRecord
from ..exchange.gateway import Gateway, json_of
from ..exchange.result_download import fetch_notebook
from .port import OpenNotebook

_RECEIPT_FIELDS = tuple(field.name for field in fields(CellReceipt))


@dataclass(frozen=True)
class RemoteFiles:
    """Implements `service.port.JobFiles` over a controller's REST."""

    gateway: Gateway
    path: str
    convert: Callable[[str], str]

    def record(self) -> JobRecord:
        """See the port."""
        document = json_of(self.gateway.call("GET", f"{self.path}/record"))
        return JobRecord.from_json(document).with_paths(self.convert)

    def cells(self) -> list[CellReceipt]:
        """See the port."""
        cells = json_of(self.gateway.call("GET", f"{self.path}/cells"))["cells"]
        return [CellReceipt(**{k: cell.get(k) for k in _RECEIPT_FIELDS}) for cell in cells]

    def snapshot(self) -> OpenNotebook:
        """See the port."""
        return OpenNotebook(*fetch_notebook(self.gateway, f"{self.path}/snapshot"))
