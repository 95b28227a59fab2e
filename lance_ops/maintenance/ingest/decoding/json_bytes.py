"""Read JSON's bytes before Arrow parses them: items of an array as rows, depth, values that are not rows, and keys.

Arrow reads JSON lines. A file whose rows are the items of one array is turned into lines while it is read, so a row's
line is its place in the array.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lance_ops.maintenance.ingest.decoding.requests import (
    BLOCK_BYTES,
    CUT_BYTES,
    DecodingRefused,
    RawLimits,
    RawSource,
    StreamOver,
    check_count,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["JsonSource", "broken_line", "check_json", "first_fault", "parsed_lines"]

_MAX_BLOCK_CELLS = 16 * 1024**2  # Arrow makes a cell for each column that a row of its block lacks
_SHOWN = 100
_JSON_KEY = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")\s*+:', re.DOTALL)
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1
_BETWEEN_ROWS = np.isin(np.arange(256), list(b"} \t\r\n\xef\xbb\xbf"))
"""The bytes that may stand where no object is open, with the end of one and those of a byte order mark."""
_LONGEST_KEY = 4096
"""A key that the end of a block cuts is seen if it has at most this many bytes."""

_NUM_SHAPES = 2**16
_PLAIN_NAME = re.compile(r"[ !#-.0-\[\]-~]+")
"""A name that JSON writes as it is, unless it escapes letters."""

_KELVIN = "\u212a".encode()  # its lower case is k, and no other letter outside of ASCII has one in ASCII
_ESCAPED_LETTER = re.compile(rb"\\u(?:00[2-7]|212[aA])")

_ANYTHING = re.compile(rb"\S")
_LINE_OF_ARRAY = bytes.maketrans(b"\n\r", b"  ")
_SPACES = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"
_START_BYTES = 4096
"""A file is one array if its first character that is no space is a bracket, and among these bytes."""


class JsonSource(RawSource):
    """An open file's path; its rows are lines, also if they are the items of an array in the file."""

    def _whole(self) -> Any:
        with super()._whole() as stream:
            start = stream.read(_START_BYTES)
        is_array = start.removeprefix(_BOM).lstrip(_SPACES).startswith(b"[")
        return _ArrayLines(super()._whole(), is_cut=self.is_cut) if is_array else super()._whole()


class _Marks:
    """Finds some characters of JSON outside of its texts, and how deep each is nested, a block of the file at a time.

    A character is outside of texts if an even number of quotes stands before it, without those that are escaped.
    """

    def __init__(self, characters: bytes) -> None:
        self.depth = 0
        self._is_mark = np.isin(np.arange(256), list(characters))
        self._num_quotes = 0
        self._is_escaped = False

    def feed(self, block: bytes) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]:
        """Return the places of the marks in the next block, their codes, and the depth after each one."""
        is_escaped = self._is_escaped and block.startswith((b'"', b"\\"))
        bare = b" " + block[1:] if is_escaped else block
        # Of a run of backslashes the pairs go first, so a quote after one that is left belongs to the text.
        bare = bare.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")
        self._is_escaped = bare.endswith(b"\\")
        codes = np.frombuffer(bare, np.uint8)
        quotes = np.flatnonzero(codes == ord('"'))
        places = np.flatnonzero(self._is_mark[codes])
        places = places[(np.searchsorted(quotes, places) + self._num_quotes) % 2 == 0]
        depths = self.depth + np.cumsum(_STEPS[codes[places]], dtype=np.int64)
        self.depth = int(depths[-1]) if len(depths) else self.depth
        self._num_quotes += len(quotes)
        return places, codes[places], depths


class _ArrayLines(StreamOver):
    """The items of an array as lines: its brackets become spaces, its commas line feeds, and other line ends spaces.

    An array that `is_cut` may lack its end after the first `CUT_BYTES`.
    """

    def __init__(self, stream: Any, *, is_cut: bool) -> None:
        super().__init__(stream)
        self._is_cut = is_cut
        self._num_bytes = 0
        self._marks = _Marks(b"[]{},")

    def read(self, size: int = -1) -> bytes:
        block = self._stream.read(None if size < 0 else size)
        if not block:
            if self._marks.depth and not (self._is_cut and self._num_bytes >= CUT_BYTES):
                raise DecodingRefused("its array has no end: the file is cut off, or a bracket is missing")
            return b""
        self._num_bytes += len(block)
        places, codes, depths = self._marks.feed(block)
        lines = bytearray(block.translate(_LINE_OF_ARRAY))
        outer = np.frombuffer(lines, np.uint8)
        outer[places[(codes == ord("[")) & (depths == 1)]] = ord(" ")
        outer[places[(codes == ord("]")) & (depths == 0)]] = ord(" ")
        outer[places[(codes == ord(",")) & (depths == 1)]] = ord("\n")
        return bytes(lines)


def _text_of(key: bytes) -> str:
    try:
        return str(json.loads(key)) if b"\\" in key else key[1:-1].decode()
    except ValueError:
        return ""


def first_fault(source: RawSource, fault: Callable[[object], str]) -> str:
    """Return the first fault of a row, after its line; an empty text if no row has one."""
    for number, value in parsed_lines(source):
        if found := fault(value):
            return f"line {number}: {found}"
    return ""


def parsed_lines(source: RawSource, marks: re.Pattern[bytes] = _ANYTHING) -> Iterator[tuple[int, Any]]:
    """Yield the number and value of each line that has a mark, as far as each line is one value of JSON."""
    for number, line in enumerate(_lines(source), 1):
        if marks.search(line):
            with suppress(ValueError, RecursionError):  # not JSON, or too deep for Python's parser
                yield number, json.loads(line)


def _lines(source: RawSource) -> Iterator[bytes]:
    with source.open() as stream:
        rest: list[bytes] = []  # of a line that is longer than a block
        while block := stream.read(BLOCK_BYTES):
            first, *others = block.split(b"\n")
            rest.append(first)
            if others:
                yield b"".join(rest)
                yield from others[:-1]
                rest = others[-1:]
        yield b"".join(rest)


def broken_line(source: RawSource) -> str:
    """Return the first line that is not JSON, with what is wrong; an empty text if there is none."""
    lines = enumerate(_lines(source), 1)
    for number, line in lines:
        try:
            _check_values(line.decode("utf-8-sig"))
        except UnicodeDecodeError:
            return f"line {number}: it is not UTF-8: set the file's encoding, such as cp1252"
        except ValueError as error:
            fault = f"{error.msg}, character {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
            is_last = not any(each.strip() for _, each in lines)
            hint = "; the file may be cut off" if is_last else ""
            return f"line {number}: it is not JSON ({fault}){hint}"
        except RecursionError:  # too deep for Python's parser
            continue
    return ""


def _check_values(line: str) -> None:
    """Raise `ValueError` unless a line is values of JSON."""
    line = line.rstrip()
    at = _next_value(line, 0)
    while at < len(line):
        _, at = _STRICT_JSON.raw_decode(line, at)
        at = _next_value(line, at)


def _next_value(line: str, at: int) -> int:
    return len(line) - len(line[at:].lstrip())


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> None:
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise ValueError(f"the field {json.dumps(name)} is there {count} times")


_STRICT_JSON = json.JSONDecoder(object_pairs_hook=_refuse_repeated)


def _no_row_message(value: object) -> str:
    return (
        "" if isinstance(value, dict) else f"{json.dumps(value)[:_SHOWN]} is not a row: each row is an object of fields"
    )


class _KeySearch:
    """Finds keys that are one of some names in any case, a block of the file at a time.

    A block is searched for keys only if it may have one: what stands between two of its quotes must have the length,
    the first and the last letter of a name. A block is always searched if a name has letters that JSON may escape, or
    if the block has an escaped letter or a Kelvin sign, whose lower case is `k`.
    """

    def __init__(self, names: Collection[str]) -> None:
        self.keys: dict[bytes, str] = {}
        self._names = {name.lower() for name in names}
        self._is_plain = all(map(_PLAIN_NAME.fullmatch, self._names))
        self._is_sought = np.zeros(_NUM_SHAPES, np.bool_)
        for name in self._names:
            self._is_sought[_shapes_of_texts(json.dumps(name).encode())] = True
        self._end = b""

    def feed(self, block: bytes) -> None:
        """Look for keys in the next block, and in those that it ends."""
        if not self._names:
            return
        text = self._end + block
        if self._may_have_key(text):
            found = ((key, _text_of(key)) for key in set(_JSON_KEY.findall(text)) - self.keys.keys())
            self.keys.update((key, name) for key, name in found if name.lower() in self._names)
        self._end = block[-_LONGEST_KEY:]

    def _may_have_key(self, text: bytes) -> bool:
        if not self._is_plain or _KELVIN in text or (b"\\" in text and _ESCAPED_LETTER.search(text)):
            return True
        return bool(self._is_sought[_shapes_of_texts(text)].any())


def _shapes_of_texts(text: bytes) -> NDArray[np.int64]:
    """Return a number for what is between each two quotes, from its length and the letters at its ends in any case."""
    codes = np.frombuffer(text.lower(), np.uint8)
    quotes = np.flatnonzero(codes == ord('"'))
    ends = codes[quotes[:-1] + 1].astype(np.int64) << 8 | codes[quotes[1:] - 1]
    return (ends ^ np.diff(quotes)) & (_NUM_SHAPES - 1)


class CheckedJson(NamedTuple):
    """The keys that are one of some names in any case, and how long a block must be to hold each row."""

    keys: dict[bytes, str]
    block_bytes: int


def check_json(
    source: RawSource,
    limits: RawLimits,
    names: Sequence[str] = (),
    *,
    in_all_rows: bool = True,
    block_bytes: int = BLOCK_BYTES,
) -> CheckedJson:
    """Refuse a file beyond a limit or with values that are not rows; return its keys that are `names` in any case.

    Arrow's parser does not survive deep values, because it recurses, and nulls in place of rows. If the keys are not
    sought `in_all_rows`, `_names_to_seek` leaves names out of the search.
    """
    with source.open() as file:  # a schema follows from the first block alone
        first_keys = set(_JSON_KEY.findall(file.read(block_bytes)))
    check_count(len(first_keys), "columns", limits.columns)
    search = _KeySearch(set(map(str.lower, names)) if in_all_rows else _names_to_seek(names, first_keys))
    marks, lines, cells = _Marks(b"[]{}"), _LinesAcrossBlocks(), _BlockCells(block_bytes, len(first_keys))
    size_bytes = 0
    with source.open() as file:
        while block := file.read(BLOCK_BYTES):
            size_bytes += len(block)
            if size_bytes > source.allowed_bytes:
                raise DecodingRefused(f"it has more than {source.allowed_bytes:,} bytes decompressed", "expansion")
            depth_before = marks.depth
            places, _, depths = marks.feed(block)
            if depths.max(initial=0) > limits.depth:
                raise DecodingRefused(f"its values are nested more than {limits.depth} deep", "depth")
            if not _holds_only_rows(block, places, depth_before, depths):
                raise DecodingRefused(
                    first_fault(source, _no_row_message) or "it has text between its rows, which are objects"
                )
            cells.feed(len(block), num_rows=int(np.count_nonzero(depths == 0)))
            search.feed(block)
            lines.feed(block)
            if lines.longest_bytes > limits.row_bytes:
                raise DecodingRefused(f"it has a row of more than {limits.row_bytes:,} bytes", "row_bytes")
    if lines.longest_bytes > block_bytes:  # then the first block has more keys
        return check_json(source, limits, names, in_all_rows=in_all_rows, block_bytes=lines.longest_bytes)
    return CheckedJson(search.keys, block_bytes)


def _names_to_seek(names: Sequence[str], first_keys: Collection[bytes]) -> set[str]:
    """Return the names in lower case, without those that are found already.

    That is a name that the first block has in this spelling alone, if no other of the names differs from it only in
    case.
    """
    num_fields = Counter(name.lower() for name in names)
    spelled = {_text_of(key) for key in first_keys}
    others = {name.lower() for name in spelled.difference(names)}
    return set(num_fields) - ({name for each in spelled if num_fields[name := each.lower()] == 1} - others)


def _holds_only_rows(block: bytes, places: NDArray[np.int64], depth_before: int, depths: NDArray[np.int64]) -> bool:
    """Return whether nothing but `_BETWEEN_ROWS` stands outside a block's rows.

    `depths` are those after the brackets at `places`.
    """
    lengths = np.diff(places, prepend=0, append=len(block))
    is_outside = np.repeat(np.append(depth_before, depths) <= 0, lengths)  # a surplus } makes it negative
    return bool(_BETWEEN_ROWS[np.frombuffer(block, np.uint8)[is_outside]].all())


class _BlockCells:
    """Refuses a file if Arrow would make too many cells of one of its blocks."""

    def __init__(self, block_bytes: int, num_columns: int) -> None:
        self._block_bytes = block_bytes
        self._num_columns = num_columns
        self._num_rows = 0
        self._num_bytes = 0

    def feed(self, num_bytes: int, num_rows: int) -> None:
        """Count the next part of the file with those before it, until they are as long as a block of Arrow's."""
        if self._num_bytes >= self._block_bytes:
            self._num_rows = self._num_bytes = 0
        self._num_rows += num_rows
        self._num_bytes += num_bytes
        if self._num_rows * self._num_columns > _MAX_BLOCK_CELLS:
            raise DecodingRefused(
                f"{self._num_rows:,} of its rows in {self._num_bytes:,} bytes share {self._num_columns:,} columns",
                "columns",
            )


class _LinesAcrossBlocks:
    """Measures the longest line that reaches over the end of a block; a line within a block is shorter than that."""

    def __init__(self) -> None:
        self.longest_bytes = 0
        self._open_bytes = 0

    def feed(self, block: bytes) -> None:
        """Measure the line that was open before this block, as far as the block has it."""
        end = block.find(b"\n")
        self._open_bytes += len(block) if end < 0 else end
        self.longest_bytes = max(self.longest_bytes, self._open_bytes)
        if end >= 0:
            self._open_bytes = len(block) - block.rfind(b"\n") - 1
