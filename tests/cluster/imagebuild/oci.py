"""Writes container images as OCI archives: a tar file per layer, and JSON that describes them.

Layers are not compressed, because the archive is imported on the machine that made it. Times and
owners are fixed, so that the same content has the same digest.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# The earliest day that zip files can store: some tools create them from files in an image.
FILE_TIME = 315532800
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
MEDIA_TYPE_PREFIX = "application/vnd.oci.image"


@dataclass(frozen=True)
class Layer:
    """A tar file and the sha256 of its bytes, in hex."""

    path: Path
    sha256: str

    @classmethod
    def at(cls, path: Path) -> Layer:
        """Return the layer that an earlier `layer_from_tree` wrote."""
        with path.open("rb") as file:
            digest = hashlib.sha256()
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        return cls(path, digest.hexdigest())


def layer_from_tree(
    path: Path, tree: Path, owners: Mapping[str, tuple[int, int]] | None = None
) -> Layer:
    """Write the files below `tree` as a layer, owned by root except `owners` (path: uid, gid)."""

    def normalize(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime = FILE_TIME
        member.uid, member.gid = (owners or {}).get(member.name, (0, 0))
        member.uname = member.gname = ""
        return member

    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for directory, subdirectories, files in os.walk(tree):
            subdirectories.sort()
            base = Path(directory)
            # A symbolic link to a directory is listed among the directories.
            for name in sorted([*files, *subdirectories]):
                member = base / name
                inner = str(member.relative_to(tree))
                tar.add(member, inner, recursive=False, filter=normalize)
    return Layer.at(path)


@dataclass(frozen=True)
class Image:
    """A name (full, as `docker.io/a/b:tag`), the layers bottom first, and the configuration.

    `config` is the `config` of the OCI image configuration: Env, User, WorkingDir, Entrypoint.
    """

    name: str
    layers: list[Layer]
    config: Mapping[str, object]


def write_archive(path: Path, images: list[Image]) -> None:
    """Write images as one archive for `ctr images import`; shared layers are in it once."""
    with tarfile.open(path, "w") as tar:
        for layer in {layer.sha256: layer for image in images for layer in image.layers}.values():
            tar.add(layer.path, f"blobs/sha256/{layer.sha256}")
        index = {"schemaVersion": 2, "manifests": [_add_image(tar, image) for image in images]}
        _add(tar, "index.json", json.dumps(index).encode())
        _add(tar, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')


def _add_image(tar: tarfile.TarFile, image: Image) -> dict[str, object]:
    diff_ids = [f"sha256:{layer.sha256}" for layer in image.layers]
    config = {
        "architecture": ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": image.config,
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{MEDIA_TYPE_PREFIX}.manifest.v1+json",
        "config": {"mediaType": f"{MEDIA_TYPE_PREFIX}.config.v1+json", **_add_blob(tar, config)},
        "layers": [
            {
                "mediaType": f"{MEDIA_TYPE_PREFIX}.layer.v1.tar",
                "digest": f"sha256:{layer.sha256}",
                "size": layer.path.stat().st_size,
            }
            for layer in image.layers
        ],
    }
    annotations = {
        "io.containerd.image.name": image.name,
        "org.opencontainers.image.ref.name": image.name.rpartition(":")[2],
    }
    reference = {"mediaType": f"{MEDIA_TYPE_PREFIX}.manifest.v1+json", **_add_blob(tar, manifest)}
    return {**reference, "annotations": annotations}


def _add_blob(tar: tarfile.TarFile, document: Mapping[str, object]) -> dict[str, object]:
    content = json.dumps(document, sort_keys=True).encode()
    digest = hashlib.sha256(content).hexdigest()
    _add(tar, f"blobs/sha256/{digest}", content)
    return {"digest": f"sha256:{digest}", "size": len(content)}


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    member.mtime = FILE_TIME
    tar.addfile(member, io.BytesIO(content))
