"""Watches for each namespace of dev pods: rights are given there, and errors stay there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Generic

from .informer import Informer, Record

ALL_NAMESPACES = "*"


class Watches(Generic[Record]):
    """The informers of one kind of object: one for each namespace, or one for all of them.

    `make` returns the informer of a namespace; None stands for all.
    """

    def __init__(
        self, namespaces: frozenset[str], make: Callable[[str | None], Informer[Record]]
    ) -> None:
        self._informers: dict[str, Informer[Record]] = {
            name: make(None if name == ALL_NAMESPACES else name) for name in namespaces
        }

    async def run(self) -> None:
        """Run all informers for ever."""
        await asyncio.gather(*(informer.run() for informer in self._informers.values()))

    @property
    def informers(self) -> Collection[Informer[Record]]:
        """The informers of all namespaces."""
        return self._informers.values()

    def count_failing(self) -> int:
        """Return how many informers do not work now."""
        return sum(informer.is_failing for informer in self.informers)

    def covers(self, namespace: str) -> bool:
        """Tell whether a namespace is watched."""
        return self._informer(namespace) is not None

    def is_synced(self, namespace: str) -> bool:
        """Tell whether the records of a namespace are complete: a missing one means something."""
        informer = self._informer(namespace)
        return informer is not None and informer.synced.is_set()

    async def wait_until_synced(self, namespace: str) -> None:
        """Wait for the records of a watched namespace."""
        informer = self._informer(namespace)
        if informer is not None:
            await informer.synced.wait()

    def get(self, namespace: str, key: str) -> Record | None:
        """Return the record with this key in a namespace."""
        informer = self._informer(namespace)
        return None if informer is None else informer.records.get((namespace, key))

    def all(self) -> Iterable[Record]:
        """Return the records of all namespaces."""
        return [r for informer in self._informers.values() for r in informer.records.values()]

    def of(self, namespace: str) -> Iterable[Record]:
        """Return the records of a namespace."""
        informer = self._informer(namespace)
        records = {} if informer is None else informer.records
        return [record for key, record in records.items() if key[0] == namespace]

    def _informer(self, namespace: str) -> Informer[Record] | None:
        return self._informers.get(namespace) or self._informers.get(ALL_NAMESPACES)
