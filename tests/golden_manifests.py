"""The Jobs of what we ship, and of each kind of volume, in files: `scripts/manifests` writes them.

There is one for every flavor and device, for every kind of volume that a dev pod may have, and for
every example of a pod patch.

A change of what a job's pod is shows there, for every kind of hardware at once. A unit test holds
the files to the code, and a cluster test to Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from jupyter_to_job.backends.kubernetes import job_manifest
from jupyter_to_job.backends.kubernetes.pod_patch import read_patch
from jupyter_to_job.flavors import SHIPPED, parse_catalog
from jupyter_to_job.flavors.catalog import Catalog, Choice

from .unit.test_manifest import ORIGIN, PODS, REQUEST
from .volume_cases import CASES

ROOT = Path(__file__).parents[1]
PATCHES = ROOT / "k8s" / "pod-patches"
FOLDER = ROOT / "tests" / "golden" / "manifests"


def catalogs() -> dict[str, Catalog]:
    """Return the catalogs that we ship: the package's, and the controller's first one."""
    files = {"package": SHIPPED, "k8s": ROOT / "k8s" / "site" / "flavors.yaml"}
    return {name: parse_catalog(file.read_bytes(), name) for name, file in files.items()}


def manifests() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the manifest of each choice that there is, and the name of its file."""
    for name, catalog in catalogs().items():
        for flavor in catalog.flavors:
            for choice in catalog.choices(flavor):
                manifest = manifest_of(choice)
                yield f"{name}-{choice.flavor_name}-{choice.device_name}.yaml", manifest
    for name, case in CASES.items():
        plan = case.plan()
        request = replace(REQUEST, mounts=plan.paths, isolated=plan.isolated)
        yield f"volume-{name}.yaml", job_manifest(request, case.origin(), PODS)
    for file in sorted(PATCHES.glob("*.yaml")):
        patch = read_patch(file.read_bytes(), file.name)
        yield f"patch-{file.name}", job_manifest(REQUEST, ORIGIN, replace(PODS, patch=patch))


def manifest_of(choice: Choice) -> dict[str, Any]:
    """Return the Job of a request for a flavor and a device."""
    request = replace(
        REQUEST,
        flavor=choice.flavor_name,
        device=choice.device_name,
        flavor_spec=choice.flavor.model_dump(mode="json", exclude_defaults=True),
        device_spec=choice.device.model_dump(mode="json", exclude_defaults=True),
        demand={name: str(amount) for name, amount in choice.demand.items()},
        max_runtime=choice.flavor.max_runtime,
    )
    return job_manifest(request, ORIGIN, PODS)


class _Plain(yaml.SafeDumper):
    """Writes everything out: a file is read from top to bottom."""

    def ignore_aliases(self, data: object) -> bool:
        """Have no anchors."""
        return True


def text_of(manifest: dict[str, Any]) -> str:
    """Return the content of a file."""
    return yaml.dump(manifest, Dumper=_Plain, sort_keys=False)


def main() -> None:
    """Write all files, and remove those of choices that are gone."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    texts = {name: text_of(manifest) for name, manifest in manifests()}
    for file in FOLDER.iterdir():
        if file.name not in texts:
            file.unlink()
    for name, text in texts.items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
