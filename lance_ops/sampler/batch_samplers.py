"""Samplers that share the rows among processes batch by batch."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from lance_ops.api import LanceDataset
from lance_ops.api.scanning import BatchSize, Columns
from lance_ops.core.errors import InvalidInput
from lance_ops.core.threads import available_cores, map_ordered
from lance_ops.reading import ROW_ID
from lance_ops.sampler.fragment_samplers import Sampler
from lance_ops.sampler.sharding import Sharded, torch_rank

__all__ = ["ShardedBatchSampler", "ShardedFixedBatchSampler"]

_SHUFFLED_BATCHES = 256
"""How many batches of a filtered scan are held, from which the next one is drawn."""


class ShardedBatchSampler(Sharded, Sampler):
    """Reads every `world_size`-th batch of consecutive rows, from number `rank` on.

    With a filter, the process instead scans the matching rows and keeps every `world_size`-th row, in batches. With
    `randomize` the batches come in a random order, which depends on `seed` and on the epoch; that of a filtered scan
    is random only within a few hundred batches. Raises `InvalidInput` for a rank outside the world.
    """

    @staticmethod
    def from_torch(randomize: bool = False, seed: int = 0) -> ShardedBatchSampler:
        """Return the sampler of this process of `torch.distributed`."""
        return ShardedBatchSampler(*torch_rank(), randomize=randomize, seed=seed)

    def __call__(  # type: ignore[override]  # the reference's names
        self,
        dataset: LanceDataset,
        *args: Any,
        batch_size: int = 128,
        columns: Columns = None,
        filter: str | None = None,
        batch_readahead: int = 16,
        with_row_id: bool | None = None,
        **kwargs: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of this process."""
        if batch_size <= 0:
            raise InvalidInput(f"batch_size must be positive, not {batch_size}")
        if filter is None:
            return self._ranges(dataset, batch_size, columns, batch_readahead, bool(with_row_id))
        scanner = dataset.scanner(columns, filter, batch_readahead=batch_readahead, with_row_id=with_row_id)
        shares = ((0, pa.Table.from_batches([batch])) for batch in self._shares(scanner.to_batches()))
        batches = BatchSize(batch_size, across_fragments=True).cut(shares)
        return _shuffled(batches, self._generator()) if self._randomize else batches

    def _ranges(
        self, dataset: LanceDataset, batch_size: int, columns: Columns, readahead: int, with_row_id: bool
    ) -> Iterator[pa.RecordBatch]:
        names = _with_row_id(dataset, columns) if with_row_id else columns
        num_rows = dataset.count_rows()
        starts = list(range(self._rank * batch_size, num_rows, self._world_size * batch_size))
        if self._randomize:
            self._generator().shuffle(starts)

        def read(start: int) -> pa.RecordBatch:
            rows = dataset.take(np.arange(start, min(start + batch_size, num_rows)), columns=names)
            return rows.combine_chunks().to_batches()[0]

        return map_ordered(read, starts, min(available_cores(), readahead), readahead)

    def _shares(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of this process: those whose number among all rows leaves the rank as remainder."""
        num_before = 0
        for batch in batches:
            first = (self._rank - num_before) % self._world_size
            num_before += batch.num_rows
            positions = np.arange(first, batch.num_rows, self._world_size)
            if len(positions):
                yield batch.take(pa.array(positions))


class ShardedFixedBatchSampler(ShardedBatchSampler):
    """Yields the positions of rows in batches: a `batch_sampler` of PyTorch for a table of known length.

    Each process gets one range of consecutive rows, and cuts it into batches. Raises `InvalidInput` for a batch size
    that is not positive if there are rows.
    """

    def __init__(
        self,
        rank: int,
        world_size: int,
        randomize: bool = False,
        seed: int = 0,
        batch_size: int = 0,
        total_num_rows: int = 0,
    ) -> None:
        super().__init__(rank, world_size, randomize, seed)
        if total_num_rows < 0 or batch_size < 0 or (total_num_rows and not batch_size):
            raise InvalidInput(f"cannot cut {total_num_rows} rows into batches of {batch_size}")
        per_rank = -(-total_num_rows // world_size)
        self._rows = range(total_num_rows)[rank * per_rank : (rank + 1) * per_rank]
        self._batch_size = batch_size

    @staticmethod
    def from_torch(  # type: ignore[override]  # as in the reference
        batch_size: int, total_num_rows: int, randomize: bool = False, seed: int = 0
    ) -> ShardedFixedBatchSampler:
        """Return the sampler of this process of `torch.distributed`."""
        return ShardedFixedBatchSampler(*torch_rank(), randomize, seed, batch_size, total_num_rows)

    def __len__(self) -> int:
        """Return the number of batches of this process."""
        return -(-len(self._rows) // self._batch_size) if self._rows else 0

    def __iter__(self) -> Iterator[list[int]]:
        starts = list(range(0, len(self._rows), self._batch_size or 1))
        if self._randomize:
            self._generator().shuffle(starts)
        for start in starts:
            yield list(self._rows[start : start + self._batch_size])


def _with_row_id(dataset: LanceDataset, columns: Columns) -> Columns:
    if columns is None:
        return [*dataset.schema.names, ROW_ID]
    if ROW_ID in columns:
        return columns
    return {**columns, ROW_ID: ROW_ID} if isinstance(columns, Mapping) else [*columns, ROW_ID]


def _shuffled(batches: Iterator[pa.RecordBatch], generator: random.Random) -> Iterator[pa.RecordBatch]:
    held = list(islice(batches, _SHUFFLED_BATCHES))
    for batch in batches:
        drawn = generator.randrange(len(held))
        yield held[drawn]
        held[drawn] = batch
    generator.shuffle(held)
    yield from held
