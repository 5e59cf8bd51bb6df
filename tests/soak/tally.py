"""What a soak comes to: one row a kind, with what its random moments happened to hit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Row:
    """One kind of fault: scenarios that passed and failed, their seconds, and what they met."""

    passed: int = 0
    failed: int = 0
    seconds: float = 0.0
    met: Counter[str] = field(default_factory=Counter)


@dataclass
class Tally:
    """All rows of a session, and the seed that every moment was drawn from."""

    seed: int
    rows: dict[str, Row] = field(default_factory=dict)

    def row(self, kind: str) -> Row:
        return self.rows.setdefault(kind, Row())

    def lines(self) -> list[str]:
        """Return the summary table."""
        head = f"{'kind':<34}{'passed':>7}{'failed':>7}{'s':>7}  met"
        body = [
            f"{kind:<34}{row.passed:>7}{row.failed:>7}{row.seconds:>7.0f}  "
            + ", ".join(f"{what} {n}" for what, n in sorted(row.met.items()))
            for kind, row in self.rows.items()
        ]
        return [f"seed {self.seed}", head, *body]
