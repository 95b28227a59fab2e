"""`LanceDataset` and `SafeLanceDataset`: a table as an iterable and as an indexable dataset of PyTorch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from warnings import warn

import pyarrow as pa
import torch.multiprocessing
import torch.utils.data

from lance_ops import api
from lance_ops.api.scanning import Columns
from lance_ops.core.errors import InvalidInput
from lance_ops.hf import HuggingFaceConverter
from lance_ops.reading import ROW_ID
from lance_ops.sampler import FullScanSampler, Sampler, ShardedBatchSampler, ShardedFragmentSampler, maybe_sample
from lance_ops.torch.cached_batches import CachedBatches
from lance_ops.torch.dist import get_global_rank, get_global_world_size
from lance_ops.torch.tensors import Batch, to_tensors

__all__ = ["LanceDataset", "SafeLanceDataset", "get_safe_loader"]

_HUGGING_FACE = b"huggingface"
_BLOB = b"lance-encoding:blob"


class LanceDataset(torch.utils.data.IterableDataset):  # type: ignore[misc]  # torch is not there when types are checked
    """Yields the rows of a table as batches of tensors.

    Each worker of each process gets its share of the rows: whole fragments, or batches if `shard_granularity` is
    "batch". A `sampler` replaces this division. `samples` draws that many random rows. `cache` keeps the batches on
    disk, in a folder if it names one, so that later epochs do not read the table. `to_tensor_fn` gets each batch and
    converts it; None yields Arrow batches. Blobs come as files, which a `to_tensor_fn` of the caller converts.

    `rank` and `world_size` are deprecated: torch states them unless `auto_detect_rank` is false. Raises
    `InvalidInput` for an unknown granularity or column, and whatever opening and scanning raise.
    """

    def __init__(
        self,
        dataset: api.LanceDataset | str | Path,
        batch_size: int,
        *args: Any,
        dataset_options: Mapping[str, Any] | None = None,
        columns: Columns = None,
        filter: str | None = None,
        samples: int | None = 0,
        cache: str | bool | None = None,
        with_row_id: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        shard_granularity: Literal["fragment", "batch"] | None = None,
        batch_readahead: int = 16,
        to_tensor_fn: Callable[..., Any] | None = to_tensors,
        sampler: Sampler | None = None,
        auto_detect_rank: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if shard_granularity not in (None, "fragment", "batch"):
            raise InvalidInput(f"shard_granularity must be 'fragment' or 'batch', not {shard_granularity!r}")
        if rank is not None and world_size is not None:
            warn("rank and world_size are deprecated: pass a sampler", DeprecationWarning, stacklevel=2)
        if isinstance(dataset, str | Path):
            dataset = api.dataset(dataset, **(dataset_options or {}))
        self.dataset = dataset
        self.batch_size = batch_size
        self.columns = columns
        self.filter = filter
        self.samples = samples
        self.cache = cache
        self.rank = rank
        self.world_size = world_size
        self.shard_granularity = shard_granularity
        self.batch_readahead = batch_readahead
        self.sampler = sampler
        self.cached_ds: CachedBatches | None = None
        self._cached_share: tuple[int | None, int | None] | None = None
        self._to_tensor_fn = to_tensor_fn
        self._auto_detect_rank = auto_detect_rank
        self._blob_columns = _blob_columns(dataset.schema, columns)
        self.with_row_id = with_row_id or bool(self._blob_columns)
        self._hf_converter = _hugging_face_converter(dataset.schema)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the columns that are read."""
        return self.dataset.scanner(self.columns or None).projected_schema

    def __repr__(self) -> str:
        return f"LanceTorchDataset({self.dataset.uri}, size={self.samples})"

    def __iter__(self) -> Iterator[Any]:
        for arrow_batch in self._cached() if self.cache else self._batches():
            batch = self._with_blobs(arrow_batch) if self._blob_columns else arrow_batch
            if self._to_tensor_fn is None:
                yield batch
            else:
                yield self._to_tensor_fn(batch, hf_converter=self._hf_converter, use_blob_api=bool(self._blob_columns))

    def _cached(self) -> CachedBatches:
        """Return the cache of this process's share of the rows; make one if the share is new, as in a worker."""
        share = self._rank_and_world_size()
        if self.cached_ds is None or share != self._cached_share:
            self.cached_ds = CachedBatches(self._batches, None if isinstance(self.cache, bool) else self.cache)
            self._cached_share = share
        return self.cached_ds

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Yield batches of at most `batch_size` rows; those of small fragments are joined while they fit into one."""
        columns = self.columns or self.dataset.schema.names
        if self._blob_columns:
            columns = [name for name in columns if name not in self._blob_columns]
        if self.samples:
            found = maybe_sample(self.dataset, self.samples, columns, self.batch_size, filt=self.filter)
        else:
            found = (self.sampler or self._shard())(
                self.dataset,
                columns=columns,
                filter=self.filter,
                batch_size=self.batch_size,
                with_row_id=self.with_row_id,
                batch_readahead=self.batch_readahead,
            )
        return _joined(found, self.batch_size)

    def _shard(self) -> Sampler:
        rank, world_size = self._rank_and_world_size()
        if rank is None or world_size is None:
            return FullScanSampler()
        by_batch = self.shard_granularity == "batch"
        return ShardedBatchSampler(rank, world_size) if by_batch else ShardedFragmentSampler(rank, world_size)

    def _rank_and_world_size(self) -> tuple[int | None, int | None]:
        if not self._auto_detect_rank:
            return self.rank, self.world_size
        rank = get_global_rank() if self.rank is None else self.rank
        return rank, get_global_world_size() if self.world_size is None else self.world_size

    def _with_blobs(self, batch: pa.RecordBatch) -> Batch:
        columns: dict[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
        ids = batch[ROW_ID]
        return columns | {name: self.dataset.take_blobs(name, ids=ids) for name in self._blob_columns}


class SafeLanceDataset(torch.utils.data.Dataset):  # type: ignore[misc]  # as above
    """Returns rows by number, as dictionaries. Each worker opens the table for itself."""

    def __init__(self, uri: str | Path, *, dataset_options: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.uri = uri
        self.dataset_options = dict(dataset_options or {})
        opened = api.dataset(uri, **self.dataset_options)
        self.dataset_options["version"] = opened.version  # the rows of all workers are those that were counted
        self._len = opened.count_rows()
        self._ds: api.LanceDataset | None = None

    def __len__(self) -> int:
        return self._len

    def __getitem__(self, idx: int) -> dict[str, Any]:
        return self.__getitems__([idx])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        if self._ds is None:
            self._ds = api.dataset(self.uri, **self.dataset_options)
        rows: list[dict[str, Any]] = self._ds.take(indices).to_pylist()
        return rows

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ds": None}


def get_safe_loader(dataset: Any, batch_size: int = 32, num_workers: int = 4, **kwargs: Any) -> Any:
    """Return a `DataLoader` whose workers are spawned and persist; the other arguments are those of `DataLoader`."""
    options: dict[str, Any] = {"batch_size": batch_size, "num_workers": num_workers}
    if num_workers:
        options |= {"persistent_workers": True, "multiprocessing_context": torch.multiprocessing.get_context("spawn")}
    return torch.utils.data.DataLoader(dataset, **(options | kwargs))


def _joined(batches: Iterable[pa.RecordBatch], most_rows: int) -> Iterator[pa.RecordBatch]:
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if held and sum(each.num_rows for each in held) + batch.num_rows > most_rows:
            yield pa.concat_batches(held)
            held = []
        held.append(batch)
    if held:
        yield pa.concat_batches(held)


def _blob_columns(schema: pa.Schema, columns: Columns) -> list[str]:
    if isinstance(columns, Mapping):
        return []
    names = columns or schema.names
    return [name for name in names if name in schema.names and _holds_blobs(schema.field(name))]


def _holds_blobs(field: pa.Field) -> bool:
    return pa.types.is_large_binary(field.type) and (field.metadata or {}).get(_BLOB) == b"true"


def _hugging_face_converter(schema: pa.Schema) -> HuggingFaceConverter | None:
    described = (schema.metadata or {}).get(_HUGGING_FACE)
    return None if described is None else HuggingFaceConverter(json.loads(described))
