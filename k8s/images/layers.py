"""The layers of our images: Debian's Python below, our dependencies, our wheel on top.

Each is a tar file. The lower ones take most of the time and seldom change: they are kept in the
cache. Nothing runs as root or in a container: packages are unpacked, wheels are installed into a
directory, and the image's own Python, started through its own loader, compiles them.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

from k8s.images import oci
from k8s.images.cache import build_once, cache_root
from k8s.images.uv import find_uv

PACKAGES = Path(__file__).parent / "packages.txt"
# Raise it when this module makes other layers from the same input.
RECIPE = "1"
PYTHON = "3.11"
USER, GROUP, HOME = 1000, 100, "home/jovyan"
DIST_PACKAGES = Path("usr/local/lib") / f"python{PYTHON}" / "dist-packages"
UNUSED = ("doc", "doc-base", "man", "lintian", "locale", "bug", "menu", "pixmaps", "applications")
ETC = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\njovyan:x:1000:100::/home/jovyan:/bin/sh\n",
    "group": "root:x:0:\nusers:x:100:\n",
    "nsswitch.conf": "hosts: files dns\n",
}


class Debian:
    """Debian's Python and a busybox shell: the lowest layer, and the tree it was made from."""

    def __init__(self) -> None:
        machine = platform.machine()
        key = _digest(RECIPE.encode(), machine.encode(), PACKAGES.read_bytes())
        self.key = key
        self._place = build_once(cache_root() / "images" / f"debian-{key}", _build_debian)
        self.tree = self._place / "tree"

    def layer(self) -> oci.Layer:
        """As every image has it at the bottom."""
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
    for name in ("python", "python3"):
        (tree / "usr/bin" / name).symlink_to(f"python{PYTHON}")
    applets = subprocess.run(
        [tree / "bin/busybox", "--list"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.split()
    for applet in applets:
        if not (tree / "usr/bin" / applet).exists():
            (tree / "usr/bin" / applet).symlink_to("busybox")
    _compile(tree, tree, Path("usr/lib") / f"python{PYTHON}")
    oci.layer_from_tree(target / "layer.tar", tree, {HOME: (USER, GROUP)})


def _unpack_packages(downloads: Path, tree: Path) -> None:
    lines = (line.partition("#")[0].strip() for line in PACKAGES.read_text().splitlines())
    names = [line for line in lines if line]
    downloads.mkdir()
    answer = subprocess.run(
        ["apt-get", "download", "--quiet", *names],
        cwd=downloads,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if answer.returncode:
        raise RuntimeError(f"apt-get download failed ('apt-get update' first?): {answer.stderr}")
    unused = [f"--exclude=./usr/share/{name}" for name in UNUSED]
    for package in sorted(downloads.glob("*.deb")):
        files = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
        subprocess.run(
            # Debian 12's packages still name /bin and /lib, which are links into /usr here.
            ["tar", "-x", "--keep-directory-symlink", "--no-same-owner", "-C", tree, *unused],
            stdin=files.stdout,
            check=True,
        )
        if files.wait():
            raise RuntimeError(f"dpkg-deb cannot read {package.name}")
    shutil.rmtree(downloads)


class Packages:
    """The Python packages of a wheel: its dependencies in two cached layers, and itself."""

    def __init__(self, debian: Debian, wheel: Path, constraints: Path) -> None:
        self._debian, self._wheel, self._constraints = debian, wheel, constraints
        key = _digest(debian.key.encode(), constraints.read_bytes(), _metadata(wheel))
        self._place = build_once(cache_root() / "images" / f"python-{key}", self._build)

    def dependencies(self) -> oci.Layer:
        """What the wheel requires."""
        return oci.Layer.at(self._place / "dependencies.tar")

    def controller(self) -> oci.Layer:
        """What its extra `controller` requires beyond that."""
        return oci.Layer.at(self._place / "controller.tar")

    def wheel(self, path: Path) -> oci.Layer:
        """The wheel itself, written to `path`."""
        with tempfile.TemporaryDirectory(dir=path.parent) as directory:
            tree = self._install(Path(directory), str(self._wheel), "--no-deps")
            _compile(self._debian.tree, tree, DIST_PACKAGES)
            return oci.layer_from_tree(path, tree)

    def _build(self, target: Path) -> None:
        own = self._install(target / "own", str(self._wheel), "--no-deps")
        base = self._install(target / "base", str(self._wheel))
        extra = self._install(target / "extra", f"{self._wheel}[controller]")
        _subtract(extra, base)
        _subtract(base, own)
        for tree, name in ((base, "dependencies"), (extra, "controller")):
            _compile(self._debian.tree, tree, DIST_PACKAGES)
            oci.layer_from_tree(target / f"{name}.tar", tree)
        for name in ("own", "base", "extra"):
            shutil.rmtree(target / name)

    def _install(self, directory: Path, *what: str) -> Path:
        """A file tree with the packages where Debian's Python looks for a machine's own."""
        flat = directory / "flat"
        platform_tag = f"{platform.machine()}-manylinux_2_36"  # Debian 12's C library
        subprocess.run(
            [
                *(find_uv(), "pip", "install", "--quiet", "--only-binary=:all:"),
                *(f"--target={flat}", f"--constraint={self._constraints}"),
                *(f"--python-version={PYTHON}", f"--python-platform={platform_tag}"),
                *what,
            ],
            check=True,
        )
        tree = directory / "tree"
        (tree / DIST_PACKAGES).parent.mkdir(parents=True)
        flat.rename(tree / DIST_PACKAGES)
        for name in ("bin", "share", "etc"):
            if (found := tree / DIST_PACKAGES / name).is_dir():
                found.rename(tree / "usr/local" / name)
        (tree / DIST_PACKAGES / ".lock").unlink(missing_ok=True)  # uv's
        for script in (tree / "usr/local").glob("bin/*"):
            _set_interpreter(script)
        return tree


def _set_interpreter(script: Path) -> None:
    content = script.read_bytes()
    first, newline, rest = content.partition(b"\n")
    if first.startswith(b"#!") and b"python" in first:
        mode = script.stat().st_mode
        script.unlink()  # never write into it: it may be a hard link into uv's cache
        script.write_bytes(f"#!/usr/bin/python{PYTHON}".encode() + newline + rest)
        script.chmod(mode)


def _subtract(tree: Path, other: Path) -> None:
    """Remove from `tree` the files that `other` has too, and the directories left empty."""
    for directory, _, files in os.walk(tree, topdown=False):
        base = Path(directory)
        for name in files:
            if (other / (base / name).relative_to(tree)).exists():
                (base / name).unlink()
        if base != tree and not any(base.iterdir()):
            base.rmdir()


def _compile(debian: Path, tree: Path, inner: Path) -> None:
    """Byte-compile `tree/inner` with the image's Python, whatever Python this machine has.

    Unchecked: an image's sources never change, and its files' times say nothing.
    """
    if not (tree / inner).is_dir():
        return
    machine = platform.machine()
    loader = next((debian / "usr/lib64").glob("ld-linux-*"), None) or next(
        (debian / "usr/lib").glob("ld-linux-*")
    )
    libraries = debian / "usr/lib" / f"{machine}-linux-gnu"
    answer = subprocess.run(
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
    # Some packages ship templates that are no Python; those are reported and stay uncompiled.
    if answer.returncode and "SyntaxError" not in answer.stdout:
        raise RuntimeError(f"compileall failed: {answer.stdout}")


def _metadata(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return archive.read(name)


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:20]
