"""Turn cells that were read as text into a column's type, and say what to do about a value that is not of that type."""

from __future__ import annotations

import json
import re
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops.core.local_times import moments_of
from lance_ops.maintenance.ingest.decoding.requests import TextReading

__all__ = [
    "WHOLE_DECIMAL",
    "bad_text",
    "form_option",
    "holds_text_to_parse",
    "is_list",
    "is_number",
    "json_misfit",
    "misfit_message",
    "parsed",
]

WHOLE_DECIMAL = pa.decimal128(38, 0)
"""Holds whole numbers that int64 does not hold."""

_QUOTED = re.compile(r"'(?:1970-01-01T)?(.*?)'(?= as a scalar| is not a valid|[.,:]|$)", re.DOTALL)

_SHOWN = 100
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WHOLE_TYPE = re.compile(r"u?int|decimal\d+\(\d+, 0\)")
_INTEGER = re.compile(r"[+-]?\d{1,38}")

_SECONDS = pa.timestamp("s")
_DIRECTIVE = re.compile(r"%([-_0^#]*[EO]?)(.)", re.DOTALL)
_WITH_DAY = {"D": "%m/%d/%y", "x": "%m/%d/%y", "F": "%Y-%m-%d", "c": "%a %b %e %H:%M:%S %Y"}
"""Directives of C's `strptime` that stand for several, with a day of the month among them."""

_LAST_CARRIED_DAY = 3
"""The 31st of February is the 3rd of March for `strptime`, and no other day becomes a later one."""

_LEAST_YEAR_OF_FOUR_DIGITS = 1000


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
        return pc.cast(_days(array, text.date_formats), pa.date32()).cast(wanted)
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
    """Return a type that holds a value which `kind` does not hold. For a whole number it keeps every digit."""
    text = shown.strip("'\" ")
    if not _WHOLE_TYPE.match(str(kind)) or not _NUMBER.fullmatch(text):
        return "string"
    if not _INTEGER.fullmatch(text):
        return "string" if text.lstrip("+-").isdigit() else "double"
    number = int(text)
    return "int64" if -(2**63) <= number < 2**63 else "uint64" if 0 <= number < 2**64 else "decimal128(38, 0)"


def json_misfit(value: Any, read: pa.DataType, wanted: pa.DataType, bad: str | None, path: str = "") -> str:
    """Return the column and value that Arrow does not read as `read`, or that is the text `bad`; or an empty text."""
    if value is None:
        return ""
    if pt.is_struct(read) and isinstance(value, dict):
        names = [name for name in value if read.get_field_index(name) >= 0]
        below = (
            json_misfit(
                value[name], read.field(name).type, wanted.field(name).type, bad, f"{path}.{name}" if path else name
            )
            for name in names
        )
        return next(filter(None, below), "")
    if pt.is_list(read) and isinstance(value, list):
        items = (json_misfit(each, read.value_type, wanted.value_type, bad, path) for each in value)
        return next(filter(None, items), "")
    fits = _fits_json(value, read) and not (pt.is_string(read) and read != wanted and value == bad)
    remedy = form_option(str(wanted)) if isinstance(value, str) else ""
    return "" if fits else misfit_message(path, json.dumps(value)[:_SHOWN], wanted, remedy)


def _fits_json(value: Any, kind: pa.DataType) -> bool:
    if pt.is_nested(kind) or pt.is_null(kind) or isinstance(value, list | dict):
        return False
    is_given_number = isinstance(value, int | float) and not isinstance(value, bool)
    if pt.is_boolean(kind):
        return isinstance(value, bool)
    if pt.is_integer(kind) or pt.is_floating(kind):
        if not is_given_number or (pt.is_integer(kind) and isinstance(value, float)):
            return False
        try:
            pa.scalar(value, kind)
        except (pa.ArrowInvalid, OverflowError):
            return False
        return True
    if pt.is_decimal(kind):
        return _casts(str(value), kind) if is_given_number or isinstance(value, str) else False
    if not isinstance(value, str):
        return False
    return _casts(value, kind) or _casts(f"{value}Z", kind) if pt.is_timestamp(kind) else True


def _casts(text: str, kind: pa.DataType) -> bool:
    try:
        pa.array([text]).cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


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
    point, plain = text.decimal_point, pc.utf8_trim_whitespace(array)
    if text.thousands:
        group = re.escape(text.thousands)
        grouped = rf"^[+-]?[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+(?:{re.escape(point)}[0-9]*)?$"
        _refuse(
            plain,
            pc.and_(pc.match_substring(plain, text.thousands), pc.invert(pc.match_substring_regex(plain, grouped))),
        )
        plain = pc.replace_substring(plain, text.thousands, "")
    if pt.is_integer(wanted):  # Arrow reads 0xFF as -1 into int8
        _refuse(plain, pc.match_substring_regex(plain, "^0[xX]"))
    if point != ".":
        _refuse(plain, pc.match_substring(plain, "."))
        plain = pc.replace_substring(plain, point, ".")
    try:
        return pc.cast(plain, wanted)
    except pa.ArrowInvalid as error:
        raise pa.ArrowInvalid(f"'{array[_first_misfit(plain, wanted)]}'") from error


def _first_misfit(cells: pa.Array, kind: pa.DataType) -> int:
    """Return the place of the first text that is none of a type; Arrow does not always say which one it is."""
    start, stop = 0, len(cells)
    while stop - start > 1:
        middle = (start + stop) // 2
        try:
            pc.cast(cells[start:middle], kind)
            start = middle
        except pa.ArrowInvalid:
            stop = middle
    return start


def _refuse(array: pa.Array, is_bad: pa.BooleanArray) -> None:
    bad = array.filter(is_bad)
    if len(bad):
        raise pa.ArrowInvalid(f"'{bad[0]}' is not a valid number")


def _days(array: pa.Array, formats: tuple[str, ...]) -> pa.Array:
    """Parse dates by the first format that fits, else as ISO 8601; an offset in a cell does not change its date."""
    found = pa.nulls(len(array), _SECONDS)
    for each in formats:
        found = pc.coalesce(found, _by_format(array, each)[1])
    return _or_iso(found, array)


def _moments(array: pa.Array, wanted: pa.DataType, formats: tuple[str, ...]) -> pa.Array:
    """Parse timestamps by the first format that fits, else as ISO 8601.

    A moment has the offset of its cell if the format has one, and is a time in the wanted zone otherwise.
    """
    found = pa.nulls(len(array), wanted)
    for each in formats:
        moments = _by_format(array, each)[0]
        if wanted.tz is not None and moments.type.tz is None:
            moments = moments_of(moments, wanted.tz)
        finer = moments.cast(pa.timestamp(wanted.unit, moments.type.tz), safe=False)
        is_held = pc.equal(finer.cast(moments.type, safe=False), moments)  # nanoseconds hold 584 years
        found = pc.coalesce(found, pc.if_else(is_held, finer.cast(wanted), pa.scalar(None, wanted)))
    return _or_iso(found, array)


def _or_iso(found: pa.Array, array: pa.Array) -> pa.Array:
    rest = pc.if_else(pc.is_valid(found), pa.scalar(None, pa.string()), array)
    return pc.coalesce(found, pc.cast(rest, found.type))


def _by_format(cells: pa.Array, form: str) -> tuple[pa.Array, pa.Array]:
    """Return the moments that cells state by a format of C's `strptime`, and the days; null where a cell does not fit.

    For `strptime`, the 31st of February is the 3rd of March, the 366th day of 2026 is in 2028, and `%Y` may have two
    digits. Here none of them fits.
    """
    moments = pc.strptime(cells, format=form, unit="s", error_is_null=True)
    clocks = moments.cast(_SECONDS)  # those of UTC, if the format has an offset
    days = pc.floor_temporal(clocks, unit="day")
    has_offset = moments.type.tz is not None
    plain = _DIRECTIVE.sub(lambda found: _WITH_DAY.get(found[2], found[0]), form)
    without_day = _without_day(plain)
    if without_day == plain:
        near = (days, pc.subtract(days, _duration_of(1)), pc.add(days, _duration_of(1))) if has_offset else (days,)
        fits = reduce(pc.or_, (_states_year(cells, each, plain) for each in near))
    elif has_offset:
        firsts = _parsed_by(without_day, cells)
        months = pc.floor_temporal(pc.add(firsts, _duration_of(10)), unit="month")  # an offset is shorter than a day
        days = pc.add(months, pc.subtract(clocks, firsts))
        fits = pc.and_(pc.equal(pc.month(days), pc.month(months)), _states_year(cells, months, plain))
    else:
        may_be_carried = pc.less_equal(pc.day(days), _LAST_CARRIED_DAY)
        firsts = _parsed_by(without_day, pc.if_else(may_be_carried, cells, pa.scalar(None, cells.type)))
        is_of_month = pc.or_kleene(pc.invert(may_be_carried), pc.equal(pc.month(days), pc.month(firsts)))
        fits = pc.and_(is_of_month, _states_year(cells, days, plain))
    return pc.if_else(fits, moments, pa.scalar(None, moments.type)), pc.if_else(fits, days, pa.scalar(None, _SECONDS))


def _parsed_by(form: str, cells: pa.Array) -> pa.Array:
    return pc.strptime(cells, format=form, unit="s", error_is_null=True).cast(_SECONDS)


def _without_day(form: str) -> str:
    """Return a format that reads a day of the month as a week, which says nothing.

    Without a day, `strptime` gives the first of the month. A week of two digits may be greater than a day, so what
    begins with a day of one digit and another digit, as 4012026 does, is not read alike. Days from 10 on are.
    """
    return _DIRECTIVE.sub(lambda found: "%V" if found[2] in "de" else found[0], form)


def _states_year(cells: pa.Array, days: pa.Array, form: str) -> pa.Array:
    """Return whether cells have the digits of the years of their days, where another year is possible.

    That is a year of `%Y` with less than four digits, and any year of a format with days of the year or with weeks.
    """
    years, directives = pc.year(days), {found[2] for found in _DIRECTIVE.finditer(form)}
    if not directives & set("YyGg"):
        return pc.is_valid(years)
    is_doubtful = pc.is_valid(years) if directives & set("jUWGg") else pc.less(years, _LEAST_YEAR_OF_FOUR_DIGITS)
    is_doubtful = pc.fill_null(is_doubtful, False)
    if not pc.any(is_doubtful).as_py():
        return pc.is_valid(years)
    num_digits = 4 if directives & set("YG") else 2
    has_digits = [
        f"{year:04}"[-num_digits:] in cell
        for cell, year in zip(cells.filter(is_doubtful).to_pylist(), years.filter(is_doubtful).to_pylist(), strict=True)
    ]
    return pc.replace_with_mask(pc.is_valid(years), is_doubtful, pa.array(has_digits))


def _duration_of(days: int) -> pa.Scalar:
    """Return a duration. Arrow imports pandas for it, so this module does not make one at its import."""
    return pa.scalar(days * 86_400, pa.duration("s"))
