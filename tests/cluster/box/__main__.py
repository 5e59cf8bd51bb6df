"""`python -m tests.cluster.box up`: a cluster for use by hand, until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from tests.cluster.box.boot import T4, Box
from tests.cluster.box.images import build_images, build_single_user
from tests.cluster.box.programs import build_programs
from tests.cluster.box.requirements import CannotRunError, check

# Nobody provisions volumes there: claims find these.
SPARE_VOLUMES = 4


def main() -> None:
    """Read the command line; check, build, or boot and wait."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.box")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="say why this machine cannot run it, if so, with exit code 1")
    commands.add_parser("build", help="build the programs, print where they are")
    up = commands.add_parser("up", help="boot a cluster and keep it until Ctrl-C")
    up.add_argument(
        "--images", action="store_true", help="load our images, made from this checkout"
    )
    arguments = parser.parse_args()
    try:
        check()
    except CannotRunError as error:
        sys.exit(str(error))
    if arguments.command == "build":
        sys.stdout.write(f"{build_programs()}\n")
    elif arguments.command == "up":
        _up(images=arguments.images)


def _up(*, images: bool) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit())
    with (
        tempfile.TemporaryDirectory(prefix="jupyter-to-job-") as run_dir,
        Box.boot(Path(run_dir)) as box,
    ):
        if images:
            archive = Path(run_dir) / "images.tar"
            names = build_images(archive)
            box.load_image(archive)
            with_lab = build_single_user(archive)
            box.load_image(archive)
            archive.unlink()
            sys.stderr.write(f"images: {names.notebook} {names.controller} {with_lab}\n")
        for spare in range(SPARE_VOLUMES):
            box.add_volume(f"shared-{spare}", "ReadWriteMany", "ReadOnlyMany")
            box.add_volume(f"{T4.name}-{spare}", "ReadWriteOnce", node=T4.name)
        sys.stderr.write(f"logs: {box.sandbox.logs}\nkubectl: {box.programs / 'kubectl'}\n")
        sys.stdout.write(f"{box.kubeconfig}\n")
        sys.stdout.flush()
        signal.pause()


if __name__ == "__main__":
    main()
