"""`format("lance")`: read and write Lance tables by Spark's Python Data Source API.

    spark.read.format("lance").option("version", 3).load(uri)
    spark.read.format("lance").schema("x double").load(uri)       # reads that column only: Spark prunes none itself
    df.write.format("lance").mode("append").save(uri)             # or "overwrite"; Spark's default mode is not offered
    spark.readStream.format("lance").load(uri)                    # what is appended; see `stream_reader`
    stream.writeStream.format("lance").option("checkpointLocation", …).start(uri)

Spark finds the format by itself where this library is installed (the module `pyspark_lance_ops`); elsewhere
`spark.dataSource.register(LanceSource)` brings it. The options are those of `options.SourceOptions`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from lance_ops.core.errors import DatasetNotFound, InvalidInput, LanceOpsError
from lance_ops.spark import data_source
from lance_ops.spark.data_source.hidden_frames import without_frames

if TYPE_CHECKING:
    from lance_ops.spark.data_source.change_stream import LanceChangeReader
    from lance_ops.spark.data_source.options import SourceOptions
    from lance_ops.spark.data_source.refused_stream import RefusedStream
    from lance_ops.spark.data_source.spark_writers import LanceStreamWriter, LanceWriter
    from lance_ops.spark.data_source.stream_reader import LanceStreamReader

__all__ = ["LanceSource"]

_NOT_OF_STREAMS = ("version", "timestamp", "tag", "rows_needed")
_OF_STREAMS = (
    *("starting_version", "max_rows_per_trigger", "max_fragments_per_trigger"),
    *("read_change_feed", "max_versions_per_trigger"),
)


class LanceSource(DataSource):
    """The format's entry: Spark makes one for each DataFrame or write."""

    @classmethod
    def name(cls) -> str:
        """Return the name users give to `format`."""
        return "lance"

    _read: SourceOptions | None = None  # with the version that `load` settled on

    @without_frames()
    def schema(self) -> StructType:
        """Return the table's schema in Spark's types."""
        options = self._read_options()
        if options.read_change_feed:
            return from_arrow_schema(data_source.change_stream_schema(options.open()))
        return from_arrow_schema(data_source.visible_schema(options))

    @without_frames()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the version that `load` found."""
        options = self._read_options()
        for name in _OF_STREAMS:
            if getattr(options, name):
                raise InvalidInput(f"option {options.spelling(name)!r} is for streams: use readStream")
        return (data_source.PushingReader if options.push_filters else data_source.LanceReader)(options, schema)

    @without_frames()
    def __getstate__(self) -> dict[str, Any]:
        """Settle on a version: Spark pickles the source at `load` and plans every query over the frame from the copy.

        It does so for streams into tables that are not there yet, too.
        """
        with suppress(DatasetNotFound):
            self._read_options()
        return self.__dict__

    def _read_options(self) -> SourceOptions:
        if self._read is None:
            self._read = data_source.SourceOptions.parse(self.options).with_found_version()
        return self._read

    def streamReader(  # noqa: N802 - Spark's name
        self, schema: StructType
    ) -> LanceStreamReader | LanceChangeReader | RefusedStream:
        """Return a reader of the rows that are appended, or of all changes; of a stream that is refused, its error."""
        try:
            return self._stream_reader(schema)
        except LanceOpsError as error:
            return data_source.RefusedStream(error)

    @without_frames()
    def writer(self, schema: StructType, overwrite: bool) -> LanceWriter:
        """Return a writer of one version; raise `SchemaMismatch` before any task starts if a column does not fit."""
        options = data_source.SourceOptions.parse(self.options)
        return data_source.LanceWriter.planned(options, schema, overwrite=overwrite)

    @without_frames()
    def streamWriter(self, schema: StructType, overwrite: bool) -> LanceStreamWriter:  # noqa: N802 - Spark's name
        """Return a writer of one version for each micro-batch that has rows."""
        options = data_source.SourceOptions.parse(self.options)
        if overwrite:
            raise InvalidInput("a stream into format('lance') appends: use output mode 'append'")
        return data_source.LanceStreamWriter(options, schema)

    def _stream_reader(self, schema: StructType) -> LanceStreamReader | LanceChangeReader:
        options = data_source.SourceOptions.parse(self.options)
        for name in _NOT_OF_STREAMS:
            if getattr(options, name) is not None:
                shown = options.spelling(name)
                raise InvalidInput(f"option {shown!r} is not for streams: a stream begins at option 'starting_version'")
        if options.read_change_feed:
            return data_source.LanceChangeReader(options, schema, self._read)
        if options.max_versions_per_trigger is not None:
            name = options.spelling("max_versions_per_trigger")
            raise InvalidInput(f"option {name!r} is for a stream with 'read_change_feed'")
        return data_source.LanceStreamReader(options, schema, self._read)
