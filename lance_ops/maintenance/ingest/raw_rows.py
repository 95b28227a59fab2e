"""Read a raw file's rows with the names of a table's columns: match names, fill or refuse what is missing or extra.

Text files are led by the table: their cells are read as the table's types, and `007` stays in a text column. Files that
know their types are read with these, and the writer casts their values where none changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.blobs import with_blobs_as
from lance_ops.core.errors import SchemaMismatch
from lance_ops.core.json import text_schema
from lance_ops.core.records import dataclass
from lance_ops.core.schema import CaseRule, Schema
from lance_ops.maintenance.ingest.raw_files import RawFile, RawReader
from lance_ops.maintenance.ingest.raw_limits import RawRequest
from lance_ops.maintenance.ingest.raw_names import shown_uri
from lance_ops.maintenance.ingest.raw_values import is_list

__all__ = ["ExtraColumns", "MissingColumns", "RowFitting", "plain_schema"]


class MissingColumns(Enum):
    """What becomes of a file without a column of the table: nulls, or a refusal."""

    FILL = "fill"
    REFUSE = "refuse"


class ExtraColumns(Enum):
    """What becomes of a file's column that the table does not have: a refusal, or nothing."""

    REFUSE = "refuse"
    IGNORE = "ignore"


@dataclass(frozen=True)
class RowFitting:
    """The columns that files are read for, and what to do with other and missing ones."""

    table: pa.Schema
    case_rule: CaseRule = CaseRule.INSENSITIVE
    missing: MissingColumns = MissingColumns.FILL
    extra: ExtraColumns = ExtraColumns.REFUSE

    def rows(self, file: RawFile, reader: RawReader) -> Iterator[pa.RecordBatch]:
        """Yield a file's rows with the table's names.

        Raises `SchemaMismatch` naming the file and a column that is missing, unknown or there twice, and what
        `RawReader.batches` raises, which names the line, column and value of a text file.
        """
        names: dict[str, str] | None = None
        for batch in reader.batches(file, self._lead(file)):
            if names is None:
                names = self.matched(file, batch.schema)
            known = batch.select(list(names))
            yield known.rename_columns(list(names.values())) if names else known

    def _lead(self, file: RawFile) -> Lead:
        return Lead(self, file)

    def matched_text(self, file: RawFile, request: RawRequest, found: pa.Schema | None) -> RawRequest:
        """Return the request for a text file with the table's types under the file's names."""
        ignores = self.extra is ExtraColumns.IGNORE
        if found is None:
            return replace(request, lead=self.table, ignore_others=ignores)
        if request.kind == "csv" and not request.text.header:
            if len(found) != len(self.table):
                raise SchemaMismatch(
                    f"raw file {shown_uri(file.uri)} has {len(found)} columns and no header, and the table has "
                    f"{len(self.table)}: {', '.join(self.table.names)}"
                )
            return replace(request, names=tuple(self.table.names), lead=self.table)
        names = self.matched(file, found)
        lead = [pa.field(given, self.table.field(name).type) for given, name in names.items()]
        if request.kind == "json":  # later rows may have fields that the first ones lack
            lead += [pa.field(each.name, each.type) for each in self.table if each.name not in names.values()]
        return replace(request, lead=pa.schema(lead), ignore_others=ignores)

    def matched(self, file: RawFile, found: pa.Schema) -> dict[str, str]:
        """Return the table's name for each column of the file that it has."""
        where = f"raw file {shown_uri(file.uri)}"
        names: dict[str, str] = {}
        for field in found:
            try:
                name = self.case_rule.find(field.name, self.table.names)
            except SchemaMismatch as error:
                raise SchemaMismatch(f"{where}: {error}") from error
            if name is None:
                if self.extra is ExtraColumns.REFUSE:
                    raise SchemaMismatch(
                        f"{where}: column {field.name!r} ({field.type}) is not in the table (which has "
                        f"{', '.join(self.table.names)}): drop it, ignore extra columns, or use schema mode 'add'"
                    )
            elif name in names.values():
                raise SchemaMismatch(f"{where}: column {field.name!r} is there twice: the table calls both {name!r}")
            else:
                names[field.name] = name
                self._check_within(where, field.name, field.type, self.table.field(name).type)
        if self.missing is MissingColumns.REFUSE:
            for name in self.table.names:
                if name not in names.values():
                    raise SchemaMismatch(f"{where} has no column {name!r}, and missing columns are not filled")
        return names

    def _check_within(self, where: str, path: str, given: pa.DataType, wanted: pa.DataType) -> None:
        """Apply the policies to the fields of structs within a column; a cast drops and fills them without a word."""
        if is_list(given) and is_list(wanted):
            self._check_within(where, path, given.value_type, wanted.value_type)
        if not (pt.is_struct(given) and pt.is_struct(wanted)):
            return
        for child in given:
            below = f"{path}.{child.name}"
            if wanted.get_field_index(child.name) >= 0:
                self._check_within(where, below, child.type, wanted.field(child.name).type)
            elif self.extra is ExtraColumns.REFUSE:
                known = ", ".join(field.name for field in wanted)
                raise SchemaMismatch(
                    f"{where}: field {below!r} ({child.type}) is not in the table (which has {known} there): drop it, "
                    "or ignore extra columns"
                )
        for child in wanted if self.missing is MissingColumns.REFUSE else ():
            if given.get_field_index(child.name) < 0:
                raise SchemaMismatch(f"{where} has no field '{path}.{child.name}', and missing columns are not filled")


@dataclass(frozen=True)
class Lead:
    """Chooses the types that a text file is read with, when its first rows are known."""

    fitting: RowFitting
    file: RawFile

    def __call__(self, request: RawRequest, found: pa.Schema | None) -> RawRequest:
        return self.fitting.matched_text(self.file, request, found)


def plain_schema(schema: Schema) -> pa.Schema:
    """Return a table's schema as raw files have it: storage types, JSON as text, blobs as bytes."""
    fields = [with_blobs_as(field, pa.large_binary()) for field in schema.fields]
    return text_schema(pa.schema(fields), pa.string()).remove_metadata()
