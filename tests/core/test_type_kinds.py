from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from lance_ops.core.arrow import is_any_list, is_number, is_text, is_text_or_bytes, is_text_or_view

ITEM = pa.int8()
OF_NO_KIND = (
    *(pa.null(), pa.bool_(), pa.date32(), pa.timestamp("us"), pa.duration("s"), pa.binary(4), pa.binary_view()),
    *(pa.struct([("x", ITEM)]), pa.map_(ITEM, ITEM), pa.list_view(ITEM), pa.large_list_view(ITEM)),
    *(pa.dictionary(pa.int8(), pa.string()), pa.json_()),
)
KINDS: dict[Callable[[pa.DataType], bool], tuple[pa.DataType, ...]] = {
    is_any_list: (pa.list_(ITEM), pa.large_list(pa.string()), pa.list_(ITEM, 3)),
    is_number: (pa.int8(), pa.uint64(), pa.float16(), pa.float64(), pa.decimal32(4, 1), pa.decimal256(40, 2)),
    is_text: (pa.string(), pa.large_string()),
    is_text_or_view: (pa.string(), pa.large_string(), pa.string_view()),
    is_text_or_bytes: (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()),
}


def test_each_kind_has_its_types_and_no_other() -> None:
    known = {*OF_NO_KIND, *(each for types in KINDS.values() for each in types)}
    for is_kind, types in KINDS.items():
        assert {each for each in known if is_kind(each)} == set(types), is_kind.__name__
