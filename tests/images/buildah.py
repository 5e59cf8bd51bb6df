"""Builds Containerfiles with buildah in a chroot, on a base image made from Debian packages.

No registry, no daemon, no user namespace: it works in a container, too, as root.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.cluster.imagebuild.uv import ROOT

BASE = "docker.io/library/debian:12-slim"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
HOUSE = Path("/usr/local/share/ca-certificates/house.crt")
"""Where Debian takes further authorities from."""


def missing() -> str:
    """Return what keeps us from building here, "" if nothing does."""
    lacking = [name for name in ("buildah", "mmdebstrap") if shutil.which(name) is None]
    if lacking:
        return f"the Containerfiles are not built: {' and '.join(lacking)} missing"
    return "" if os.geteuid() == 0 else "the Containerfiles are not built: that needs root"


class Buildah:
    """A storage of images in a folder.

    Its layers are mounts where the kernel can do that there, else copies, which take minutes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._use("overlay")
        if not self._mounts():
            self.close()
            self._use("vfs")

    def _use(self, driver: str) -> None:
        storage, running = self._folder / driver, self._folder / f"{driver}-run"
        places = ("--root", str(storage), "--runroot", str(running))
        self._storage = (*places, "--storage-driver", driver)

    def _mounts(self) -> bool:
        """Tell whether a container of this storage can be mounted."""
        made = self._try("from", "scratch")
        return made.returncode == 0 and self._try("mount", made.stdout.strip()).returncode == 0

    def close(self) -> None:
        """Undo all mounts, so that the folder can be deleted."""
        self._try("umount", "--all")
        mount = self._folder / "overlay" / "overlay"
        if mount.is_mount():  # buildah binds it to itself
            subprocess.run(["umount", mount], check=True)

    def run(self, command: str, *arguments: str) -> str:
        """Run a command of buildah; return what it printed."""
        process = self._try(command, *arguments)
        assert process.returncode == 0, f"{process.stdout[-2000:]}\n{process.stderr[-4000:]}"
        return process.stdout.strip()

    def _try(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["buildah", *self._storage, command, *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )

    def make_base(self) -> None:
        """Make what the Containerfiles are based on. It trusts what this machine trusts."""
        archive = self._folder / "base.tar"
        subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=minbase", "bookworm", archive], check=True
        )
        container = self.run("from", "scratch")
        self.run("add", container, str(archive), "/")
        archive.unlink()
        if CERTIFICATES.is_file():  # a proxy of the house may have a certificate of its own
            self.run("copy", container, str(CERTIFICATES), str(HOUSE))
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        self.run("config", "--env", path, container)
        self.run("commit", "--rm", container, BASE)

    def build(self, containerfile: Path, wheel: Path, version: str) -> str:
        """Build an image as docs/install.md says; return its id."""
        context = self._folder / "context"
        for name in ("pyproject.toml", "requirements.lock", "k8s/images/packages.txt"):
            (context / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, context / name)
        (context / "dist").mkdir(exist_ok=True)
        shutil.copy(wheel, context / "dist")
        # Layers: the images share their first stages.
        flags = ("--isolation=chroot", "--pull-never", "--layers", f"--build-arg=VERSION={version}")
        name = f"localhost/{containerfile.parent.name}"
        self.run("build", *flags, f"--file={containerfile}", f"--tag={name}", str(context))
        return name

    def config(self, image: str) -> dict[str, Any]:
        """Return the `config` of an image's OCI configuration."""
        inspected = json.loads(self.run("inspect", "--type=image", image))
        config: dict[str, Any] = inspected["OCIv1"]["config"]
        return config

    def tree(self, image: str) -> Path:
        """Return a folder with an image's files."""
        container = self.run("from", "--pull-never", image)
        return Path(self.run("mount", container))
