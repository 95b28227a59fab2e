"""Guess how text is to be read from the first bytes of files, and say what a person must decide.

A guess is made only if all rows that are seen agree with it. What is left open is a doubt, in a sentence. Encodings are
the exception: bytes that are neither UTF-8 nor UTF-16 count as cp1252, or as latin-1 if they are no cp1252. They may be
of another encoding, so the guess has words by which a person can tell.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, NamedTuple

from lance_ops.core.records import dataclass
from lance_ops.dagster.project.number_guess import is_number, number_form
from lance_ops.maintenance.ingest import TextReading, distinct_names

__all__ = ["TextGuess", "guess_text", "joint_guess"]

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_DELIMITERS = (",", ";", "\t", "|")
"""What may stand between the cells of CSV; of two that fit equally, the first one counts."""
_MOST_ROWS = 2000
_MOST_TITLES = 20
_LONGEST_WHOLE = 18
"""Every whole number of this many digits is an int64."""
_DAY = re.compile(
    r"(?:(?P<first>\d{1,2})(?P<sign>[./-])(?P<second>\d{1,2})(?P=sign)\d{4}|\d{4}(?P<slash>/)\d{1,2}/\d{1,2})"
    r"(?P<time> \d{1,2}:\d{2}(?P<seconds>:\d{2})?)?"
)


class _DateForm(NamedTuple):
    """The form of a column's dates: which number comes first is None if each could be the day."""

    sign: str
    is_day_first: bool | None
    time: str

    def format(self, is_day_first: bool) -> str:
        if self.sign == "":
            return f"%Y/%m/%d{self.time}"
        parts = ("%d", "%m", "%Y") if is_day_first else ("%m", "%d", "%Y")
        return self.sign.join(parts) + self.time


class _Evidence(NamedTuple):
    """What one file shows: values of options, without those that its text leaves open, and forms of columns."""

    options: dict[str, Any]
    special_words: tuple[str, ...]
    text_columns: tuple[str, ...] = ()
    dates: tuple[tuple[str, _DateForm], ...] = ()
    comma_columns: tuple[str, ...] = ()
    """Columns of numbers whose comma may stand before a fraction, or between thousands."""
    doubts: tuple[str, ...] = ()
    """Doubts that no other file removes."""


@dataclass(frozen=True)
class TextGuess:
    """How files seem to be written.

    `text_columns` have digits that are no numbers, such as `007`. `special_words` are some words with characters
    outside ASCII, by which a person sees whether the encoding is right. `evidence` is what each file shows.
    """

    reading: TextReading = TextReading()
    text_columns: tuple[str, ...] = ()
    special_words: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    evidence: tuple[_Evidence, ...] = field(default=(), repr=False)


class _Table(NamedTuple):
    delimiter: str
    skip_lines: int
    header: list[str]
    rows: list[list[str]]

    def columns(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each column's name, as ingestion numbers it, with the cells that are not empty."""
        for at, name in enumerate(distinct_names(self.header)):
            yield name, [cell for row in self.rows if (cell := row[at].strip())]


def guess_text(start: bytes, *, is_csv: bool, is_whole: bool) -> TextGuess:
    """Guess from the first bytes of a file, decompressed; `is_whole` says that the file has no more."""
    return _guess_from((_evidence(start, is_csv=is_csv, is_whole=is_whole),))


def joint_guess(guesses: Sequence[TextGuess]) -> TextGuess:
    """Return one guess for the files of a dataset, the newest first, from what each of them shows.

    A file shows nothing of an option if it has no special character, fraction or date. Where two files contradict each
    other, the first one decides, and a doubt says so. If they contradict each other about days, no format is guessed.
    """
    return _guess_from(tuple(file for guess in guesses for file in guess.evidence))


def _guess_from(files: tuple[_Evidence, ...]) -> TextGuess:
    options: dict[str, Any] = {"distinct_names": any(each.options.get("distinct_names") for each in files)}
    doubts = []
    for option in ("encoding", "delimiter", "skip_lines", "decimal_point", "thousands"):
        value, *others = _shown(files, option) or [getattr(TextReading, option)]
        options[option] = value
        doubts += [
            f"text.{option} is {value!r} by the newest file that shows it, and {other!r} by another one: declare a "
            "dataset for each form"
            for other in others
        ]
    doubts += [doubt for each in files for doubt in each.doubts]
    formats, undecided = _formats([column for each in files for column in each.dates])
    doubts += undecided
    if options["thousands"] == options["decimal_point"]:  # a doubt says that files contradict each other
        options["thousands"] = ""
    if "," not in (options["decimal_point"], options["thousands"]):
        doubts += [
            f"{name}: does the comma of its numbers stand before a fraction, or between thousands? Set "
            "text.decimal_point or text.thousands to ','"
            for each in files
            for name in each.comma_columns
        ]
    reading = TextReading(
        **options,
        date_formats=tuple(each for each in formats if "%H" not in each),
        timestamp_formats=tuple(each for each in formats if "%H" in each),
    )
    special = (each.special_words for each in files if each.options.get("encoding") == reading.encoding)
    return TextGuess(
        reading,
        tuple(dict.fromkeys(name for each in files for name in each.text_columns)),
        next(filter(None, special), ()),
        tuple(dict.fromkeys(doubts)),
        files,
    )


def _shown(files: Sequence[_Evidence], option: str) -> list[Any]:
    """Return the values of an option that files show, each once. ASCII text shows no encoding, but it is no UTF-16."""
    found = [each.options.get(option) for each in files]
    if any(str(value).startswith("utf-16") for value in found):
        found = [value or "utf-8" for value in found]
    return list(dict.fromkeys(value for value in found if value is not None))


def _evidence(start: bytes, *, is_csv: bool, is_whole: bool) -> _Evidence:
    encoding = _encoding(start, is_whole=is_whole)
    text = start.decode(encoding, "ignore")
    options: dict[str, Any] = {} if encoding == "utf-8" and text.isascii() else {"encoding": encoding}
    text = text.removeprefix("\ufeff")
    words = () if encoding == "utf-8" else tuple(dict.fromkeys(re.findall(r"\w*[^\W\x00-\x7f]\w*", text)))[:3]
    table = _table(text, is_whole=is_whole) if is_csv else None
    if table is None:
        return _Evidence(options, words)
    columns = list(table.columns())
    numbers = number_form(columns)
    options |= {
        "delimiter": table.delimiter,
        "skip_lines": table.skip_lines,
        "distinct_names": [name for name, _ in columns] != table.header,
    }
    shown = {"decimal_point": numbers.point, "thousands": numbers.thousands}
    options |= {name: sign for name, sign in shown.items() if sign is not None}
    return _Evidence(
        options,
        words,
        tuple(name for name, cells in columns if _are_codes(cells)),
        tuple((name, form) for name, cells in columns if (form := _date_form(cells)) is not None),
        numbers.comma_columns,
        (*_doubts_of_header(columns), *numbers.doubts),
    )


def _encoding(start: bytes, *, is_whole: bool) -> str:
    """Return an encoding that decodes the bytes; a character may be cut at their end unless they are the whole file."""
    for bom, name in _BOMS:
        if start.startswith(bom):
            return name
    if b"\0" in start[1::2] and b"\0" not in start[::2]:
        return "utf-16-le"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start, final=is_whole)
    except UnicodeDecodeError:
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
    if at and (at + 1 == len(rows) or any(map(is_number, header))):
        return None
    return _Table(delimiter, skipped if at else 0, header, [cells for _, cells in rows[at + 1 :]])


def _doubts_of_header(columns: Iterable[tuple[str, list[str]]]) -> Iterator[str]:
    alike = [name for name, cells in columns if cells and is_number(name) and all(map(is_number, cells))]
    if alike:
        yield (
            f"Is {alike[0]} a column's name? If the files have no header, set text.header: false, and name the columns "
            "in write.columns"
        )


def _are_codes(cells: Sequence[str]) -> bool:
    """Whether all cells are digits, and some would change as numbers: they begin with a zero, or are too long."""
    return all(cell.isdecimal() for cell in cells) and any(
        (cell.startswith("0") and len(cell) > 1) or len(cell) > _LONGEST_WHOLE for cell in cells
    )


def _date_form(cells: Sequence[str]) -> _DateForm | None:
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
    fitting = [order for order in orders if _all_are(cells, _DateForm(sign, order, time).format(order))]
    if not fitting:
        return None
    return _DateForm(sign, fitting[0] if len(fitting) == 1 else None, time)


def _all_are(cells: Iterable[str], form: str) -> bool:
    try:
        for cell in cells:
            datetime.strptime(cell, form)  # noqa: DTZ007  # only whether it is one counts
    except ValueError:
        return False
    return True


def _formats(dates: Sequence[tuple[str, _DateForm]]) -> tuple[tuple[str, ...], list[str]]:
    """Return the formats of the columns, and doubts. A column decides about another one with the same sign."""
    orders = {
        sign: {each.is_day_first for _, each in dates if each.sign == sign} - {None}
        for sign in {each.sign for _, each in dates}
    }
    formats, doubts = dict[str, None](), []
    for name, each in dates:
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
