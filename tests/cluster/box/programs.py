"""Builds the cluster's programs from source and keeps them."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from pathlib import Path

from tests.cluster.box.go import Go, find_go
from tests.cluster.imagebuild.cache import build_once, cache_root

MODULE = Path(__file__).parent
KUBERNETES = "k8s.io/kubernetes"
# The linker strips the debug information anyway. Several compilers run at a time, so none needs
# threads of its own. Without both, 700 packages took 13 % less processor time on two cores.
GO_FLAGS = ("-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false -c=1")
PAUSE_FLAGS = ("-Os", "-static")


def build_programs() -> Path:
    """The directory with kube-apiserver, kubelet, kubectl, coredns, gpu-plugin, pause and more.

    With an empty cache this takes minutes and needs a module proxy; raises
    `subprocess.CalledProcessError` where a build fails.
    """
    cache = cache_root() / "cluster"
    go = find_go(cache)
    return build_once(cache / _key(go), lambda target: _build(go, target))


def _key(go: Go) -> str:
    recipe = [go.version, platform.machine(), *GO_FLAGS, *PAUSE_FLAGS]
    digest = hashlib.sha256(" ".join(recipe).encode())
    sources = (
        path for name in ("go.mod", "go.sum", "go.work*", "*.go") for path in MODULE.rglob(name)
    )
    for source in sorted(sources):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:20]


def _build(go: Go, target: Path) -> None:
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}

    def run(*arguments: str) -> str:
        return subprocess.run(
            [go.program, *arguments],
            cwd=MODULE,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout

    version = json.loads(run("list", "-m", "-json", KUBERNETES))["Version"]
    major, minor, _ = version.removeprefix("v").split(".")
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    flags = " ".join(f"-X k8s.io/component-base/version.{k}={v}" for k, v in stamps.items())
    # One command, and one version of each module for all (go.work): shared packages compile once.
    run(
        *("build", *GO_FLAGS, "-ldflags", f"-s -w {flags}"),
        *("-o", f"{target}/", "tool", "./gpu-plugin", "./coredns"),
    )
    source = Path(json.loads(run("list", "-m", "-json", KUBERNETES))["Dir"])
    pause = source / "build/pause/linux/pause.c"
    subprocess.run(
        ["gcc", *PAUSE_FLAGS, f"-DVERSION={version}", "-o", target / "pause", pause], check=True
    )
