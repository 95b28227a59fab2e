"""Read a raw file's rows with the names of a table's columns: match names, fill or refuse what is missing or extra.

Text files are led by the table: their cells are read as the table's types, and `007` stays in a text column. Files that
know their types are read with these, and the writer casts their values where none changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.blobs import with_blobs_as
from lance_ops.core.arrow import with_child_fields
from lance_ops.core.errors import SchemaMismatch
from lance_ops.core.json import text_schema
from lance_ops.core.records import dataclass
from lance_ops.core.schema import CaseRule, Schema, spelled_as
from lance_ops.maintenance.ingest.decoding import RawRequest, RowGroups, is_list
from lance_ops.maintenance.ingest.raw_files import RawFile, RawReader
from lance_ops.maintenance.ingest.raw_names import shown_uri

__all__ = ["ExtraColumns", "MissingColumns", "RowFitting", "plain_schema", "renamed"]


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

    @classmethod
    def exact(cls, columns: pa.Schema, known: pa.Schema) -> RowFitting:
        """Return the fitting of files that all have these columns, as `known` has them where it does."""
        wanted = [known.field(each.name) if each.name in known.names else each for each in columns]
        return cls(pa.schema(wanted), CaseRule.SENSITIVE, MissingColumns.REFUSE)

    def rows(self, file: RawFile, reader: RawReader, groups: RowGroups | None = None) -> Iterator[pa.RecordBatch]:
        """Yield a file's rows, or those of some row groups, with the table's names, also of the fields within structs.

        Raises `SchemaMismatch` naming the file and a column that is missing, unknown or there twice, and what
        `RawReader.batches` raises, which names the line, column and value of a text file.
        """
        names: dict[str, str] | None = None
        for batch in reader.batches(file, self._lead(file), groups):
            if names is None:
                names = self.matched(file, batch.schema)
                spelled = self._spelled(names, batch.schema)
                kept = self._kept(spelled)
            known = batch.select(list(names))
            columns = [renamed(column, field.type) for column, field in zip(known.columns, spelled, strict=True)]
            rows = pa.RecordBatch.from_arrays(columns, schema=spelled) if names else known
            yield rows if kept is spelled else rows.cast(kept)

    def spelled(self, names: Mapping[str, str], found: pa.Schema) -> pa.Schema:
        """Return the columns of a file that `names` matches, with the table's names, also of the fields within.

        Fields that the table does not have are left out.
        """
        return self._kept(self._spelled(names, found))

    def _spelled(self, names: Mapping[str, str], found: pa.Schema) -> pa.Schema:
        known = pa.schema([found.field(given) for given in names])
        return spelled_as(known, self.table, self.case_rule).with_metadata(found.metadata)

    def _kept(self, spelled: pa.Schema) -> pa.Schema:
        """Return the columns without fields of structs that the table does not have; the same schema if it has all."""
        fields = [field.with_type(_known_part(field.type, self.table.field(field.name).type)) for field in spelled]
        kept = pa.schema(fields, spelled.metadata)
        return spelled if kept.equals(spelled) else kept

    def _lead(self, file: RawFile) -> Lead:
        return Lead(self, file)

    def matched_text(self, file: RawFile, request: RawRequest, found: pa.Schema | None) -> RawRequest:
        """Return the request for a text file with the table's types under the file's names."""
        ignores = self.extra is ExtraColumns.IGNORE
        request = replace(request, any_case=self.case_rule is CaseRule.INSENSITIVE)
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
        lead = [
            pa.field(given, self._named_as(found.field(given).type, self.table.field(name).type))
            for given, name in names.items()
        ]
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

    def _check_within(
        self, where: str, path: str, given: pa.DataType, wanted: pa.DataType, *, in_list: bool = False
    ) -> None:
        """Apply the policies to the fields of structs within a column; a cast drops and fills them without a word."""
        if is_list(given) and is_list(wanted):
            self._check_within(where, path, given.value_type, wanted.value_type, in_list=True)
        if pt.is_map(given) and pt.is_map(wanted):
            self._check_within(where, f"{path}.key", given.key_type, wanted.key_type, in_list=True)
            self._check_within(where, f"{path}.value", given.item_type, wanted.item_type, in_list=True)
        if not (pt.is_struct(given) and pt.is_struct(wanted)):
            return
        known = tuple(field.name for field in wanted)
        found: set[str] = set()
        for child in given:
            below = f"{path}.{child.name}"
            try:
                name = self.case_rule.find(child.name, known)
            except SchemaMismatch as error:
                raise SchemaMismatch(f"{where}: {path!r}: {error}") from error
            if name is None:
                if self.extra is ExtraColumns.REFUSE:
                    others = "; schema mode 'add' adds no field within a list or a map, or to a struct without fields"
                    remedy = others if in_list or not known else ", or use schema mode 'add'"
                    raise SchemaMismatch(
                        f"{where}: field {below!r} ({child.type}) is not in the table (which has "
                        f"{', '.join(known) or 'none'} there): drop it, or ignore extra columns{remedy}"
                    )
            elif name in found:
                raise SchemaMismatch(f"{where}: field {below!r} is there twice: the table calls both {name!r}")
            else:
                found.add(name)
                self._check_within(where, below, child.type, wanted.field(name).type, in_list=in_list)
        for name in known if self.missing is MissingColumns.REFUSE else ():
            if name not in found:
                raise SchemaMismatch(f"{where} has no field '{path}.{name}', and missing columns are not filled")

    def _named_as(self, given: pa.DataType, wanted: pa.DataType) -> pa.DataType:
        """Return a type of the table with the names that a file gives to the fields of its structs."""
        if is_list(given) and is_list(wanted):
            items = self._named_as(given.value_type, wanted.value_type)
            return wanted if items == wanted.value_type else pa.list_(items)
        if not (pt.is_struct(given) and pt.is_struct(wanted)):
            return wanted
        known = tuple(field.name for field in wanted)
        names = {self.case_rule.find(child.name, known): child for child in given}
        return pa.struct(
            [
                field.with_name(names[field.name].name).with_type(self._named_as(names[field.name].type, field.type))
                if field.name in names
                else field
                for field in wanted
            ]
        )


@dataclass(frozen=True)
class Lead:
    """Chooses the types that a text file is read with, when its first rows are known."""

    fitting: RowFitting
    file: RawFile

    def __call__(self, request: RawRequest, found: pa.Schema | None) -> RawRequest:
        return self.fitting.matched_text(self.file, request, found)


def _known_part(given: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """Return a file's type without the fields of structs that the table's type does not have."""
    if pt.is_struct(given) and pt.is_struct(wanted):
        known = {field.name: field.type for field in wanted}
        return pa.struct(
            [field.with_type(_known_part(field.type, known[field.name])) for field in given if field.name in known]
        )
    if is_list(given) and is_list(wanted):
        items = _known_part(given.value_type, wanted.value_type)
        return given if items == given.value_type else with_child_fields(given, [given.value_field.with_type(items)])
    if pt.is_map(given) and pt.is_map(wanted):
        keys, items = _known_part(given.key_type, wanted.key_type), _known_part(given.item_type, wanted.item_type)
        kept = pa.map_(given.key_field.with_type(keys), given.item_field.with_type(items))
        return given if (keys, items) == (given.key_type, given.item_type) else kept
    return given


def plain_schema(schema: Schema) -> pa.Schema:
    """Return a table's schema as raw files have it: storage types, JSON as text, blobs as bytes."""
    fields = [with_blobs_as(field, pa.large_binary()) for field in schema.fields]
    return text_schema(pa.schema(fields), pa.string()).remove_metadata()


def renamed(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return an array with the names of a type of the same layout; a cast would fill renamed fields with nulls."""
    if array.type == kind:
        return array
    if array.offset:  # which a view of a struct does not apply to children of type null
        array = pa.concat_arrays([array[:0], array])
    return array.view(kind)
