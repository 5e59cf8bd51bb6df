"""The layers of our images: Debian's Python below, our dependencies, our wheel on top.

Each layer is a tar file. The lower ones take most of the time and rarely change, so they are
cached. Nothing runs as root or in a container: packages are unpacked, wheels are installed into a
directory, and the image's own Python compiles them, started by the image's own loader.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Collection
from email import message_from_bytes
from pathlib import Path

from tests.cluster.imagebuild import oci
from tests.cluster.imagebuild.cache import build_once, cache_root
from tests.cluster.imagebuild.uv import ROOT, find_uv

CONTAINERFILES = ROOT / "k8s" / "images"
PACKAGES = CONTAINERFILES / "packages.txt", Path(__file__).parent / "debian-slim.txt"
# Raise it when this module begins to build other layers from the same input.
CACHE_VERSION = "2"
PYTHON = "3.11"
USER, GROUP, HOME = 1000, 100, "home/jovyan"
DIST_PACKAGES = Path("usr/local/lib") / f"python{PYTHON}" / "dist-packages"
UNUSED_SHARE_FOLDERS = (
    "doc",
    "doc-base",
    "man",
    "lintian",
    "locale",
    "bug",
    "menu",
    "pixmaps",
    "applications",
)
ETC = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\njovyan:x:1000:100::/home/jovyan:/bin/sh\n",
    "group": "root:x:0:\nusers:x:100:\n",
    "nsswitch.conf": "hosts: files dns\n",
}


class Debian:
    """The lowest layer: Debian's Python and a busybox shell. `tree` has the same files."""

    def __init__(self) -> None:
        names = " ".join([CACHE_VERSION, platform.machine(), *debian_packages()])
        self.key = _digest(names.encode())
        self._place = build_once(cache_root() / "images" / f"debian-{self.key}", _build_debian)
        self.tree = self._place / "tree"

    def layer(self) -> oci.Layer:
        """Return the layer at the bottom of every image."""
        return oci.Layer.at(self._place / "layer.tar")


def _build_debian(target: Path) -> None:
    tree = target / "tree"
    for name in ("bin", "sbin", "lib", "lib64"):
        (tree / "usr" / name).mkdir(parents=True)
        (tree / name).symlink_to(f"usr/{name}")
    for name in ("etc", "proc", "sys", "dev", "run", "root", "tmp", "var/tmp", HOME):
        (tree / name).mkdir(parents=True)
    _unpack_packages(target / "packages", tree)
    for name, content in ETC.items():
        (tree / "etc" / name).write_text(content)
    for name in ("tmp", "var/tmp"):
        (tree / name).chmod(0o1777)
    (tree / "usr/local/bin").mkdir(parents=True)
    (tree / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    applets = subprocess.run(
        [tree / "bin/busybox", "--list"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.split()
    for applet in applets:
        if not (tree / "usr/bin" / applet).exists():
            (tree / "usr/bin" / applet).symlink_to("busybox")
    _compile(tree, tree, Path("usr/lib") / f"python{PYTHON}")
    oci.layer_from_tree(target / "layer.tar", tree, {HOME: (USER, GROUP)})


def _unpack_packages(downloads: Path, tree: Path) -> None:
    downloads.mkdir()
    result = subprocess.run(
        ["apt-get", "download", "--quiet", *debian_packages()],
        cwd=downloads,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if result.returncode:
        raise RuntimeError(f"apt-get download failed ('apt-get update' first?): {result.stderr}")
    unused = [f"--exclude=./usr/share/{name}" for name in UNUSED_SHARE_FOLDERS]
    for package in sorted(downloads.glob("*.deb")):
        files = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
        subprocess.run(
            # Debian 12's packages still contain /bin and /lib, which are links into /usr here.
            ["tar", "-x", "--keep-directory-symlink", "--no-same-owner", "-C", tree, *unused],
            stdin=files.stdout,
            check=True,
        )
        if files.wait():
            raise RuntimeError(f"dpkg-deb cannot read {package.name}")
    shutil.rmtree(downloads)


def debian_packages() -> list[str]:
    """Return the names of the packages of the lowest layer."""
    lines = [line for file in PACKAGES for line in file.read_text().splitlines()]
    return [name for line in lines if (name := line.partition("#")[0].strip())]


class Packages:
    """The layers of a wheel: cached ones with its dependencies, and the wheel itself."""

    def __init__(self, debian: Debian, wheel: Path, constraints: Path) -> None:
        self._debian, self._wheel, self._constraints = debian, wheel, constraints
        metadata = _metadata(wheel)
        self._key = _digest(debian.key.encode(), constraints.read_bytes(), metadata)
        self.version = message_from_bytes(metadata)["Version"]

    def dependencies(self) -> oci.Layer:
        """Return the layer with the requirements of the wheel."""
        return oci.Layer.at(self._build_once("dependencies", self._build_dependencies))

    def extra(self, extra: str, *options: str) -> oci.Layer:
        """Return the layer with what an extra of the wheel, and `options` of uv, add."""
        return self._above([self.dependencies()], extra, f"{self._wheel}[{extra}]", *options)

    def group(self, name: str, extra: str, *options: str) -> oci.Layer:
        """Return the layer with a dependency group of the checkout, above that of an extra."""
        lower = [self.dependencies(), self.extra(extra, *options)]
        requirements = (f"{self._wheel}[{extra}]", *options, f"--group={name}")
        return self._above(lower, name, *requirements)

    def wheel(self, path: Path) -> oci.Layer:
        """Write the layer with the wheel itself to `path`."""
        with tempfile.TemporaryDirectory(dir=path.parent) as directory:
            tree = self._install(Path(directory), str(self._wheel), "--no-deps")
            _compile(self._debian.tree, tree, DIST_PACKAGES)
            return oci.layer_from_tree(path, tree)

    def _build_once(self, name: str, build: Callable[[Path], None]) -> Path:
        return build_once(cache_root() / "images" / f"{name}-{self._key}", build) / "layer.tar"

    def _build_dependencies(self, target: Path) -> None:
        tree = self._install(target / "all", str(self._wheel))
        _subtract(tree, self._files_of_wheel(target))
        self._write(target, tree)

    def _above(self, lower: list[oci.Layer], name: str, *requirements: str) -> oci.Layer:
        """Return the layer with what requirements need beyond lower layers and the wheel."""

        def build(target: Path) -> None:
            tree = self._install(target / "all", *requirements)
            known = self._files_of_wheel(target)
            for layer in lower:
                with tarfile.open(layer.path) as archive:
                    known.update(archive.getnames())
            _subtract(tree, known)
            self._write(target, tree)

        return oci.Layer.at(self._build_once(name, build))

    def _files_of_wheel(self, target: Path) -> set[str]:
        tree = self._install(target / "wheel", str(self._wheel), "--no-deps")
        return {str(path.relative_to(tree)) for path in tree.rglob("*")}

    def _write(self, target: Path, tree: Path) -> None:
        """Write a tree below `target` as its layer, and remove all else there."""
        _compile(self._debian.tree, tree, DIST_PACKAGES)
        oci.layer_from_tree(target / "layer.tar", tree)
        for name in ("all", "wheel"):
            shutil.rmtree(target / name)

    def _install(self, directory: Path, *requirements: str) -> Path:
        """Return a file tree with the packages in the local `dist-packages` of Debian's Python."""
        flat = directory / "flat"
        platform_tag = f"{platform.machine()}-manylinux_2_36"  # Debian 12's C library
        subprocess.run(
            [
                *(find_uv(), "pip", "install", "--quiet", "--only-binary=:all:"),
                *(f"--target={flat}", f"--constraint={self._constraints}"),
                *(f"--python-version={PYTHON}", f"--python-platform={platform_tag}"),
                *requirements,
            ],
            cwd=ROOT,  # where `--group` finds pyproject.toml
            check=True,
        )
        tree = directory / "tree"
        (tree / DIST_PACKAGES).parent.mkdir(parents=True)
        flat.rename(tree / DIST_PACKAGES)
        for name in ("bin", "share", "etc"):
            if (folder := tree / DIST_PACKAGES / name).is_dir():
                folder.rename(tree / "usr/local" / name)
        (tree / DIST_PACKAGES / ".lock").unlink(missing_ok=True)  # uv's
        for script in (tree / "usr/local").glob("bin/*"):
            _set_interpreter(script)
        return tree


def _set_interpreter(script: Path) -> None:
    content = script.read_bytes()
    shebang, newline, body = content.partition(b"\n")
    if shebang.startswith(b"#!") and b"python" in shebang:
        mode = script.stat().st_mode
        script.unlink()  # it may be a hard link into uv's cache: never write to it
        script.write_bytes(f"#!/usr/bin/python{PYTHON}".encode() + newline + body)
        script.chmod(mode)


def _subtract(tree: Path, lower: Collection[str]) -> None:
    """Remove from `tree` the files that `lower` names, and directories that become empty."""
    for directory, _, files in os.walk(tree, topdown=False):
        base = Path(directory)
        for name in files:
            if str((base / name).relative_to(tree)) in lower:
                (base / name).unlink()
        if base != tree and not any(base.iterdir()):
            base.rmdir()


def _compile(debian: Path, tree: Path, inner: Path) -> None:
    """Byte-compile `tree/inner` with the image's Python, not with this machine's.

    The compiled files are unchecked: sources in an image never change, and have no real times.
    """
    if not (tree / inner).is_dir():
        return
    machine = platform.machine()
    loader = next((debian / "usr/lib64").glob("ld-linux-*"), None) or next(
        (debian / "usr/lib").glob("ld-linux-*")
    )
    libraries = debian / "usr/lib" / f"{machine}-linux-gnu"
    result = subprocess.run(
        [
            *(loader, "--library-path", libraries, debian / f"usr/bin/python{PYTHON}"),
            *("-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"),
            *("-s", tree, "-p", "/", tree / inner),
        ],
        env={"PYTHONHOME": str(debian / "usr"), "PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    # Some packages contain templates that are not valid Python. They stay uncompiled.
    if result.returncode and "SyntaxError" not in result.stdout:
        raise RuntimeError(f"compileall failed: {result.stdout}")


def _metadata(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return archive.read(name)


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:20]
