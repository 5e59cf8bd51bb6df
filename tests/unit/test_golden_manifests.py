"""The Jobs of all flavors and devices that we ship are the ones in tests/golden/manifests."""

from __future__ import annotations

import pytest

from ..golden_manifests import FOLDER, manifests, text_of

MANIFESTS = dict(manifests())


@pytest.mark.parametrize("name", MANIFESTS)
def test_it_is_as_it_was(name: str) -> None:
    """After a change that is meant: `scripts/manifests`, and look at the difference."""
    assert text_of(MANIFESTS[name]) == (FOLDER / name).read_text()


def test_there_is_one_for_each_choice_and_no_other() -> None:
    assert {file.name for file in FOLDER.iterdir()} == set(MANIFESTS)
    assert len(MANIFESTS) > 10


def test_where_a_claim_is_mounted_a_shell_waits_for_the_admission() -> None:
    for name, manifest in MANIFESTS.items():
        pod = manifest["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        has_claim = any("persistentVolumeClaim" in volume for volume in pod["volumes"])
        waits = container["command"][0] == "/bin/sh"
        assert waits == (has_claim and name != "patch-mount.yaml"), name
    assert any("volume-rwo" in n and "/bin/sh" in text_of(m) for n, m in MANIFESTS.items())
