"""Guess how text is to be read from the first bytes of a file, and say what a person must decide.

A guess is made only if all rows that are seen agree with it. What is left open is a doubt, in a sentence.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from lance_ops.core.records import dataclass
from lance_ops.maintenance.ingest import TextReading

__all__ = ["TextGuess", "guess_text", "joint_guess"]

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_DELIMITERS = (",", ";", "\t", "|")
"""What may stand between the cells of CSV; of two that fit equally, the first one counts."""
_MOST_ROWS = 2000
_MOST_TITLES = 20
_LONGEST_WHOLE = 18
"""Every whole number of so many digits is an int64."""
_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?")
_COMMA_NUMBER = re.compile(r"[+-]?\d+(?:,(?P<fraction>\d+))?")
_POINT_NUMBER = re.compile(r"[+-]?\d+\.\d+")
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:(?P<group>[.,' ])\d{3})(?:(?P=group)\d{3})*(?:[.,]\d+)?")
_DAY = re.compile(
    r"(?:(?P<first>\d{1,2})(?P<sign>[./-])(?P<second>\d{1,2})(?P=sign)\d{4}|\d{4}(?P<slash>/)\d{1,2}/\d{1,2})"
    r"(?P<time> \d{1,2}:\d{2}(?P<seconds>:\d{2})?)?"
)


@dataclass(frozen=True)
class TextGuess:
    """How files seem to be written.

    `texts` are the columns whose digits are no numbers, such as `007`. `words` are some that only the encoding shows.
    """

    reading: TextReading = TextReading()
    texts: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


class _Table(NamedTuple):
    delimiter: str
    skip_lines: int
    header: list[str]
    rows: list[list[str]]

    def columns(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each column's name with the cells that are not empty."""
        for at, name in enumerate(self.header):
            yield name, [cell for row in self.rows if (cell := row[at].strip())]


class _Days(NamedTuple):
    """The form of a column's dates: which number comes first is None if each could be the day."""

    sign: str
    is_day_first: bool | None
    time: str

    def format(self, is_day_first: bool) -> str:
        if self.sign == "":
            return f"%Y/%m/%d{self.time}"
        parts = ("%d", "%m", "%Y") if is_day_first else ("%m", "%d", "%Y")
        return self.sign.join(parts) + self.time


def guess_text(start: bytes, *, is_csv: bool, is_whole: bool) -> TextGuess:
    """Guess from the first bytes of a file, decompressed; `is_whole` says that the file has no more."""
    encoding = _encoding(start)
    text = start.decode(encoding, "ignore").removeprefix("\ufeff")
    words = () if encoding == "utf-8" else tuple(dict.fromkeys(re.findall(r"\w*[^\W\x00-\x7f]\w*", text)))[:3]
    if not is_csv:
        return TextGuess(TextReading(encoding=encoding), words=words)
    table = _table(text, is_whole=is_whole)
    if table is None:
        return TextGuess(TextReading(encoding=encoding), words=words)
    doubts = [*_doubts_of_header(table)]
    days = {name: found for name, cells in table.columns() if (found := _days(cells)) is not None}
    formats, undecided = _formats(days)
    doubts += undecided
    has_comma, doubts_of_numbers = _decimal_comma(table)
    doubts += doubts_of_numbers
    reading = TextReading(
        delimiter=table.delimiter,
        encoding=encoding,
        date_formats=tuple(each for each in formats if "%H" not in each),
        timestamp_formats=tuple(each for each in formats if "%H" in each),
        decimal_point="," if has_comma else ".",
        skip_lines=table.skip_lines,
        distinct_names=len({name.casefold() for name in table.header if name}) < len(table.header),
    )
    texts = tuple(name for name, cells in table.columns() if name and _are_codes(cells))
    return TextGuess(reading, texts, words, tuple(doubts))


def joint_guess(guesses: Sequence[TextGuess]) -> TextGuess:
    """Return what the files of a dataset have in common; the first one decides where they contradict each other.

    A file without a special character, a fraction, a date or a leading zero contradicts nothing.
    """
    first = guesses[0].reading

    def told(values: Iterable[str], silent: str) -> str:
        return next((each for each in values if each != silent), silent)

    reading = TextReading(
        delimiter=first.delimiter,
        encoding=told((each.reading.encoding for each in guesses), "utf-8"),
        date_formats=_formats_of_all([each.reading.date_formats for each in guesses]),
        timestamp_formats=_formats_of_all([each.reading.timestamp_formats for each in guesses]),
        decimal_point=told((each.reading.decimal_point for each in guesses), "."),
        skip_lines=first.skip_lines,
        distinct_names=first.distinct_names,
    )
    return TextGuess(
        reading,
        tuple(dict.fromkeys(name for each in guesses for name in each.texts)),
        next((each.words for each in guesses if each.words), ()),
        tuple(dict.fromkeys(doubt for each in guesses for doubt in each.doubts)),
    )


def _formats_of_all(formats: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the formats of all files, without those that another one contradicts: the day first, or the month."""
    found = list(dict.fromkeys(each for of_file in formats for each in of_file))
    return tuple(each for each in found if _swapped(each) not in found)


def _swapped(form: str) -> str:
    return form.translate(str.maketrans("dm", "md"))


def _encoding(start: bytes) -> str:
    """Return an encoding that decodes the bytes; a character may be cut at their end."""
    for bom, name in _BOMS:
        if start.startswith(bom):
            return name
    if b"\0" in start[1::2] and b"\0" not in start[::2]:
        return "utf-16-le"
    try:
        start[:-3].decode("utf-8") if len(start) > 3 else start.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.end < len(start) - 3:
            return _one_byte_encoding(start)
    return "utf-8"


def _one_byte_encoding(start: bytes) -> str:
    try:
        start.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"


def _table(text: str, *, is_whole: bool) -> _Table | None:
    """Return the rows by the delimiter that gives all of them equally many cells; None if none gives two."""
    found = [table for each in _DELIMITERS if (table := _by_delimiter(text, each, is_whole=is_whole)) is not None]
    return min(found, key=lambda table: (table.skip_lines, -len(table.header)), default=None)


def _by_delimiter(text: str, delimiter: str, *, is_whole: bool) -> _Table | None:
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: list[tuple[int, list[str]]] = []
    before = 0
    try:
        for cells in lines:
            rows.append((before, cells))
            before = lines.line_num
            if len(rows) > _MOST_ROWS:
                break
    except csv.Error:
        return None
    if not is_whole and len(rows) <= _MOST_ROWS:
        rows = rows[:-1]  # it may be cut
    rows = [(line, cells) for line, cells in rows if cells]
    counts = Counter(len(cells) for _, cells in rows)
    width = max(counts, key=lambda count: (counts[count], count), default=0)
    at = next((at for at, (_, cells) in enumerate(rows) if len(cells) == width and sum(map(bool, cells)) > 1), None)
    if width < 2 or at is None or at > _MOST_TITLES or any(len(cells) != width for _, cells in rows[at:]):
        return None
    skipped, header = rows[at]
    if at and (at + 1 == len(rows) or any(map(_NUMBER.fullmatch, header))):
        return None
    return _Table(delimiter, skipped if at else 0, header, [cells for _, cells in rows[at + 1 :]])


def _doubts_of_header(table: _Table) -> Iterator[str]:
    alike = [
        name
        for name, cells in table.columns()
        if cells and _NUMBER.fullmatch(name) and all(map(_NUMBER.fullmatch, cells))
    ]
    if alike:
        yield (
            f"Is {alike[0]} a column's name? If the files have no header, set text.header: false, and name the columns "
            "in write.columns"
        )


def _are_codes(cells: Sequence[str]) -> bool:
    """Whether all cells are digits, and as numbers some would change: they begin with a zero, or are too long."""
    return all(cell.isdecimal() for cell in cells) and any(
        (cell.startswith("0") and len(cell) > 1) or len(cell) > _LONGEST_WHOLE for cell in cells
    )


def _decimal_comma(table: _Table) -> tuple[bool, list[str]]:
    """Return whether a comma stands before the fraction of numbers, and the doubts about numbers."""
    has_comma = has_point = False
    doubts = []
    for name, cells in table.columns():
        fractions = [found["fraction"] or "" for cell in cells if (found := _COMMA_NUMBER.fullmatch(cell))]
        has_point = has_point or any(map(_POINT_NUMBER.fullmatch, cells))
        if len(fractions) == len(cells) and any(fractions):
            if any(len(fraction) not in {0, 3} for fraction in fractions):
                has_comma = True
            else:
                doubts.append(
                    f"{name}: does the comma of its numbers stand before a fraction? If so, set text.decimal_point: ','"
                )
        elif _are_grouped(cells):
            doubts.append(f"{name}: its numbers have separators of thousands, so they stay text")
    if has_comma and has_point:
        return False, [*doubts, "Some numbers have a comma before their fraction, some a point: the former stay text"]
    return has_comma, [] if has_comma else doubts


def _are_grouped(cells: Sequence[str]) -> bool:
    """Whether all cells are numbers, and some have separators of thousands."""
    grouped = [cell for cell in cells if _GROUPED.fullmatch(cell)]
    return any(not _NUMBER.fullmatch(cell) for cell in grouped) and all(
        _GROUPED.fullmatch(cell) or _NUMBER.fullmatch(cell) for cell in cells
    )


def _days(cells: Sequence[str]) -> _Days | None:
    """Return the form of the dates if all cells have one form and are dates."""
    found = [_DAY.fullmatch(cell) for cell in cells]
    forms = {
        (each["sign"] or "", " %H:%M:%S" if each["seconds"] else " %H:%M" if each["time"] else "")
        for each in found
        if each is not None
    }
    if len(forms) != 1 or None in found:
        return None
    ((sign, time),) = forms
    orders = (True,) if sign in {"", "."} else (True, False)
    fitting = [order for order in orders if _all_are(cells, _Days(sign, order, time).format(order))]
    if not fitting:
        return None
    return _Days(sign, fitting[0] if len(fitting) == 1 else None, time)


def _all_are(cells: Iterable[str], form: str) -> bool:
    try:
        for cell in cells:
            datetime.strptime(cell, form)  # noqa: DTZ007  # only whether it is one counts
    except ValueError:
        return False
    return True


def _formats(days: dict[str, _Days]) -> tuple[tuple[str, ...], list[str]]:
    """Return the formats of the columns, and doubts. A column decides about another one with the same sign."""
    orders = {
        sign: {each.is_day_first for each in days.values() if each.sign == sign} - {None}
        for sign in {each.sign for each in days.values()}
    }
    formats, doubts = dict[str, None](), []
    for name, each in days.items():
        if len(orders[each.sign]) == 1:
            (order,) = orders[each.sign]
            formats[each.format(bool(order))] = None
        else:
            option = "timestamp_formats" if each.time else "date_formats"
            doubts.append(
                f"{name}: does the day or the month come first? Set text.{option} to [{each.format(True)!r}] or "
                f"[{each.format(False)!r}]"
            )
    return tuple(formats), doubts
