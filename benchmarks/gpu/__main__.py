"""Checks and measures the local backend and the runner on the GPU of this machine."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from pathlib import Path

from ..machine import print_machine
from . import detection, failures, reclaim, sampling
from .card import Card
from .product import Product
from .report import Report

PARTS = {
    "detection": detection.check,
    "sampling": sampling.check,
    "failures": failures.check,
    "reclaim": reclaim.check,
}


def main() -> int:
    """Print a table for each part, and return 1 if something is not as it should be."""
    parser = argparse.ArgumentParser(prog="benchmarks.gpu", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART",
                        help=f"of {', '.join(PARTS)}")  # fmt: skip
    parts = parser.parse_args().only
    print_machine()
    card = Card()
    print(card.describe())
    report = Report()
    for part in parts:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
            product = Product(Path(folder))
            try:
                PARTS[part](product, card, report)
            except Exception:  # the other parts may still say something
                traceback.print_exc()
                report.row(part, "broke off", good=False)
            product.close()
        print(f"  ({part}: {time.monotonic() - began:.0f} s)", flush=True)
    print("\nfaults: " + "; ".join(report.faults) if report.faults else "\nall is as it should be")
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
