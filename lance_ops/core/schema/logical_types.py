"""Convert between Lance's logical type strings and Arrow types.

    null bool int8 … uint64 halffloat float double string binary large_string large_binary
    fixed_size_binary:N   decimal:128:P:S   decimal:256:P:S   date32:day   date64:ms
    time32:s|ms   time64:us|ns   timestamp:UNIT:TZ|-   duration:UNIT
    struct   list   list.struct   large_list   large_list.struct   map
    fixed_size_list:ELEMENT:N   (ELEMENT may be a fixed_size_list itself, or lance.bfloat16; with `struct` the one
                                 child is the item)
    dict:VALUE:KEY:ordered

Parents (struct, list, map, a fixed-size list of structs) describe their values by child fields; everything else is
in the string.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow import EXTENSION_METADATA, EXTENSION_NAME
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.schema.nesting import MAX_DEPTH

__all__ = ["BFLOAT16", "arrow_type_of", "child_fields_of", "logical_type_of"]

_SIMPLE: dict[str, pa.DataType] = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "large_string": pa.large_string(),
    "large_binary": pa.large_binary(),
    "json": pa.large_binary(),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
    "time32:s": pa.time32("s"),
    "time32:ms": pa.time32("ms"),
    "time64:us": pa.time64("us"),
    "time64:ns": pa.time64("ns"),
    "duration:s": pa.duration("s"),
    "duration:ms": pa.duration("ms"),
    "duration:us": pa.duration("us"),
    "duration:ns": pa.duration("ns"),
}
_NAMES = {arrow_type: name for name, arrow_type in _SIMPLE.items() if name != "json"} | {
    pa.string_view(): "string",  # files store no views
    pa.binary_view(): "binary",
}

BFLOAT16 = "lance.bfloat16"
"""The element of a fixed-size list, which has no field of its own whose metadata could name the extension type."""
_BFLOAT16_ITEM = pa.field("item", pa.binary(2), metadata={EXTENSION_NAME: BFLOAT16, EXTENSION_METADATA: ""})


def logical_type_of(arrow_type: pa.DataType, name: str) -> str:
    """Return the logical type of an Arrow storage type.

    Raises `UnsupportedFeature` for a type without a logical type; `name` is the column's name for that error.
    """
    if isinstance(arrow_type, pa.BaseExtensionType):  # a user's own type may have no hash
        raise UnsupportedFeature(f"Arrow type {arrow_type}", f"column {name!r}")
    simple = _NAMES.get(arrow_type)
    if simple is not None:
        return simple
    if pt.is_struct(arrow_type):
        return "struct"
    if pt.is_map(arrow_type):
        return "map"
    if pt.is_list(arrow_type) or pt.is_large_list(arrow_type):
        kind = "large_list" if pt.is_large_list(arrow_type) else "list"
        return f"{kind}.struct" if pt.is_struct(_storage(arrow_type.value_type)) else kind
    if pt.is_fixed_size_list(arrow_type):
        if _is_bfloat16(arrow_type.value_field):
            return f"fixed_size_list:{BFLOAT16}:{arrow_type.list_size}"
        if not _may_have_fixed_lists(arrow_type.value_type) or arrow_type.list_size < 1:
            raise UnsupportedFeature(f"Arrow type {arrow_type}", f"column {name!r}")
        return f"fixed_size_list:{logical_type_of(arrow_type.value_type, name)}:{arrow_type.list_size}"
    if pt.is_fixed_size_binary(arrow_type):
        return f"fixed_size_binary:{arrow_type.byte_width}"
    if pt.is_decimal128(arrow_type) or pt.is_decimal256(arrow_type):
        return f"decimal:{arrow_type.bit_width}:{arrow_type.precision}:{arrow_type.scale}"
    if pt.is_timestamp(arrow_type) and arrow_type.tz != "-":  # the format's spelling of no zone
        return f"timestamp:{arrow_type.unit}:{arrow_type.tz or '-'}"
    if pt.is_dictionary(arrow_type) and not pt.is_nested(arrow_type.value_type):
        value = logical_type_of(arrow_type.value_type, name)
        key = logical_type_of(arrow_type.index_type, name)
        return f"dict:{value}:{key}:{str(arrow_type.ordered).lower()}"
    raise UnsupportedFeature(f"Arrow type {arrow_type}", f"column {name!r}")


def child_fields_of(arrow_type: pa.DataType) -> list[pa.Field]:
    """Return the Arrow fields that become child fields of a column of this type, or of its storage type."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        arrow_type = arrow_type.storage_type
    if pt.is_struct(arrow_type):
        return list(arrow_type)
    if pt.is_map(arrow_type):
        return [pa.field("entries", pa.struct([arrow_type.key_field, arrow_type.item_field]), nullable=False)]
    if pt.is_list(arrow_type) or pt.is_large_list(arrow_type):
        return [arrow_type.value_field]
    if pt.is_fixed_size_list(arrow_type) and pt.is_struct(arrow_type.value_type):
        return [arrow_type.value_field]
    return []


def arrow_type_of(logical_type: str, children: Sequence[pa.Field], name: str) -> pa.DataType:
    """Return the Arrow storage type of a field with these children.

    Raises `UnsupportedFeature` for a logical type this library does not know, `InvalidInput` for one that
    contradicts its children; both name the column.
    """
    simple = _SIMPLE.get(logical_type)
    if simple is not None:
        return simple
    kind, _, rest = logical_type.partition(":")
    try:
        match kind:
            case "struct":
                return pa.struct(list(children))
            case "list" | "list.struct":
                return pa.list_(_only(children))
            case "large_list" | "large_list.struct":
                return pa.large_list(_only(children))
            case "map":
                entries = _only(children).type
                if not pt.is_struct(entries) or entries.num_fields != 2:
                    raise ValueError("the child of a map must be a struct of two fields")
                return pa.map_(entries.field(0), entries.field(1))
            case "fixed_size_list":
                element, _, size = rest.rpartition(":")
                if int(size) < 1 or element.count("fixed_size_list:") >= MAX_DEPTH:
                    raise ValueError("the list size is below 1, or too many lists are nested")
                if element == BFLOAT16:
                    return pa.list_(_BFLOAT16_ITEM, int(size))
                item = _only(children) if element == "struct" else arrow_type_of(element, (), name)
                return pa.list_(item, int(size))
            case "fixed_size_binary":
                return pa.binary(int(rest))
            case "decimal":
                bits, precision, scale = rest.split(":")
                make = {"128": pa.decimal128, "256": pa.decimal256}[bits]
                return make(int(precision), int(scale))
            case "timestamp":
                unit, _, zone = rest.partition(":")
                return pa.timestamp(unit, None if zone in ("-", "") else zone)
            case "dict":
                value_and_key, _, ordered = rest.rpartition(":")
                value, _, key = value_and_key.rpartition(":")
                if value.count(":") > MAX_DEPTH:
                    raise ValueError("too many dictionaries are nested")
                return pa.dictionary(arrow_type_of(key, (), name), arrow_type_of(value, (), name), ordered == "true")
    except (ValueError, KeyError, IndexError, OverflowError, TypeError, pa.ArrowException) as error:
        raise InvalidInput(f"column {name!r}: logical type {logical_type!r} is malformed: {error}") from error
    raise UnsupportedFeature(f"logical type {logical_type!r}", f"column {name!r}")


def _may_have_fixed_lists(value_type: pa.DataType) -> bool:
    """Return whether a fixed-size list can hold this type: a leaf but no dictionary, lists of such leaves, or a struct.

    The nested lists must have a fixed size too.
    """
    while pt.is_fixed_size_list(value_type):
        value_type = value_type.value_type
        if pt.is_struct(value_type):
            return False
    return pt.is_struct(value_type) or not (pt.is_nested(value_type) or pt.is_dictionary(value_type))


def _is_bfloat16(item: pa.Field) -> bool:
    """Return whether the element of a fixed-size list is bfloat16, as the extension type or as marked bytes."""
    if isinstance(item.type, pa.BaseExtensionType):
        return bool(item.type.extension_name == BFLOAT16)
    marked = (item.metadata or {}).get(EXTENSION_NAME.encode()) == BFLOAT16.encode()
    return marked and bool(item.type == pa.binary(2))


def _storage(arrow_type: pa.DataType) -> pa.DataType:
    return arrow_type.storage_type if isinstance(arrow_type, pa.BaseExtensionType) else arrow_type


def _only(children: Sequence[pa.Field]) -> pa.Field:
    if len(children) != 1:
        raise ValueError(f"one child field expected, {len(children)} found")
    return children[0]
