"""Merge a large source by tasks that join keys and row addresses: each row's values go from its source to its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.changing.merge_insert.by_tasks.bucket_order import order_by_bucket
    from lance_ops.changing.merge_insert.by_tasks.key_counts import CountedRows, MatchCounts, count_matches
    from lance_ops.changing.merge_insert.by_tasks.key_shuffle import ADDRESS, KeyBuckets
    from lance_ops.changing.merge_insert.by_tasks.merge_parts import TaskSizes
    from lance_ops.changing.merge_insert.by_tasks.merging import (
        DistributedMerge,
        distributed_merge,
        plan_distributed_merge,
        prepare_distributed_merge,
    )
    from lance_ops.changing.merge_insert.by_tasks.segment_files import (
        BYTES_OF_END,
        Segment,
        SegmentFile,
        decode_pairs,
        decode_table,
        encode_pairs,
        new_folder,
        read_segments,
        segments_of,
        write_segments,
    )
    from lance_ops.changing.merge_insert.by_tasks.source_rows import SourceRows

__all__ = [
    "ADDRESS",
    "BYTES_OF_END",
    "CountedRows",
    "DistributedMerge",
    "KeyBuckets",
    "MatchCounts",
    "Segment",
    "SegmentFile",
    "SourceRows",
    "TaskSizes",
    "count_matches",
    "decode_pairs",
    "decode_table",
    "distributed_merge",
    "encode_pairs",
    "new_folder",
    "order_by_bucket",
    "plan_distributed_merge",
    "prepare_distributed_merge",
    "read_segments",
    "segments_of",
    "write_segments",
]

_MODULES = {
    "ADDRESS": "key_shuffle",
    "BYTES_OF_END": "segment_files",
    "DistributedMerge": "merging",
    "CountedRows": "key_counts",
    "KeyBuckets": "key_shuffle",
    "MatchCounts": "key_counts",
    "Segment": "segment_files",
    "SegmentFile": "segment_files",
    "SourceRows": "source_rows",
    "TaskSizes": "merge_parts",
    "count_matches": "key_counts",
    "decode_pairs": "segment_files",
    "decode_table": "segment_files",
    "distributed_merge": "merging",
    "encode_pairs": "segment_files",
    "new_folder": "segment_files",
    "order_by_bucket": "bucket_order",
    "plan_distributed_merge": "merging",
    "prepare_distributed_merge": "merging",
    "read_segments": "segment_files",
    "segments_of": "segment_files",
    "write_segments": "segment_files",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
