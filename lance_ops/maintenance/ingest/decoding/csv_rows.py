"""Read rows of CSV by the standard library: the header, which Arrow does not check, and rows with their lines."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

from lance_ops.maintenance.ingest.decoding.requests import (
    BLOCK_BYTES,
    DecodingRefused,
    RawLimits,
    RawSource,
    TextReading,
    check_count,
)

__all__ = ["check_quotes", "delimiter_hint", "distinct_names", "line_prefix_where", "other_delimiter", "read_header"]

_DELIMITERS = ",;\t|"
_STEP_BYTES = 16 * 1024**2
"""The standard library reads this many bytes in about half a second."""

_ROWS_OF_PROOF = 5
"""How many rows after the header are parted by another delimiter than the stated one, and compared with it."""


def read_header(source: RawSource, text: TextReading, limits: RawLimits) -> tuple[list[str], int]:
    """Return the names of the first row with cells, and the number of rows up to it: Arrow counts empty lines, too."""
    with source.open() as stream:
        start = stream.read(BLOCK_BYTES)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DecodingRefused("it is UTF-16: set the file's encoding to utf-16")
    if len(start) == BLOCK_BYTES and b"\n" not in start and b"\r" not in start:
        raise DecodingRefused(f"its first {BLOCK_BYTES:,} bytes have no line end; put each row on a line")
    decoded = start.decode("utf-8-sig", "replace")
    try:
        rows = enumerate(_rows(_after_skipped(io.StringIO(decoded, newline=""), text), text, source.row_bytes), 1)
        num_rows, names = next(((number, cells) for number, cells in rows if cells), (0, []))
    except csv.Error as error:
        raise DecodingRefused(f"its header cannot be read: {error}") from error
    check_count(len(names), "columns", limits.columns)
    _check_delimiter(decoded, text, names, num_rows)
    if text.distinct_names:
        return distinct_names(names), num_rows
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise DecodingRefused(f"two of its columns have the same name, {twice!r}: set distinct_names to number them")
    return names, num_rows


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return the names of a header, with a number after each one that occurs before, in any case, or is empty."""
    taken: set[str] = set()
    found = []
    for at, given in enumerate(names, 1):
        name, number = given or f"column_{at}", 2
        while name.casefold() in taken:
            name, number = f"{given or f'column_{at}'}_{number}", number + 1
        taken.add(name.casefold())
        found.append(name)
    return found


def _after_skipped(lines: Any, text: TextReading) -> Any:
    for _ in range(text.skip_lines):
        if not lines.readline():
            break  # the text has fewer lines
    return lines


def _rows(lines: Iterable[str], text: TextReading, cell_bytes: int, *, strict: bool = False) -> Any:
    csv.field_size_limit(cell_bytes)
    return csv.reader(
        lines,
        delimiter=text.delimiter,
        quotechar=text.quote or None,
        quoting=csv.QUOTE_MINIMAL if text.quote else csv.QUOTE_NONE,
        escapechar=text.escape or None,
        strict=strict,
    )


def other_delimiter(names: Sequence[str], text: TextReading) -> str:
    """Return what seems to stand between the names, if the delimiter leaves one name; or an empty text."""
    if len(names) != 1:
        return ""
    only = names[0]
    return max((sign for sign in _DELIMITERS if sign != text.delimiter and sign in only), key=only.count, default="")


def delimiter_hint(sign: str) -> str:
    """Return the part of an error that says how to set this delimiter."""
    return f"set the delimiter {sign!r} (raw.text.delimiter, or --delimiter)"


def _check_delimiter(start: str, text: TextReading, names: Sequence[str], num_rows: int) -> None:
    """Refuse a file of one column that another delimiter parts into as many cells in its header as in its first rows.

    A name in quotes may hold any delimiter.
    """
    other = other_delimiter(names, text)
    if not other:
        return
    by_other = replace(text, delimiter=other)
    with suppress(csv.Error):
        rows = [_first_rows(start, each, num_rows + _ROWS_OF_PROOF)[num_rows - 1 :] for each in (text, by_other)]
        num_cells, num_parts = ({len(cells) for cells in of_rows if cells} for of_rows in rows)
        if num_cells == {1} and len(num_parts) == 1 and num_parts != {1}:
            raise DecodingRefused(f"its header is one column, {names[0]!r}: {delimiter_hint(other)}, or quote the name")


def _first_rows(start: str, text: TextReading, num_rows: int) -> list[list[str]]:
    return list(islice(_rows(_after_skipped(io.StringIO(start, newline=""), text), text, BLOCK_BYTES), num_rows))


def line_prefix_where(source: RawSource, text: TextReading, is_bad: Callable[[list[str]], bool]) -> str:
    """Return the start of an error, `line N: `, for the first line with bad cells; an empty text if there is none."""
    for number, cells in _lines(source, text, skip_header=text.header):
        if is_bad(cells):
            return f"line {number}: "
    return ""


def check_quotes(source: RawSource, text: TextReading, num_bytes: int | None = None) -> Iterator[None]:
    """Refuse a quote that is not closed, and one that closes a cell before its end, with the line.

    Yields now and then, because this takes minutes for a long file. If `num_bytes` is given, only about
    that many bytes are read, and a quote may be open where they end.
    """
    seen: deque[str] = deque(maxlen=1)
    num_read, is_longer = 0, False

    def kept(lines: Iterable[str]) -> Iterator[str]:
        nonlocal num_read, is_longer
        for line in lines:
            if num_bytes is not None and num_read >= num_bytes:
                is_longer = True
                return
            seen.append(line)
            num_read += len(line)
            yield line

    with source.open() as stream:
        rows = _rows(kept(_after_skipped(_decoded(stream), text)), text, source.row_bytes, strict=True)
        num_lines = 0  # of the rows that are complete
        next_step = _STEP_BYTES
        try:
            for _ in rows:
                num_lines = rows.line_num
                if num_read >= next_step:
                    yield
                    next_step = num_read + _STEP_BYTES
        except csv.Error as error:
            first, last = (text.skip_lines + number for number in (num_lines + 1, rows.line_num))
            if "end of data" in str(error):
                if is_longer:
                    return
                raise DecodingRefused(
                    f"line {first}: a quote is not closed up to the end of the file; mend the file, or, if its quotes "
                    "are text, set quote to an empty text (raw.text.quote, --quote)"
                ) from error
            if "limit" in str(error):
                raise DecodingRefused(
                    f"line {first}: a cell has more than {source.row_bytes:,} bytes, or its quote is not closed",
                    "row_bytes",
                ) from error
            remedy = "double the quotes within a cell"
            if f"\\{text.quote}" in seen[-1]:
                remedy = "set escape to '\\' (raw.text.escape, --escape)"
            raise DecodingRefused(
                f"line {last}: a quote ends a cell, and more of the cell stands behind it: {remedy}"
            ) from error


def _decoded(stream: Any) -> io.TextIOWrapper:
    return io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline="")


def _lines(source: RawSource, text: TextReading, *, skip_header: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows, each with the number of its last line; empty lines are no rows."""
    with source.open() as stream:
        rows = _rows(_after_skipped(_decoded(stream), text), text, source.row_bytes)
        try:
            for cells in rows:
                if cells and not skip_header:
                    yield text.skip_lines + rows.line_num, cells
                skip_header = skip_header and not cells
        except csv.Error:
            return
