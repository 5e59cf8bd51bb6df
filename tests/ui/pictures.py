"""Make the pictures of the pages out of what the browser tests have kept.

    python -m tests.ui.pictures

They are part of the repository, so they are small: at most 128 colours each, which an interface of
flat areas does not mind.
"""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from tests.ui.chromium import SCREENSHOTS

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SHOWN = (
    *("demo-dialog", "demo-live", "demo-result", "dialog-zh_TW", "sweep-results"),
    *("cluster-dialog-light", "cluster-panel-light"),
)
"""Those of clusters are by `tests/cluster`. What no test has kept stays as it is."""
WIDTH = 1100
COLOURS = 128


def shrink(source: Path, target: Path) -> None:
    """Write a smaller copy of a screenshot."""
    with Image.open(source) as opened:
        width = min(WIDTH, opened.width)
        height = round(opened.height * width / opened.width)
        small = opened.convert("RGB").resize((width, height), Image.Resampling.LANCZOS)
    flat = small.quantize(COLOURS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    flat.save(target, optimize=True)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    for name in SHOWN:
        if (taken := SCREENSHOTS / f"{name}.png").exists():
            shrink(taken, IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
