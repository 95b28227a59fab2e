"""The reference's `lance.sampler`: random rows, and the share of a table's rows that one of many processes reads."""

from lance_ops.sampler.batch_samplers import ShardedBatchSampler, ShardedFixedBatchSampler
from lance_ops.sampler.fragment_samplers import FragmentSampler, FullScanSampler, Sampler, ShardedFragmentSampler
from lance_ops.sampler.random_rows import maybe_sample

__all__ = [
    "FragmentSampler",
    "FullScanSampler",
    "Sampler",
    "ShardedBatchSampler",
    "ShardedFixedBatchSampler",
    "ShardedFragmentSampler",
    "maybe_sample",
]
