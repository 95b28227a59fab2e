"""The source behind `format("lance")`: its options, its readers and its writers.

Spark starts a process to look the source up, others to plan reads and writes, and one for each commit, and none of them
is forked from a process that has loaded this library. So each name loads its module when it is first used: planning
a read loads no writer, planning a write no reader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.spark.data_source.change_stream import LanceChangeReader, change_stream_schema
    from lance_ops.spark.data_source.hidden_frames import without_frames
    from lance_ops.spark.data_source.option_texts import BlobHandling, check_blob_handling
    from lance_ops.spark.data_source.options import SourceOptions, options_of_properties
    from lance_ops.spark.data_source.pushing_reader import PushingReader
    from lance_ops.spark.data_source.refused_stream import RefusedStream
    from lance_ops.spark.data_source.source import LanceSource
    from lance_ops.spark.data_source.spark_writers import FragmentsWritten, LanceStreamWriter, LanceWriter
    from lance_ops.spark.data_source.stream_reader import LanceStreamReader
    from lance_ops.spark.data_source.table_reader import LanceReader
    from lance_ops.spark.data_source.version_changes import change_schema, read_changes
    from lance_ops.spark.data_source.visible_columns import visible_schema
    from lance_ops.spark.data_source.write_plan import WriteMode, WritePlan
    from lance_ops.spark.data_source.write_planning import plan_write

__all__ = [
    "BlobHandling",
    "FragmentsWritten",
    "LanceChangeReader",
    "LanceReader",
    "LanceSource",
    "LanceStreamReader",
    "LanceStreamWriter",
    "LanceWriter",
    "PushingReader",
    "RefusedStream",
    "SourceOptions",
    "WriteMode",
    "WritePlan",
    "change_schema",
    "change_stream_schema",
    "check_blob_handling",
    "options_of_properties",
    "plan_write",
    "read_changes",
    "visible_schema",
    "without_frames",
]

_MODULES = {
    "BlobHandling": "option_texts",
    "FragmentsWritten": "spark_writers",
    "LanceChangeReader": "change_stream",
    "LanceReader": "table_reader",
    "LanceSource": "source",
    "LanceStreamReader": "stream_reader",
    "LanceStreamWriter": "spark_writers",
    "LanceWriter": "spark_writers",
    "PushingReader": "pushing_reader",
    "RefusedStream": "refused_stream",
    "SourceOptions": "options",
    "WriteMode": "write_plan",
    "WritePlan": "write_plan",
    "change_schema": "version_changes",
    "change_stream_schema": "change_stream",
    "check_blob_handling": "option_texts",
    "options_of_properties": "options",
    "plan_write": "write_planning",
    "read_changes": "version_changes",
    "visible_schema": "visible_columns",
    "without_frames": "hidden_frames",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
