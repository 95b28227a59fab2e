"""Cast decimals to floats without an error in the last digit.

Arrow multiplies the digits by a rounded power of ten, so that -2.55 becomes -2.5500000000000003. The way through text
gives the nearest float.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow.nested import child_fields, with_child_fields

__all__ = ["decimals_as_text"]


def decimals_as_text(given: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """Return the type to cast to before `wanted`: `given` with text for the decimals that become floats.

    Fields of structs are paired by name. Returns `given` if no decimal becomes a float.
    """
    if pt.is_decimal(given):
        return pa.string() if pt.is_floating(wanted) else given
    targets = child_fields(wanted)
    by_name = {field.name: field for field in targets}
    fields, is_struct = child_fields(given), pt.is_struct(given)
    if not targets or is_struct != pt.is_struct(wanted):
        return given
    pairs = [(field, by_name.get(field.name) if is_struct else targets[0]) for field in fields]
    inner = [field if to is None else field.with_type(decimals_as_text(field.type, to.type)) for field, to in pairs]
    return given if inner == fields else with_child_fields(given, inner)
