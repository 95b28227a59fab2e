"""Samplers that scan whole fragments: all of them, or those of one process among many."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lance_ops.api import LanceDataset, LanceFragment
from lance_ops.api.scanning import Columns
from lance_ops.sampler.sharding import Sharded, torch_rank

__all__ = ["FragmentSampler", "FullScanSampler", "Sampler", "ShardedFragmentSampler"]


class Sampler(ABC):
    """Chooses rows of a dataset and their order. A subclass implements `__call__`."""

    @abstractmethod
    def __call__(
        self,
        ds: LanceDataset,
        *args: Any,
        batch_size: int = 128,
        columns: Columns = None,
        filter: str | None = None,
        batch_readahead: int = 16,
        with_row_id: bool = False,
        **kwargs: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the chosen rows in batches."""


class FragmentSampler(Sampler):
    """Scans fragments in an order that a subclass decides, by `iter_fragments`."""

    def __call__(  # type: ignore[override]  # the reference's names
        self,
        dataset: LanceDataset,
        *args: Any,
        batch_size: int = 128,
        columns: Columns = None,
        filter: str | None = None,
        batch_readahead: int = 16,
        with_row_id: bool = False,
        **kwargs: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the fragments in batches."""
        scanner = dataset.scanner(
            columns,
            filter,
            batch_size=batch_size,
            batch_readahead=batch_readahead,
            fragments=list(self.iter_fragments(dataset, *args, **kwargs)),
            with_row_id=with_row_id,
        )
        return scanner.to_batches()

    @abstractmethod
    def iter_fragments(self, ds: LanceDataset, *args: Any, **kwargs: Any) -> Iterator[LanceFragment]:
        """Yield the fragments to scan, in order."""


class FullScanSampler(FragmentSampler):
    """Scans the whole dataset in order."""

    def iter_fragments(  # type: ignore[override]  # as above
        self, dataset: LanceDataset, **kwargs: Any
    ) -> Iterator[LanceFragment]:
        """Yield all fragments."""
        yield from dataset.get_fragments()


class ShardedFragmentSampler(Sharded, FragmentSampler):
    """Scans the fragments of one process: every `world_size`-th, from number `rank` on.

    With `randomize`, all processes first put the fragments into the same random order, which depends on `seed` and on
    the epoch. Raises `InvalidInput` for a rank outside the world.
    """

    @staticmethod
    def from_torch(randomize: bool = False, seed: int = 0) -> ShardedFragmentSampler:
        """Return the sampler of this process of `torch.distributed`."""
        return ShardedFragmentSampler(*torch_rank(), randomize=randomize, seed=seed)

    def iter_fragments(  # type: ignore[override]  # as above
        self, dataset: LanceDataset, **kwargs: Any
    ) -> Iterator[LanceFragment]:
        """Yield the fragments of this process."""
        fragments = dataset.get_fragments()
        if self._randomize:
            self._generator().shuffle(fragments)
        yield from fragments[self._rank :: self._world_size]
