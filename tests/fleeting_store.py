"""A store in memory that records which objects a power cut would lose."""

from __future__ import annotations

from collections.abc import Iterable

from lance_ops.store import BytesLike, MemoryStore, PutOutcome, StoreWriter

__all__ = ["FleetingStore"]


class FleetingStore(MemoryStore):
    """`lost_with` has, for each object that `put_if_absent` created, the objects that were not durable then."""

    def __init__(self) -> None:
        super().__init__()
        self.fleeting: set[str] = set()
        self.lost_with: dict[str, frozenset[str]] = {}

    def child(self, prefix: str) -> FleetingStore:
        """Return a store that records in the same sets, under the whole paths."""
        beneath = FleetingStore.__new__(FleetingStore)
        vars(beneath).update(vars(self), _prefix=self._key(prefix))
        return beneath

    def put(self, path: str, data: BytesLike, *, durable: bool = True) -> None:
        super().put(path, data, durable=durable)
        if not durable:
            self.fleeting.add(self._key(path))

    def open_writer(self, path: str, *, durable: bool = True) -> StoreWriter:
        if not durable:
            self.fleeting.add(self._key(path))
        return super().open_writer(path, durable=durable)

    def put_if_absent(self, path: str, data: BytesLike, *, after: Iterable[str] = ()) -> PutOutcome:
        needed = tuple(after)
        outcome = super().put_if_absent(path, data, after=needed)
        if outcome is PutOutcome.CREATED:
            self.fleeting.difference_update(map(self._key, needed))
            self.lost_with[self._key(path)] = frozenset(self.fleeting)
        return outcome

    def make_durable(self, *paths: str) -> None:
        super().make_durable(*paths)
        self.fleeting.difference_update(map(self._key, paths))

    def delete(self, path: str) -> None:
        super().delete(path)
        self.fleeting.discard(self._key(path))
