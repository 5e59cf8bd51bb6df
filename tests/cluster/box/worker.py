"""A node in a sandbox of its own: it can lose its network, and its power."""

from __future__ import annotations

from collections.abc import Callable

from tests.cluster.box.node import Node
from tests.cluster.box.sandbox import Sandbox


class Worker:
    """A running node; `make_sandbox` and `make_node` build it anew when its power returns."""

    def __init__(
        self, make_sandbox: Callable[[], Sandbox], make_node: Callable[[Sandbox], Node]
    ) -> None:
        self._make_sandbox = make_sandbox
        self._make_node = make_node
        self.node = make_node(make_sandbox())

    @property
    def name(self) -> str:
        """Of the node."""
        return self.node.hardware.name

    def cut_off(self) -> None:
        """Pull its network cable. What runs there goes on."""
        self.node.sandbox.unplug()

    def reconnect(self) -> None:
        """Plug the cable in again."""
        self.node.sandbox.plug_in()

    def power_off(self) -> None:
        """End everything there, at once. Its disk stays: images, volumes, the kubelet's files."""
        self.node.sandbox.stop()
        self.node.slot.remove_cgroups(self.name)

    def power_on(self) -> None:
        """Start it again from its disk; the kubelet then tells the API server."""
        self.node = self._make_node(self._make_sandbox())
        self.node.start_runtime()
        self.node.start()
