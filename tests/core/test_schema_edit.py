from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from lance_ops.core.errors import InvalidInput
from lance_ops.core.schema import (
    Schema,
    check_sibling_names,
    renumbered,
    with_field,
    with_new_fields,
    without_fields,
)

ARROW = pa.schema([pa.field("a", pa.int32()), pa.field("p", pa.struct({"x": pa.int8(), "l": pa.list_(pa.int8())}))])
SCHEMA = Schema.from_arrow(ARROW)


def ids(schema: Schema) -> list[tuple[str, int, int]]:
    return [(node.name, node.id, node.parent_id) for node in schema.walk()]


def test_new_fields_get_ids_from_the_given_number_and_existing_fields_keep_theirs() -> None:
    added = pa.schema([pa.field("b", pa.struct({"c": pa.string()})), pa.field("p", pa.struct({"y": pa.int64()}))])
    whole, new = with_new_fields(SCHEMA, added, 10)
    assert ids(whole) == [
        *(("a", 0, -1), ("p", 1, -1), ("x", 2, 1), ("l", 3, 1), ("item", 4, 3)),
        *(("y", 12, 1), ("b", 10, -1), ("c", 11, 10)),
    ]
    assert ids(new) == [("b", 10, -1), ("c", 11, 10), ("p", 1, -1), ("y", 12, 1)]


def test_adding_an_existing_column_is_refused() -> None:
    for taken in (pa.field("a", pa.int64()), pa.field("p", pa.struct({"x": pa.int8()}))):
        with pytest.raises(InvalidInput, match="exists already"):
            with_new_fields(SCHEMA, pa.schema([taken]), 10)


def test_dropping_the_last_child_drops_the_struct_and_dropping_a_list_item_is_refused() -> None:
    assert ids(without_fields(SCHEMA, ["p.x"])) == [("a", 0, -1), ("p", 1, -1), ("l", 3, 1), ("item", 4, 3)]
    assert ids(without_fields(SCHEMA, ["p.x", "p.l"])) == [("a", 0, -1)]
    with pytest.raises(InvalidInput, match="inside a list"):
        without_fields(SCHEMA, ["p.l.item"])
    with pytest.raises(InvalidInput, match="at least one"):
        without_fields(SCHEMA, ["a", "p"])


def test_replacing_a_field_keeps_its_position_and_renumbering_counts_in_pre_order() -> None:
    renamed = with_field(SCHEMA, 2, lambda field: replace(field, name="z"))
    assert ids(renamed)[2] == ("z", 2, 1)
    check_sibling_names(renamed)
    with pytest.raises(InvalidInput, match="called 'l'"):
        check_sibling_names(with_field(SCHEMA, 2, lambda field: replace(field, name="l")))
    fresh = renumbered(SCHEMA.fields[1], 20)
    assert ids(Schema((fresh,))) == [("p", 20, -1), ("x", 21, 20), ("l", 22, 20), ("item", 23, 22)]
