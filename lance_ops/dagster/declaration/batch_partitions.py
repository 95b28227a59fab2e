"""The partitions of a dataset's batches, which keep the keys of a run at hand while the run records them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import dagster as dg

__all__ = ["BatchPartitions"]

_KEYS_OF_RUN: ContextVar[tuple[str, Sequence[str]] | None] = ContextVar("keys_of_run", default=None)


class BatchPartitions(dg.DynamicPartitionsDefinition):
    """Dynamic partitions that answer which keys a run has from memory, where `keys_of_run` gives them.

    `AssetExecutionContext.add_asset_metadata` asks for all keys of the run's range for each of its partitions, and
    Dagster reads every key of the dataset for each answer. The cost of a run would grow with their product.
    """

    @contextmanager
    def keys_of_run(self, keys: Sequence[str]) -> Iterator[None]:
        """Answer with these keys, in their order, to questions for the range from the first to the last of them."""
        token = _KEYS_OF_RUN.set((str(self.name), keys))
        try:
            yield
        finally:
            _KEYS_OF_RUN.reset(token)

    def get_partition_keys_in_range(self, partition_key_range: dg.PartitionKeyRange) -> Sequence[str]:
        """Return the keys of a range, both ends included."""
        name, keys = _KEYS_OF_RUN.get() or ("", ())
        if name == self.name and keys and (partition_key_range.start, partition_key_range.end) == (keys[0], keys[-1]):
            return keys
        return super().get_partition_keys_in_range(partition_key_range)
