"""Small files that cost much are refused by the limit that each exceeds."""

from __future__ import annotations

import collections
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.errors import RawFileTooLarge
from lance_ops.maintenance.ingest import RawLimits, RawReader, RawReading
from tests.maintenance.ingest.decoding.raw_file_tables import (
    MANY,
    TABLE,
    deep_json,
    raw,
    read,
    write,
    write_ipc,
    write_parquet,
)
from tests.maintenance.ingest.decoding.text_files import BOTH


def nested(depth: int) -> pa.Table:
    kind = pa.int32()
    for _ in range(depth - 1):
        kind = pa.struct([("a", kind)])
    return pa.table({"a": pa.nulls(1, kind)})


def bombs(folder: Path) -> dict[str, tuple[Path, RawLimits]]:
    """Small files with the limit that each exceeds, by the limit's name."""
    wide = b",".join(b"c%d" % column for column in range(100_000))
    text = "x" * 100_000
    shared = pa.DictionaryArray.from_arrays(pa.array(np.zeros(MANY, np.int8)), pa.array([text]))
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([MANY], pa.int32()), pa.array([text]))
    short_but_one = pa.array([*([["y"]] * 1000), [text] * 10])
    to_long_one = pa.array(np.full(100_000, 1000, np.int16))
    listed = pa.DictionaryArray.from_arrays(to_long_one, short_but_one)
    many_views = pa.array([*["y"] * 1000, text], pa.string_view())
    viewed = pa.RunEndEncodedArray.from_arrays(pa.array([*range(1, 1001), 100_000], pa.int32()), many_views)
    view = np.array([len(text), int.from_bytes(b"xxxx", "little"), 0, 0], np.int32)  # the last two: buffer and offset
    all_views = pa.py_buffer(np.tile(view, 100_000))
    views = pa.Array.from_buffers(pa.string_view(), 100_000, [None, all_views, pa.py_buffer(text.encode())])
    return {
        "columns of CSV": (write(folder / "1.csv", wide + b"\n" + wide), RawLimits()),
        "columns of CSV behind a quoted line": (write(folder / "2.csv", b'"\n",' + wide + b"\n"), RawLimits()),
        "columns of JSON": (
            write(folder / "3.json", b"".join(b'{"k%d": 1}\n' % row for row in range(20_000))),
            RawLimits(),
        ),
        "columns of JSON that rows lack": (
            write(folder / "4.json", b"".join(b'{"k%d": 1}\n' % (row % 5000) for row in range(50_000))),
            RawLimits(),
        ),
        "columns of JSON that rows lack, and a long row": (
            write(
                folder / "23.json",
                b"{%b}\n" % b",".join(b'"c%d":0' % number for number in range(45))
                + b"{}\n" * 700_000
                + b'{"c0":"%b"}\n' % (b"x" * 3 * 1024**2),
            ),
            RawLimits(),
        ),
        "columns of Parquet": (write_parquet(folder / "5.parquet", TABLE), RawLimits(columns=5)),
        "columns of Arrow": (write_ipc(folder / "6.arrow", TABLE), RawLimits(columns=5)),
        "depth of JSON": (write(folder / "7.json", deep_json(20_000)), RawLimits()),
        "depth of JSON in lists": (write(folder / "8.json", b'{"a":' + b"[" * 61 + b"]" * 61 + b"}"), RawLimits()),
        "depth of JSON behind blocks": (
            write(folder / "9.json", b'{"a": "\\"}[{"}\n' * 100_000 + deep_json(61)),
            RawLimits(),
        ),
        "depth of Parquet": (write_parquet(folder / "10.parquet", nested(20)), RawLimits(depth=19)),
        "rows of Parquet": (
            write_parquet(folder / "11.parquet", pa.table({"a": pa.nulls(MANY, pa.int64())})),
            RawLimits(rows=MANY - 1),
        ),
        "rows of Arrow": (write_ipc(folder / "12.arrow", pa.table({"a": pa.nulls(MANY)})), RawLimits(rows=MANY - 1)),
        "rows of CSV": (write(folder / "13.csv", b"a\n" + b"1\n" * 1000), RawLimits(rows=999)),
        "expansion of a dictionary": (write_parquet(folder / "14.parquet", pa.table({"a": shared})), RawLimits()),
        "expansion of runs": (write_ipc(folder / "15.arrow", pa.table({"a": runs})), RawLimits()),
        "expansion of views": (write_ipc(folder / "16.arrow", pa.table({"a": views})), RawLimits()),
        "expansion of pages": (
            write_parquet(folder / "17.parquet", pa.table({"a": np.zeros(50 * 1024**2)})),
            RawLimits(expansion=1),
        ),
        "row_bytes of JSON": (write(folder / "19.json", b'{"a": "%b"}\n' % (b"x" * 99)), RawLimits(row_bytes=99)),
        "row_bytes of CSV": (write(folder / "20.csv", b"a\n%b\n" % (b"x" * 999)), RawLimits(row_bytes=99)),
        "expansion of a dictionary of lists": (write_ipc(folder / "21.arrow", pa.table({"a": listed})), RawLimits()),
        "expansion of runs of views": (write_ipc(folder / "22.arrow", pa.table({"a": viewed})), RawLimits()),
        "file_bytes of any file": (write(folder / "18.csv", b"a\n1\n"), RawLimits(file_bytes=3)),
    }


@BOTH
def test_a_bomb_is_refused_with_its_limit_and_the_next_file_is_read(tmp_path: Path, isolated: bool) -> None:
    good = write(tmp_path / "good.csv", b"a\n1\n")
    all_bombs = bombs(tmp_path)
    named = {name.split()[0] for name in all_bombs}
    assert named | {"memory_bytes", "seconds"} == set(RawLimits.__dataclass_fields__), "every limit has a bomb"
    for name, (path, limits) in all_bombs.items():
        with RawReader({}, RawReading(limits, isolated)) as reader, pytest.raises(RawFileTooLarge) as caught:
            collections.deque(reader.batches(raw(path)), maxlen=0)
        assert caught.value.limit == name.split()[0], name
        assert str(caught.value).startswith(f"raw file {path}: ")
        assert f"raw.limits.{caught.value.limit} is " in str(caught.value)
    assert read(good, isolated).num_rows == 1
