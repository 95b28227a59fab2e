"""Cast decimals to floats, and whole numbers to decimals, by a type between them where Arrow's own cast is of no use.

Arrow multiplies the digits by a rounded power of ten, so that -2.55 becomes -2.5500000000000003. The way through text
gives the nearest float. It also refuses every whole number for a decimal that does not hold all numbers of that type.
The way through a longer decimal refuses only the values that do not fit.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow.nested import child_fields, with_child_fields

__all__ = ["type_between"]

_MOST_DIGITS = 20
"""The most digits of an integer."""

_LONGEST = 76
"""The most digits of a decimal."""


def type_between(given: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """Return the type to cast to before `wanted`: text for decimals that become floats, a long decimal for an integer.

    Fields of structs are paired by name. Returns `given` if Arrow casts it well by itself.
    """
    if pt.is_decimal(given):
        return pa.string() if pt.is_floating(wanted) else given
    if pt.is_integer(given) and pt.is_decimal(wanted) and wanted.scale >= 0:
        digits = min(wanted.scale + _MOST_DIGITS, _LONGEST)
        return given if digits <= wanted.precision else pa.decimal256(digits, wanted.scale)
    targets = child_fields(wanted)
    by_name = {field.name: field for field in targets}
    fields, is_struct = child_fields(given), pt.is_struct(given)
    if not targets or is_struct != pt.is_struct(wanted):
        return given
    pairs = [(field, by_name.get(field.name) if is_struct else targets[0]) for field in fields]
    inner = [field if to is None else field.with_type(type_between(field.type, to.type)) for field, to in pairs]
    return given if inner == fields else with_child_fields(given, inner)
