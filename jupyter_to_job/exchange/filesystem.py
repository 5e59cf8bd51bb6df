"""Tells local from network file systems, where locks and times of files are not reliable."""

from __future__ import annotations

import re
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = frozenset(
    ["9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "gfs", "gfs2", "glusterfs", "gpfs",
     "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb2", "smb3",
     "smbfs", "virtiofs", "vboxsf", "wekafs"]
)  # fmt: skip
_ESCAPED = re.compile(r"\\([0-7]{3})")


def is_network(path: Path, mounts: Path = _MOUNTS) -> bool:
    """Tell whether `path` is, or may be, on a file system that other hosts write to as well.

    There locks and memory maps are not reliable, and reads may be seconds old. The answer is True
    where it is not known, too.
    """
    try:
        lines = mounts.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return True
    resolved, kind, depth = path.resolve(), "", -1
    for line in lines:
        fields, _, described = line.partition(" - ")
        point = Path(_ESCAPED.sub(lambda m: chr(int(m[1], 8)), fields.split()[4]))
        # Of two mounts at one place the later one covers the other.
        if resolved.is_relative_to(point) and len(point.parts) >= depth:
            kind, depth = described.split()[0], len(point.parts)
    return kind in _NETWORK or kind == "fuse" or kind.startswith("fuse.") or not kind
