"""Keep a row's values of struct fields that the source of an update lacks, or refuse the source.

An update replaces a list or a map as a whole, because its items have no keys that pair them with the source's items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops.core.errors import SchemaMismatch
from lance_ops.core.schema import Field

__all__ = ["check_struct_fields", "check_structs_in_lists", "lacks_struct_fields", "with_missing_fields_kept"]


def check_struct_fields(given: Iterable[pa.Field], table: Sequence[Field]) -> None:
    """Raise `SchemaMismatch` naming a field that a struct of data lacks, since nulls would replace its values.

    The check passes over columns that the data lacks. It ignores the case of names.
    """
    _refuse(path for path, _ in _missing_fields(given, table))


def check_structs_in_lists(given: Iterable[pa.Field], table: Sequence[Field]) -> None:
    """Raise as `check_struct_fields` does, but only for structs within lists and maps."""
    _refuse(path for path, in_list in _missing_fields(given, table) if in_list)


def lacks_struct_fields(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether `given` lacks a field of `wanted`, in nested structs too, but not inside lists."""
    if not (pt.is_struct(given) and pt.is_struct(wanted)):
        return False
    return any(
        given.get_field_index(field.name) < 0 or lacks_struct_fields(given.field(field.name).type, field.type)
        for field in wanted
    )


def with_missing_fields_kept(new: pa.StructArray, old: pa.StructArray, given: pa.DataType) -> pa.StructArray:
    """Return `new` with the values of `old` for the fields that `given`, the source's type, does not have.

    Both arrays have the table's type. A struct is null where both are null. A struct that is null in the source makes
    only those fields null that the source has, as in the reference.
    """
    children = [
        _child(field, from_source, from_table, given)
        for field, from_source, from_table in zip(new.type, new.flatten(), old.flatten(), strict=True)
    ]
    return pa.StructArray.from_arrays(children, fields=list(new.type), mask=pc.and_(new.is_null(), old.is_null()))


def _child(field: pa.Field, new: pa.Array, old: pa.Array, given: pa.DataType) -> pa.Array:
    if given.get_field_index(field.name) < 0:
        return old
    inner = given.field(field.name).type
    return with_missing_fields_kept(new, old, inner) if lacks_struct_fields(inner, field.type) else new


def _refuse(missing: Iterator[str]) -> None:
    path = next(missing, None)
    if path is not None:
        raise SchemaMismatch(
            f"the data has no field {path!r}, and nulls would replace its values: give the whole struct"
        )


def _missing_fields(
    given: Iterable[pa.Field], table: Sequence[Field], above: str = "", *, in_list: bool = False
) -> Iterator[tuple[str, bool]]:
    """Yield the path of each field of the table's that a struct of data lacks, and whether it is in a list or a map."""
    known = {stored.name.lower(): stored for stored in table}
    for column in given:
        stored = known.get(column.name.lower())
        if stored is not None:
            yield from _missing_in(column.type, stored, f"{above}{stored.name}", in_list=in_list)


def _missing_in(given: pa.DataType, stored: Field, path: str, *, in_list: bool) -> Iterator[tuple[str, bool]]:
    if stored.is_blob_v2:
        return
    if pt.is_struct(given):
        names = {child.name.lower() for child in given}
        yield from ((f"{path}.{child.name}", in_list) for child in stored.children if child.name.lower() not in names)
        yield from _missing_fields(given, stored.children, f"{path}.", in_list=in_list)
    elif pt.is_map(given) and stored.logical_type == "map":
        (entries,) = stored.children
        for name, kind, child in zip(
            (".key", ".value"), (given.key_type, given.item_type), entries.children, strict=True
        ):
            yield from _missing_in(kind, child, path + name, in_list=True)
    elif hasattr(given, "value_type") and len(stored.children) == 1:
        yield from _missing_in(given.value_type, stored.children[0], path, in_list=True)
