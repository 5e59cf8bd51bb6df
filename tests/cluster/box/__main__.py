"""`python -m tests.cluster.box up`: a cluster for use by hand, until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from tests.cluster.box.cluster import Cluster
from tests.cluster.box.programs import build_programs


def main() -> None:
    """Read the command line; build, or boot and wait."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.box")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build the programs, print where they are")
    up = commands.add_parser("up", help="boot a cluster and keep it until Ctrl-C")
    up.add_argument("--gpus", type=int, default=2)
    up.add_argument("--image", type=Path, action="append", default=[], help="OCI archive to load")
    arguments = parser.parse_args()
    if arguments.command == "build":
        sys.stdout.write(f"{build_programs()}\n")
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit())
    with (
        tempfile.TemporaryDirectory(prefix="jupyter-to-job-") as run_dir,
        Cluster.boot(Path(run_dir), gpus=arguments.gpus) as cluster,
    ):
        for archive in arguments.image:
            cluster.load_image(archive)
        sys.stderr.write(f"logs: {cluster.sandbox.logs}\n")
        sys.stdout.write(f"export KUBECONFIG={cluster.kubeconfig} PATH={cluster.programs}:$PATH\n")
        sys.stdout.flush()
        signal.pause()


if __name__ == "__main__":
    main()
