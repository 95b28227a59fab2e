"""Write names, types and values as SQL text from which `parse_filter` reads the same names, types and values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from lance_ops.core.arrow import is_any_list
from lance_ops.core.errors import InvalidInput
from lance_ops.core.predicate.arrow_type_names import spell_arrow_type
from lance_ops.core.predicate.tree.column_stats import order_key

__all__ = ["NANOSECONDS", "TYPES", "spell_path", "spell_scalar", "spell_text", "sql_name"]

TYPES: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "TINYINT UNSIGNED": pa.uint8(),
    "SMALLINT UNSIGNED": pa.uint16(),
    "INT UNSIGNED": pa.uint32(),
    "BIGINT UNSIGNED": pa.uint64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP(0)": pa.timestamp("s"),
    "TIMESTAMP(3)": pa.timestamp("ms"),
    "TIMESTAMP(6)": pa.timestamp("us"),
    "TIMESTAMP(9)": pa.timestamp("ns"),
}
"""The types that a filter may name, except decimals, by their names in the dialect."""

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""The length of each Arrow time unit, in nanoseconds."""

_FIRST_SECOND = -62_135_596_800
_LAST_SECOND = 253_402_300_799

_NAMES = {arrow_type: name for name, arrow_type in TYPES.items()}
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
# Words that are not read as a name without quotes, or that the reference implementation reserves.
_RESERVED_WORDS = """
    all and any array as asc between by case cast create cross current_date current_time current_timestamp date datetime
    decimal delete desc distinct drop else end escape except exists extract false filter from full group having if ilike
    in inner insert intersect interval into is join lateral left like limit natural not null offset on or order outer
    over partition right row select set similar some table then time timestamp true try_cast union unknown update using
    values when where window with within
"""
_RESERVED = frozenset(_RESERVED_WORDS.split())


def spell_path(path: Iterable[str]) -> str:
    """Join names with dots; a name that is not a plain lower-case word is back-quoted."""
    return ".".join(map(_spell_name, path))


def spell_text(text: str) -> str:
    """Return text in single quotes, with quotes inside it doubled."""
    return "'" + text.replace("'", "''") + "'"


def sql_name(arrow_type: pa.DataType) -> str | None:
    """Return the name of a type in the dialect; None for a type that only its Arrow name tells."""
    if arrow_type in _NAMES:
        return _NAMES[arrow_type]
    if pa.types.is_decimal128(arrow_type) or pa.types.is_decimal256(arrow_type):
        return f"DECIMAL({arrow_type.precision}, {arrow_type.scale})"
    return None


def spell_scalar(value: pa.Scalar) -> str:
    """Return a value as a literal; the value is of a type that a filter may have."""
    kind = value.type
    if not value.is_valid:
        return "NULL"
    if pa.types.is_boolean(kind):
        return "TRUE" if value.as_py() else "FALSE"
    if pa.types.is_floating(kind):
        return _spell_float(value.as_py())
    if pa.types.is_decimal(kind):
        return f"{sql_name(kind)} {spell_text(format(value.as_py(), 'f'))}"
    if pa.types.is_temporal(kind):
        return _spell_temporal(value)
    if is_any_list(kind):
        return f"[{', '.join(map(spell_scalar, value.values))}]"
    plain = value.as_py()
    if isinstance(plain, bytes):
        return f"X'{plain.hex()}'"
    return spell_text(plain) if isinstance(plain, str) else str(plain)


def _spell_name(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name not in _RESERVED:
        return name
    if "`" in name:
        raise InvalidInput(f"column {name!r}: a name with a back quote cannot be spelled in a filter")
    return f"`{name}`"


def _spell_float(number: float) -> str:
    if number != number or number in (float("inf"), float("-inf")):
        return f"CAST('{str(number).replace('nan', 'NaN')}' AS DOUBLE)"
    return repr(number)


def _spell_temporal(value: pa.Scalar) -> str:
    kind, ticks = value.type, order_key(value)
    if pa.types.is_date(kind):
        days = ticks if pa.types.is_date32(kind) else ticks // 86_400_000
        text = _instant(days * 86400, 0)
        return f"DATE '{text[:10]}'" if text else f"CAST(CAST({days} AS INT) AS DATE)"
    length = NANOSECONDS[kind.unit]
    if pa.types.is_duration(kind):
        if not -(2**63) <= ticks * length < 2**63:  # an interval is read as nanoseconds
            return f"arrow_cast({ticks}, {spell_text(spell_arrow_type(kind))})"
        return f"INTERVAL '{ticks * length} nanoseconds'"
    seconds, rest = divmod(ticks * length, 10**9)
    if pa.types.is_time(kind):
        return spell_text(_instant(seconds, rest)[11:])
    text = _instant(seconds, rest)
    if not text:
        return f"CAST({ticks} AS {_NAMES[pa.timestamp(kind.unit)]})"
    # A typed literal cannot name a zone. Plain text can, and takes the type of the value that it is compared with.
    if kind.tz is not None:
        return spell_text(f"{text}+00:00")
    return f"{_NAMES[kind]} {spell_text(text)}"


def _instant(seconds: int, nanoseconds: int) -> str:
    """Return an instant without trailing zeros in its fraction; an empty text outside the years 1 to 9999."""
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        return ""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    fraction = f".{nanoseconds:09d}".rstrip("0").rstrip(".")
    return f"{moment:%Y-%m-%d %H:%M:%S}".rjust(19, "0") + fraction
