"""The table that a part prints, and the faults in it."""

from __future__ import annotations


class Report:
    """Prints a row at a time, and remembers what is not as it should be."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def title(self, text: str) -> None:
        print(f"\n{text}", flush=True)

    def row(self, what: str, figure: object, *, good: bool = True) -> None:
        print(f"  {what:58} {figure}{'' if good else '   <- FAULT'}", flush=True)
        if not good:
            self.faults.append(what)


def gib(amount: float | None) -> str:
    return "unknown" if amount is None else f"{amount / (1 << 30):.2f} GiB"


def percent(part: float | None) -> str:
    return "unknown" if part is None else f"{part * 100:.0f} %"
