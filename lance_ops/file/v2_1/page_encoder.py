"""Encode rows of one leaf as a 2.1 or 2.2 page."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow import numbers_of, scalar
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import BoolArray
from lance_ops.core.versions import FileVersion
from lance_ops.encodings import (
    FixedStatistics,
    FixedWidth,
    Structure,
    Values,
    VariableWidth,
    choose_dictionary,
    choose_structure,
    select,
)
from lance_ops.file.arrow_values import validity_of, values_of
from lance_ops.file.container import EncodedPage, WriteBytes
from lance_ops.file.leaves import Leaf
from lance_ops.file.stored_blobs import store_blobs
from lance_ops.file.v2_1.layers import Items
from lance_ops.file.v2_1.layouts import (
    LeafRows,
    PageChoice,
    encode_blob,
    encode_constant,
    encode_full_zip,
    encode_mini_block,
)
from lance_ops.file.v2_1.levels import EncodedLevels, encode_levels
from lance_ops.file.v2_1.short_page import encode_short_page

__all__ = ["encode_blob_page", "encode_leaf_page", "encode_page", "store_blob_values"]

_FIRST_ENTRIES = 4096


def encode_leaf_page(leaf: Leaf, choice: PageChoice, rows: LeafRows) -> EncodedPage:
    """Encode a page of a leaf that does not hold blobs; raise `UnsupportedFeature` naming its column."""
    try:
        return encode_page(rows, choice)
    except UnsupportedFeature as error:
        raise UnsupportedFeature(error.feature, f"column {leaf.field.name!r}") from error


def encode_page(rows: LeafRows, choice: PageChoice) -> EncodedPage:
    """Choose the layout of a page and encode it."""
    return encode_short_page(rows, choice) or _encode_measured(rows, choice)


def _encode_measured(rows: LeafRows, choice: PageChoice) -> EncodedPage:
    array = rows.values
    if pt.is_dictionary(array.type):
        return _encode_dictionary(rows, choice)
    if pt.is_struct(array.type) and not array.type.num_fields:
        return _encode_fieldless(rows, choice)
    levels = _levels_of(rows, array)
    if _has_no_value(levels):
        return encode_constant(None, levels, choice)
    if pt.is_struct(array.type):
        _refuse_null_children(array, levels)
    values = _visible_values(values_of(array), levels)
    constant = _only_value(values, levels, choice)
    if constant is not None:
        return encode_constant(constant, levels, choice)
    page = None
    statistics = FixedStatistics(values) if isinstance(values, FixedWidth) else None
    dictionary = choose_dictionary(values, choice.options, choice.version, statistics)
    if dictionary is not None:
        page = encode_mini_block(dictionary.indices, levels, choice, dictionary.entries, dictionary.statistics)
    elif choose_structure(values, choice.options) is Structure.MINI_BLOCK:
        page = encode_mini_block(values, levels, choice, statistics=statistics)
    return encode_full_zip(values, levels, choice) if page is None else page


def store_blob_values(rows: LeafRows, write: WriteBytes) -> LeafRows:
    """Write the values of blobs with `write`; return rows whose values are their positions and sizes."""
    levels = _levels_of(rows, rows.values)
    if levels.rep is not None:
        raise UnsupportedFeature("blobs in lists")
    present = None if levels.definition is None else levels.definition == 0
    return LeafRows(rows.layers, store_blobs(rows.values, present, write))


def encode_blob_page(rows: LeafRows, choice: PageChoice) -> EncodedPage:
    """Encode a page of blobs that `store_blob_values` has written."""
    positions, sizes = (numbers_of(rows.values.field(index)) for index in range(2))
    return encode_blob(positions, sizes, _levels_of(rows, rows.values), choice)


def _encode_dictionary(rows: LeafRows, choice: PageChoice) -> EncodedPage:
    """Encode a column that is a dictionary in Arrow, with a dictionary in the page, as readers expect."""
    array = rows.values
    if len(array.dictionary) > len(array) or array.dictionary.null_count:
        array = array.dictionary_decode().dictionary_encode().cast(array.type)
    levels = _levels_of(rows, array)
    if _has_no_value(levels):
        return encode_constant(None, levels, choice)
    indices = array.indices
    positions = _visible_values(values_of(indices.fill_null(scalar(0, indices.type))), levels)
    page = encode_mini_block(positions, levels, choice, values_of(array.dictionary))
    if page is None:
        raise UnsupportedFeature("a dictionary in a row of tens of thousands of empty lists")
    return page


def _encode_fieldless(rows: LeafRows, choice: PageChoice) -> EncodedPage:
    """Encode structs without fields as readers expect: as nulls, which are read as structs."""
    if rows.values.null_count or any(layer.validity is not None for layer in rows.layers):
        raise UnsupportedFeature("a null of a struct without fields, or of a struct around one,")
    return encode_constant(None, encode_levels([Items(len(rows.values), np.zeros(len(rows.values), np.bool_))]), choice)


def _refuse_null_children(array: pa.Array, levels: EncodedLevels) -> None:
    """Refuse nulls in the children of packed structs, which cannot be stored; nulls of the structs can."""
    present, _ = _present(levels, levels.num_entries)
    for index, field in enumerate(array.type):
        validity = validity_of(array.field(index))
        if validity is None:
            continue
        validity = validity[levels.slots]
        if not (validity if present is None else validity[present]).all():
            raise UnsupportedFeature(f"a null in {field.name!r} of a packed struct")


def _levels_of(rows: LeafRows, array: pa.Array) -> EncodedLevels:
    return encode_levels([*rows.layers, Items(len(array), validity_of(array))])


def _has_no_value(levels: EncodedLevels) -> bool:
    return levels.definition is not None and not (levels.definition == 0).any()


def _visible_values(values: Values, levels: EncodedLevels) -> Values:
    slots = levels.slots
    if not isinstance(slots, slice):
        return select(values, slots)
    if slots.start == 0 and slots.stop == values.num_values:
        return values
    return values.slice(slots.start, slots.stop)


def _only_value(values: Values, levels: EncodedLevels, choice: PageChoice) -> FixedWidth | VariableWidth | None:
    """Return the value of all entries that are not null; None if there are several, or 2.2 pages are not allowed."""
    if choice.version < FileVersion.V2_2 or not isinstance(values, FixedWidth | VariableWidth):
        return None
    # Most columns differ within the first entries, so those are compared first.
    every = levels.num_entries
    for num_entries in (_FIRST_ENTRIES, every) if every > _FIRST_ENTRIES else (every,):
        present, num_values = _present(levels, num_entries)
        if num_values == 0 or (present is not None and not present.any()):
            continue  # all values come later
        first, last = (0, num_values - 1) if present is None else _ends(present)
        if first < last and not (
            _value_at(values, first) == _value_at(values, last)
            and _all_equal(values.slice(0, num_values), first, present)
        ):
            return None
    return values if values.num_values == 1 else values.slice(first, first + 1)


def _present(levels: EncodedLevels, num_entries: int) -> tuple[BoolArray | None, int]:
    """Return which visible values of the first entries are not null (None: all), and the number of visible values."""
    definition = levels.definition
    if definition is None:
        return None, num_entries
    definition = definition[:num_entries]
    if levels.scheme.has_invisible:
        definition = definition[definition <= levels.scheme.max_visible_def]
    return (definition == 0) if levels.scheme.max_visible_def else None, len(definition)


def _ends(present: BoolArray) -> tuple[int, int]:
    """Return the indices of the first and the last present value; at least one is present."""
    return int(present.argmax()), len(present) - 1 - int(present[::-1].argmax())


def _value_at(values: FixedWidth | VariableWidth, index: int) -> object:
    """Return one value in a form that can be compared."""
    if isinstance(values, VariableWidth):
        start, end = values.offsets[index : index + 2].tolist()
        return values.data[start:end].tobytes()
    if values.bits_per_value % 8:
        return int(values.data[index >> 3]) >> (index & 7) & 1
    width = values.bits_per_value // 8
    return values.data[index * width : (index + 1) * width].tobytes()


def _all_equal(values: FixedWidth | VariableWidth, first: int, present: BoolArray | None) -> bool:
    """Return whether all present values equal the value at `first`."""
    if isinstance(values, VariableWidth):
        lengths = values.lengths()
        if present is not None:
            lengths = lengths[present]
        size = int(lengths[0])
        if (lengths != size).any():
            return False
        if not size:
            return True
        rows = select(values, np.flatnonzero(present)) if present is not None else values
        assert isinstance(rows, VariableWidth)
        return bool((rows.data[: rows.size_bytes].reshape(-1, size) == rows.data[:size]).all())
    if values.bits_per_value % 8:
        flags = np.unpackbits(values.data, count=values.num_values, bitorder="little")
        return bool(np.ptp(flags if present is None else flags[present]) == 0)
    width = values.bits_per_value // 8
    if width == 0:
        return True
    data = values.data[: values.size_bytes]
    numbers = data.view(f"<u{width}") if width in (1, 2, 4, 8) else data.reshape(-1, width)
    return bool(((numbers if present is None else numbers[present]) == numbers[first]).all())
