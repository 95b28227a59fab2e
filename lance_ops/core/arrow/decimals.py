"""Choose a type to cast through, from decimals to floats and from integers to decimals.

Arrow casts a decimal to a float by a rounded power of ten, so that -2.55 becomes -2.5500000000000003. A cast through
text gives the nearest float. Arrow also refuses to cast an integer to a decimal that does not hold every integer of its
type. A cast through a longer decimal refuses only the values that do not fit. With over 57 digits after the point there
is no longer decimal for an `int64`, and Arrow refuses all.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow.nested import child_fields, with_child_fields

__all__ = ["type_between"]

_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
"""How many digits an integer may have, by its number of bits. An unsigned one of 64 bits may have 20."""

_MOST_DECIMAL_DIGITS = 76


def type_between(given: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """Return the type to cast to first: text before a float, for a decimal; a longer decimal, for an integer.

    Fields of structs are paired by name. Returns `given` if Arrow casts it well by itself.
    """
    if pt.is_decimal(given):
        return pa.string() if pt.is_floating(wanted) else given
    if pt.is_integer(given) and pt.is_decimal(wanted) and wanted.scale >= 0:
        digits = wanted.scale + (20 if given == pa.uint64() else _DIGITS[given.bit_width])
        if wanted.precision < digits <= _MOST_DECIMAL_DIGITS:
            return pa.decimal256(digits, wanted.scale)
        return given
    targets = child_fields(wanted)
    by_name = {field.name: field for field in targets}
    fields, is_struct = child_fields(given), pt.is_struct(given)
    if not targets or is_struct != pt.is_struct(wanted):
        return given
    pairs = [(field, by_name.get(field.name) if is_struct else targets[0]) for field in fields]
    inner = [field if to is None else field.with_type(type_between(field.type, to.type)) for field, to in pairs]
    return given if inner == fields else with_child_fields(given, inner)
