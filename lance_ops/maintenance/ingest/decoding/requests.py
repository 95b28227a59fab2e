"""What is asked of the decoder of raw files: a format, how text is read, limits; and how it refuses a file."""

from __future__ import annotations

import base64
import codecs
import errno
import io
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

__all__ = [
    "BLOCK_BYTES",
    "CUT_BYTES",
    "FREE_BYTES",
    "MACHINE",
    "START_BYTES",
    "DecodingRefused",
    "RawLimits",
    "RawRequest",
    "RawSource",
    "RowGroups",
    "StreamOver",
    "TextReading",
    "check_count",
    "check_schema",
    "lacks_resources",
]

BLOCK_BYTES = 1024**2
"""Arrow's own block size: at most this many bytes of CSV or JSON become a batch, unless a row is longer."""

START_BYTES = 256 * 1024
"""A guess of how text is written reads this many decompressed bytes."""

CUT_BYTES = 2 * BLOCK_BYTES
"""At most this many bytes of a text that is cut off are read, or more if its first rows are longer. Arrow infers a
schema from the first block, in which the text must not end."""

_ROW_BYTES = 64 * 1024**2
"""A row of CSV or JSON may have at most this many bytes, unless `RawLimits` says otherwise."""

_ENOUGH_LINES = 2
"""A text that is cut off keeps this many lines that are neither empty nor skipped: the first one of CSV has names."""

_MOST_LINES = 2**31 - 1
"""Arrow counts the lines that it skips in 32 bits."""

_MOST_SECONDS, _MOST_BYTES = 366 * 24 * 3600, 2**62
"""Bounds that the timeouts of sockets and the limits of a process accept."""

_LINE_FEED, _CARRIAGE_RETURN = b"\n\r"

FREE_BYTES = 256 * 1024**2
"""This many decoded bytes are allowed for a file of any size, also a small one."""

MACHINE = "machine"
"""Stands for a limit of the machine, such as that of open files. It says nothing about the file."""

_OF_MACHINE = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOBUFS))
"""ENOMEM is not among them: the process that decodes has a limit of its own, which a file may exceed."""


@dataclass(frozen=True)
class RawLimits:
    """What one raw file may hold and cost. A file beyond a limit is refused, with the limit's name.

    The decoded bytes are at most `expansion` times the file's size; 256 MiB are always allowed. Where several tasks
    read the row groups of a file, each task may decode this many bytes. Each may read `rows` rows of Arrow IPC, because
    the footer of such a file does not state how many it has. A row of CSV or JSON has at most `row_bytes`.
    `memory_bytes` is what decoding may take at once, and `seconds` how long it may take until the next batch, both in a
    process of its own.
    """

    file_bytes: int = 16 * 1024**3
    rows: int = 1_000_000_000
    columns: int = 10_000
    depth: int = 60
    expansion: int = 1000
    row_bytes: int = _ROW_BYTES
    memory_bytes: int = 2 * 1024**3
    seconds: float = 300

    def flaw(self) -> str | None:
        """Return what is wrong with the limits, or None."""
        most = {"seconds": _MOST_SECONDS, "memory_bytes": _MOST_BYTES}
        for name, number in vars(self).items():
            if not 0 < number <= most.get(name, number):
                bound = f" and at most {most[name]:,}" if name in most else ""
                return f"{name} must be more than 0{bound}, not {number:,}"
        return None

    def decoded_bytes(self, size_bytes: int) -> int:
        """Return how many decoded bytes a file of this size may have."""
        return max(FREE_BYTES, self.expansion * size_bytes)


@dataclass(frozen=True)
class TextReading:
    """How CSV and JSON are read.

    `delimiter`, `quote`, `escape` (empty: none), `decimal_point`, `thousands` (empty: none), `skip_lines`, `header` and
    `distinct_names` are those of CSV. `skip_lines` is the number of lines to skip before the header, `decimal_point`
    the character between whole part and fraction of numbers, and `thousands` the one between groups of three digits. A
    file without a header has the table's columns, in their order.
    With `distinct_names`, a name that occurs again in the header becomes `name_2`, and the fourth column, if it has no
    name, `column_4`. Cells that are one of `null_values` are null; by default a cell of a text column is never null,
    and of another column if it is empty or one of Arrow's own words (`NULL`, `NA`, `NaN`, …). `empty_as_null`
    makes an empty cell of a text column null, too. Dates and timestamps are ISO 8601, or match one of the formats of
    C's `strptime`; a day that does not exist matches none, and a year of `%Y` has four digits. A timestamp that matches
    a format without an offset (`%z`) is a time in the column's zone. If it comes twice there, it is the earlier
    moment; if a change of the clock skips it, it is read with the offset before the change. Where the types of CSV are
    inferred, a text column becomes a date, a timestamp or a number if all its cells in the first MiB match a format, or
    are numbers with `thousands`; a later cell that does not match is refused.
    """

    delimiter: str = ","
    quote: str = '"'
    escape: str = ""
    header: bool = True
    encoding: str = "utf-8"
    null_values: tuple[str, ...] | None = None
    empty_as_null: bool = False
    date_formats: tuple[str, ...] = ()
    timestamp_formats: tuple[str, ...] = ()
    decimal_point: str = "."
    thousands: str = ""
    skip_lines: int = 0
    distinct_names: bool = False

    def flaw(self) -> str | None:
        """Return what is wrong with the options, or None."""
        for name, required in (("delimiter", True), ("quote", False), ("escape", False), ("decimal_point", True)):
            text = getattr(self, name)
            if len(text.encode()) > 1 or (required and not text):
                return f"{name} must be one ASCII character, not {text!r}"
        if len(self.thousands) > 1 or self.thousands.isalnum() or self.thousands in ("+", "-"):
            return f"thousands must be one character that is no part of a number, not {self.thousands!r}"
        if self.thousands == self.decimal_point:
            return f"{self.thousands!r} cannot be both thousands and decimal_point"
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            return f"no encoding {self.encoding!r} is known"
        if not 0 <= self.skip_lines <= _MOST_LINES:
            return f"skip_lines must be from 0 to {_MOST_LINES:,}, not {self.skip_lines:,}"
        return None


class DecodingRefused(Exception):
    """Why a file is not read; `limit` names the limit of `RawLimits` that it exceeds, if it does, or is `MACHINE`."""

    def __init__(self, reason: str, limit: str | None = None) -> None:
        self.reason = reason
        self.limit = limit
        super().__init__(reason)


class RowGroups(NamedTuple):
    """The row groups of a Parquet file from `start` to before `stop`, of `total`. ORC has stripes, and IPC batches."""

    start: int
    stop: int
    total: int


@dataclass(frozen=True)
class RawRequest:
    """What to read of a file. `kind` is its format (parquet, ipc, orc, csv or json), or a question about it.

    `parquet_groups`, `ipc_groups` and `orc_groups` ask how the bytes are shared among about `num_ranges` ranges of
    adjacent row groups, and `parquet_range` where the bytes of `groups` are. If `groups` is None, all rows are read.
    `csv_rows` and `json_rows` ask whether the first rows of a text end in a copy of its start: for 1 or 0.

    `lead` has the types of the columns that are wanted, under the file's names. Other columns of the file are refused,
    or left out if `ignore_others`. Without `lead` the types are inferred. `names` are those of a CSV without a header.
    With `any_case`, a column of `lead` is also one that JSON spells in another case, if it spells it in one way.
    If `is_cut`, only the first `CUT_BYTES` of a text are read, and only its schema may be asked for; the file may be
    cut off anywhere beyond them.
    """

    kind: str
    compression: str | None = None
    text: TextReading = field(default_factory=TextReading)
    lead: pa.Schema | None = None
    ignore_others: bool = False
    any_case: bool = False
    names: tuple[str, ...] | None = None
    is_cut: bool = False
    groups: RowGroups | None = None
    num_ranges: int = 1

    def to_json(self) -> dict[str, Any]:
        """Return the request as JSON values."""
        lead = None if self.lead is None else base64.b64encode(self.lead.serialize()).decode()
        return {
            "kind": self.kind,
            "compression": self.compression,
            "text": asdict(self.text),
            "lead": lead,
            "ignore_others": self.ignore_others,
            "any_case": self.any_case,
            "names": self.names,
            "is_cut": self.is_cut,
            "groups": self.groups,
            "num_ranges": self.num_ranges,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> RawRequest:
        """Return the request that `to_json` wrote."""
        lead = values["lead"]
        text: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values["text"].items()
        }
        return cls(
            values["kind"],
            values["compression"],
            TextReading(**text),
            None if lead is None else pa.ipc.read_schema(pa.py_buffer(base64.b64decode(lead))),
            values["ignore_others"],
            values["any_case"],
            None if values["names"] is None else tuple(values["names"]),
            values["is_cut"],
            None if values["groups"] is None else RowGroups(*values["groups"]),
            values["num_ranges"],
        )


class StreamOver(io.RawIOBase):
    """A stream that reads from another stream, and closes it. A subclass says in `read` what it makes of the bytes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()
        super().close()


@dataclass(frozen=True)
class RawSource:
    """An open file's path, and how its bytes become UTF-8; of a long one that `is_cut`, only the first lines count.

    A line end within the `quote` of CSV ends no row. The first `skip_lines` have none.
    """

    path: str
    compression: str | None
    encoding: str
    allowed_bytes: int
    is_cut: bool = False
    row_bytes: int = _ROW_BYTES
    quote: str = ""
    skip_lines: int = 0

    def open(self) -> Any:
        """Return a stream of the decompressed bytes; text in another encoding becomes UTF-8."""
        if not self.is_cut:
            return self._whole()
        start, lines = bytearray(), _Lines(self.quote)
        for block in self._first_blocks(lines):
            if not block:
                return pa.BufferReader(bytes(start))
            start += block
        # Arrow may see the end of a text whose rows are long, and takes a row that is cut there for a whole one. But a
        # single quote within a cell makes it seem that no line after it ends.
        end = lines.end if lines.end >= BLOCK_BYTES else max(start.rfind(b"\n"), start.rfind(b"\r")) + 1
        if not end:
            raise DecodingRefused(
                f"its first {len(start):,} bytes have no line end; put each row on a line", "row_bytes"
            )
        return pa.BufferReader(bytes(start[:end]))

    def has_first_rows(self) -> bool:
        """Return whether the first rows end in the file, or exceed the limit: it may be a copy of another one's start.

        The end of a compressed copy cannot be read.
        """
        with suppress(OSError):
            return all(self._first_blocks(_Lines(self.quote)))
        return False

    def _first_blocks(self, lines: _Lines) -> Iterator[bytes]:
        """Yield the text up to enough lines, which `lines` counts, or up to the limit; an empty block if it ends."""
        num_bytes = 0
        with self._whole() as stream:
            while num_bytes < CUT_BYTES or (
                lines.num_lines < self.skip_lines + _ENOUGH_LINES and num_bytes < self.row_bytes
            ):
                block: bytes = stream.read(CUT_BYTES)
                yield block
                if not block:
                    return
                lines.feed(block)
                num_bytes += len(block)

    def _whole(self) -> Any:
        stream = pa.OSFile(self.path)
        if self.compression is not None:
            stream = pa.CompressedInputStream(stream, self.compression)
        if codecs.lookup(self.encoding).name != "utf-8":
            stream = pa.transcoding_input_stream(stream, self.encoding, "utf8")
        return stream


class _Lines:
    """Counts the lines of a text that are not empty and do not end within quotes, a block of the text at a time.

    `end` is the number of bytes up to and with the end of the last of these lines.
    """

    def __init__(self, quote: str) -> None:
        self.num_lines = self.end = 0
        self._quote = quote.encode()
        self._num_bytes = self._num_quotes = 0
        self._was_end = True

    def feed(self, block: bytes) -> None:
        """Count the lines that end in the next block."""
        codes = np.frombuffer(block, np.uint8)
        is_end = (codes == _LINE_FEED) | (codes == _CARRIAGE_RETURN)
        if self._quote:
            num_quotes = self._num_quotes + np.cumsum(codes == self._quote[0])
            self._num_quotes = int(num_quotes[-1])
            is_end &= num_quotes % 2 == 0
        is_behind_end = np.append(self._was_end, is_end[:-1])
        self.num_lines += int(np.count_nonzero(is_end & ~is_behind_end))
        places = np.flatnonzero(is_end)
        self.end = self._num_bytes + int(places[-1]) + 1 if len(places) else self.end
        self._was_end = bool(is_end[-1])
        self._num_bytes += len(block)


def check_count(count: int, limit: str, allowed: int) -> None:
    """Refuse a file that has more of something than its limit allows."""
    if count > allowed:
        raise DecodingRefused(f"it has {count:,} {limit}", limit)


def check_schema(schema: pa.Schema, limits: RawLimits) -> None:
    """Count fields at all levels, without recursion; refuse two columns of one name."""
    names = schema.names
    if len(set(names)) < len(names):
        raise DecodingRefused("two of its columns have the same name")
    pending = [(field.type, 1) for field in schema]
    num_fields = 0
    while pending:
        kind, depth = pending.pop()
        num_fields += 1
        check_count(num_fields, "columns", limits.columns)
        if depth > limits.depth:
            raise DecodingRefused(f"its fields are nested more than {limits.depth} deep", "depth")
        pending += [(kind.field(index).type, depth + 1) for index in range(kind.num_fields)]


def lacks_resources(error: BaseException) -> bool:
    """Return whether a call of the system failed because this machine has no space, buffer or open file left."""
    return isinstance(error, OSError) and error.errno in _OF_MACHINE
