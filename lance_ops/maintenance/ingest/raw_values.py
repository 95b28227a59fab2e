"""Turn cells that were read as text into a column's type, and say what to do about a value that is none of it.

The process that decodes runs this module's text, so it imports nothing but the standard library, pyarrow and modules
that do the same.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops.core.local_times import moments_of
from lance_ops.maintenance.ingest.raw_limits import TextReading

__all__ = ["bad_text", "form_option", "holds_text_to_parse", "is_list", "is_number", "misfit_message", "parsed"]

_QUOTED = re.compile(r"'(?:1970-01-01T)?(.*?)'(?= as a scalar| is not a valid|[.,:]|$)", re.DOTALL)

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_INTEGER = re.compile(r"[+-]?\d{1,38}")


def parsed(array: pa.Array, wanted: pa.DataType, text: TextReading) -> pa.Array:
    """Return an array with text, at any depth, parsed as the wanted type.

    Types that a later cast converts without a loss stay as they are. Raises `pa.ArrowInvalid` with the first text that
    does not fit.
    """
    given = array.type
    if given == wanted:
        return array
    if pt.is_struct(given) and pt.is_struct(wanted):
        children = [
            parsed(
                array.field(at),
                wanted.field(child.name).type if wanted.get_field_index(child.name) >= 0 else child.type,
                text,
            )
            for at, child in enumerate(given)
        ]
        fields = [child.with_type(made.type) for child, made in zip(given, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    if pt.is_list(given) and is_list(wanted):
        items = parsed(array.values, wanted.value_type, text)
        return pa.ListArray.from_arrays(array.offsets, items, mask=array.is_null())
    if not holds_text_to_parse(given, wanted):
        return array
    if pt.is_date(wanted) and text.date_formats:
        return pc.cast(_moments(array, pa.timestamp("s"), text.date_formats), pa.date32()).cast(wanted)
    if pt.is_timestamp(wanted) and text.timestamp_formats:
        return _moments(array, wanted, text.timestamp_formats)
    if pt.is_time(wanted):
        moments = pc.binary_join_element_wise(pa.scalar("1970-01-01T"), array, pa.scalar(""))
        return pc.cast(pc.cast(moments, pa.timestamp(wanted.unit)), wanted)
    if is_number(wanted):
        return _numbers(array, wanted, text)
    return pc.cast(array, wanted)


def holds_text_to_parse(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether values of a text type must be parsed to become the wanted type."""
    return bool(pt.is_string(given)) and not (
        pt.is_string(wanted)
        or pt.is_large_string(wanted)
        or pt.is_string_view(wanted)
        or pt.is_binary(wanted)
        or pt.is_large_binary(wanted)
        or pt.is_binary_view(wanted)
        or pt.is_nested(wanted)
        or pt.is_null(wanted)
    )


def is_number(kind: pa.DataType) -> bool:
    """Return whether the type is one of numbers, as text states them."""
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind))


def bad_text(error: Exception) -> str | None:
    """Return the text that Arrow's error quotes as one that does not fit, or None."""
    found = _QUOTED.search(str(error))
    return found[1] if found else None


def misfit_message(name: str, shown: str, kind: object, remedy: str = "") -> str:
    """Return that a column's value, as it is shown, is none of the column's type, with what to do.

    `remedy` is the option that reads such a value; otherwise the column needs another type.
    """
    if not remedy:
        ways = "by write.columns (--schema) for a new table and by alter_columns for one that is there"
        remedy = f"make the column {_wider_type(shown, kind)}, {ways}"
    return f"column {name!r}: {shown} is no {kind}; mend the file, or {remedy}"


def form_option(kind: str) -> str:
    """Return the option that states how text of a date or a moment is written; an empty text for another type."""
    if kind.startswith("date"):
        return "state its form in raw.text.date_formats (--date-format)"
    if kind.startswith("timestamp"):
        return "state its form in raw.text.timestamp_formats (--timestamp-format)"
    return ""


def _wider_type(shown: str, kind: object) -> str:
    """Return a type that holds a value which `kind` does not hold. For an integer it keeps every digit."""
    text = shown.strip("'\" ")
    if "int" not in str(kind) or not _NUMBER.fullmatch(text):
        return "string"
    if not _INTEGER.fullmatch(text):
        return "double"
    number = int(text)
    return "int64" if -(2**63) <= number < 2**63 else "uint64" if 0 <= number < 2**64 else "decimal128(38, 0)"


def is_list(kind: pa.DataType) -> bool:
    """Return whether the type is a list of any kind, but no map."""
    return bool(
        pt.is_list(kind)
        or pt.is_large_list(kind)
        or pt.is_fixed_size_list(kind)
        or pt.is_list_view(kind)
        or pt.is_large_list_view(kind)
    )


def _numbers(array: pa.Array, wanted: pa.DataType, text: TextReading) -> pa.Array:
    """Parse numbers with the declared decimal point and separators of thousands; a separator elsewhere is refused."""
    point, plain = text.decimal_point, array
    if text.thousands:
        plain = pc.utf8_trim_whitespace(plain)
        group = re.escape(text.thousands)
        grouped = rf"^[+-]?[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+(?:{re.escape(point)}[0-9]*)?$"
        _refuse(
            plain,
            pc.and_(pc.match_substring(plain, text.thousands), pc.invert(pc.match_substring_regex(plain, grouped))),
        )
        plain = pc.replace_substring(plain, text.thousands, "")
    if point != ".":
        _refuse(plain, pc.match_substring(plain, "."))
        plain = pc.replace_substring(plain, point, ".")
    try:
        return pc.cast(plain, wanted)
    except pa.ArrowInvalid as error:
        bad = bad_text(error)
        at = -1 if bad is None else pc.index(plain, bad).as_py()
        if at < 0:
            raise
        raise pa.ArrowInvalid(f"'{array[at]}'") from error


def _refuse(array: pa.Array, is_bad: pa.BooleanArray) -> None:
    bad = array.filter(is_bad)
    if len(bad):
        raise pa.ArrowInvalid(f"'{bad[0]}' is not a valid number")


def _moments(array: pa.Array, wanted: pa.DataType, formats: tuple[str, ...]) -> pa.Array:
    """Parse timestamps by the first format that fits, in the wanted zone, else as ISO 8601."""
    clock = pa.timestamp(wanted.unit)
    found = pa.nulls(len(array), clock)
    for each in formats:
        found = pc.coalesce(found, pc.strptime(array, format=each, unit=wanted.unit, error_is_null=True))
    if wanted.tz is not None:
        found = moments_of(found, wanted.tz).cast(wanted)
    rest = pc.if_else(pc.is_valid(found), pa.scalar(None, pa.string()), array)
    return pc.coalesce(found, pc.cast(rest, wanted))
