"""Of a long file of a store, only the bytes that tell its schema are copied where no row is wanted."""

from __future__ import annotations

import gzip
import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from lance_ops.errors import RawFileRefused, RawFileTooLarge
from lance_ops.maintenance.ingest import (
    IngestBatch,
    RawFile,
    RawLimits,
    RawReader,
    RawReading,
    TextReading,
    raw_copies,
    survey_ingest,
)
from lance_ops.maintenance.ingest.decoding import json_bytes, requests

MIB = 1024**2
LINE = "17,some text,1.5\n"
JSON_LINE = '{"n": 17, "s": "some text", "x": {"y": 1.5}}'


class CountingFileSystem:
    """A file system of one file that counts the bytes it sends."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.num_bytes = 0

    def open(self, _: str, __: str) -> io.BytesIO:
        self.num_bytes += len(self._content)
        return io.BytesIO(self._content)

    def cat_file(self, _: str, start: int, end: int) -> bytes:
        self.num_bytes += end - start
        return self._content[start:end]


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], CountingFileSystem]:
    def put(content: bytes) -> CountingFileSystem:
        found = CountingFileSystem(content)
        monkeypatch.setattr(raw_copies, "remote_file_system", lambda uri, _: (found, uri))
        return found

    return put


def columns(num_rows: int, note: str = "") -> pa.Table:
    numbers = random.Random(7).randbytes(8 * num_rows)
    values = pa.Array.from_buffers(pa.int64(), num_rows, [None, pa.py_buffer(numbers)])
    return pa.table({"n": values, "s": ["text"] * num_rows}).replace_schema_metadata({"note": note})


def parquet(table: pa.Table) -> bytes:
    with io.BytesIO() as file:
        pyarrow.parquet.write_table(table, file, row_group_size=40_000)
        return file.getvalue()


def feather(table: pa.Table) -> bytes:
    with io.BytesIO() as file:
        pyarrow.feather.write_feather(table, file)
        return file.getvalue()


def hexadecimal_lines() -> bytes:
    numbers = random.Random(7)
    return b"a,b\n" + b"".join(numbers.randbytes(1000).hex().encode() + b",1\n" for _ in range(10_000))


LONG: dict[str, tuple[Callable[[], bytes], TextReading, int]] = {
    "a.parquet": (lambda: parquet(columns(200_000)), TextReading(), MIB),
    "long-footer.parquet": (lambda: parquet(columns(400_000, "x" * 2 * MIB)), TextReading(), 6 * MIB),
    "a.arrow": (lambda: feather(columns(200_000)), TextReading(), MIB),
    "a.csv": (lambda: b"n,s,x\n" + LINE.encode() * 600_000, TextReading(), 8 * MIB),
    "utf-16.csv": (
        lambda: ("n,s,x\n" + LINE * 600_000).encode("utf-16"),
        TextReading(encoding="utf-16"),
        8 * MIB,
    ),
    "a.csv.gz": (lambda: gzip.compress(hexadecimal_lines(), 1), TextReading(), 8 * MIB),
    "a.json": (lambda: f"{JSON_LINE}\n".encode() * 200_000, TextReading(), 8 * MIB),
    "array.json": (lambda: b"[" + b",".join([JSON_LINE.encode()] * 200_000) + b"]", TextReading(), 8 * MIB),
}


@pytest.mark.parametrize("isolated", [False, True], ids=["here", "isolated"])
@pytest.mark.parametrize("name", LONG)
def test_a_schema_is_told_by_a_part_of_a_long_file(
    tmp_path: Path, stored: Callable[[bytes], CountingFileSystem], name: str, isolated: bool
) -> None:
    make, text, most_bytes = LONG[name]
    content = make()
    path = tmp_path / name
    path.write_bytes(content)
    store = stored(content)
    with RawReader({}, RawReading(text=text, isolated=isolated)) as reader:
        expected = reader.look(RawFile(str(path), len(content), "t"))
        assert reader.look(RawFile(f"s3://in/{name}", len(content), "t")) == expected
        assert store.num_bytes <= most_bytes < len(content)
        guess: Any = lambda *_: text  # noqa: E731
        assert reader.guessed_schema(RawFile(f"s3://in/{name}", len(content), "t"), guess) == expected[0]
        assert store.num_bytes <= 2 * most_bytes


@pytest.mark.parametrize("uri", ["s3://in/a.parquet", "https://host/long.parquet", "s3://in/cut.parquet"])
def test_a_short_file_and_one_without_ranges_or_a_footer_is_copied_whole(
    stored: Callable[[bytes], CountingFileSystem], uri: str
) -> None:
    content = parquet(columns(10 if uri.endswith("a.parquet") else 200_000))
    store = stored(content[:-1] if "cut" in uri else content)
    with RawReader({}, RawReading(isolated=False)) as reader:
        file = RawFile(uri, len(content) - ("cut" in uri), "t")
        if "cut" in uri:
            with pytest.raises(RawFileRefused, match=r"cut\.parquet"):
                reader.schema(file)
            assert store.num_bytes == file.size_bytes + MIB
        else:
            assert reader.schema(file).names == ["n", "s"]
            assert store.num_bytes == file.size_bytes


def test_a_file_whose_listed_size_is_beyond_the_limit_is_refused_unread(
    stored: Callable[[bytes], CountingFileSystem],
) -> None:
    store = stored(b"n\n1\n")
    limited = RawReading(RawLimits(file_bytes=MIB))
    with RawReader({}, limited) as reader, pytest.raises(RawFileTooLarge, match="file_bytes"):
        reader.schema(RawFile("s3://in/a.csv", 9 * MIB, "t"))
    assert store.num_bytes == 0


KIB = 1024
LONG_CELL = b"x" * 50 * KIB
LONG_ROWS = {
    "a.json": b'{"n": 1, "s": "%b"}\n{"n": 2}\n' % LONG_CELL,
    "array.json": b'[{"n": 1, "s": "%b"},\n{"n": 2}]\n' % LONG_CELL,
    "a.csv": b"n,s\n1,%b\n2,\n" % LONG_CELL,
    "title.csv": b"note\n\ns,n\n%b,1\n,2\n" % LONG_CELL,
    "quoted.csv": b's,n\n"%b",1\n"x",2\n' % ((b"x" * 100 + b"\n") * 500),
    "a.csv.gz": gzip.compress(b"n,s\n1,%b\n2,\n" % LONG_CELL, 0),
}


@pytest.mark.parametrize("name", LONG_ROWS)
def test_a_schema_is_told_by_a_first_row_that_is_longer_than_the_part(
    stored: Callable[[bytes], CountingFileSystem], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(raw_copies, "_START_BYTES", 32 * KIB)
    monkeypatch.setattr(requests, "CUT_BYTES", 8 * KIB)
    monkeypatch.setattr(json_bytes, "CUT_BYTES", 8 * KIB)
    content = LONG_ROWS[name]
    stored(content)
    text = TextReading(skip_lines=2 if "title" in name else 0)
    with RawReader({}, RawReading(isolated=False, text=text)) as reader:
        schema = reader.schema(RawFile(f"s3://in/{name}", len(content), "t"))
    assert dict(zip(schema.names, schema.types, strict=True)) == {"n": pa.int64(), "s": pa.string()}


@pytest.mark.parametrize("name", ["a.json", "a.csv"])
def test_a_first_row_longer_than_a_row_may_be_is_refused(
    stored: Callable[[bytes], CountingFileSystem], name: str
) -> None:
    content = b'{"s": "' + b"1" * 9 * MIB + b'"}\n'
    stored(content)
    reason = "its first 4,194,304 bytes have no line end; put each row on a line; raw.limits.row_bytes is 3,145,728"
    limited = RawReading(RawLimits(row_bytes=3 * MIB), isolated=False)
    with RawReader({}, limited) as reader, pytest.raises(RawFileTooLarge, match=reason):
        reader.schema(RawFile(f"s3://in/{name}", len(content), "t"))


def test_a_preview_of_an_ingestion_copies_no_long_file(
    tmp_path: Path, stored: Callable[[bytes], CountingFileSystem]
) -> None:
    content = parquet(columns(500_000))
    store = stored(content)
    batch = IngestBatch("a", (RawFile("s3://in/a.parquet", len(content), "t"),))
    survey = survey_ingest(str(tmp_path / "t.lance"), [batch])
    assert (survey.num_rows, dict(survey.refused)) == (500_000, {})
    assert store.num_bytes <= 2 * MIB < len(content)
