"""Rows of CSV and JSON that are longer than the blocks that Arrow reads."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lance_ops.errors import RawFileRefused, RawFileTooLarge
from lance_ops.maintenance.ingest import RawFile, RawLimits, RawReader, RawReading
from lance_ops.maintenance.ingest.decoding import requests
from lance_ops.maintenance.ingest.decoding.requests import BLOCK_BYTES, RawSource

LONG = "x" * (3 * BLOCK_BYTES)
SHORT_ROWS = 100_000
"""They fill a block."""


def read(path: Path, content: str, limits: RawLimits | None = None) -> pa.Table:
    path.write_text(content)
    file = RawFile(str(path), len(content), "t")
    with RawReader({}, RawReading(limits or RawLimits(), isolated=False)) as reader:
        return pa.Table.from_batches(list(reader.batches(file)), reader.schema(file))


@pytest.mark.parametrize(
    ("name", "head", "row"),
    [("a.csv", "id,text\n", "{},{}\n"), ("a.json", "", '{{"id": {}, "text": "{}"}}\n')],
    ids=["csv", "json"],
)
@pytest.mark.parametrize("num_short", [0, SHORT_ROWS], ids=["first", "late"])
def test_a_row_that_is_longer_than_a_block_is_read(
    tmp_path: Path, name: str, head: str, row: str, num_short: int
) -> None:
    content = head + row.format(7, "short text") * num_short + row.format(8, LONG) + row.format(9, "")
    found = read(tmp_path / name, content)
    assert found["id"].to_pylist() == [*[7] * num_short, 8, 9]
    assert found["text"][num_short].as_py() == LONG and found["text"][num_short + 1].as_py() == ""


def test_a_long_row_of_an_array_and_one_without_a_line_end_are_read(tmp_path: Path) -> None:
    assert read(tmp_path / "a.json", f'[{{"text": "{LONG}"}}, {{"text": ""}}]')["text"].to_pylist() == [LONG, ""]
    assert read(tmp_path / "b.json", f'{{"text": "{LONG}"}}')["text"].to_pylist() == [LONG]


CUT = {
    "within quotes": ('n,s\n1,"a\nbbbbbbbbbbbbbbbb\n"\n2,"c\ndddddddddd', 'n,s\n1,"a\nbbbbbbbbbbbbbbbb\n"\n'),
    "empty lines first": ("\r\n\r\n\r\n\r\nn,s\r\n1,aaaaaaaaaa\r\n2,b", "\r\n\r\n\r\n\r\nn,s\r\n1,aaaaaaaaaa\r\n"),
    "behind a single quote": ('n,s\n1,a"b\n2,ccccc\n3,d', 'n,s\n1,a"b\n2,ccccc\n'),
}


@pytest.mark.parametrize(("content", "start"), CUT.values(), ids=CUT)
def test_the_start_of_a_long_text_ends_with_its_first_rows_or_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, start: str
) -> None:
    monkeypatch.setattr(requests, "CUT_BYTES", 8)
    monkeypatch.setattr(requests, "BLOCK_BYTES", 8)
    (tmp_path / "a.csv").write_bytes((content + "x" * 99).encode())
    source = RawSource(str(tmp_path / "a.csv"), None, "utf-8", 1000, is_cut=True, row_bytes=30, quote='"')
    assert source.open().read().decode() == start


@pytest.mark.parametrize("name", ["a.csv", "a.json"])
def test_a_row_beyond_the_limit_is_refused_by_the_limits_name(tmp_path: Path, name: str) -> None:
    content = f"text\n{LONG}\n" if name == "a.csv" else f'{{"text": "{LONG}"}}\n'
    with pytest.raises(RawFileTooLarge, match=r"a row of more than 1,100,000 bytes; raw\.limits\.row_bytes is 1,1"):
        read(tmp_path / name, content, RawLimits(row_bytes=1_100_000))


def test_a_row_that_is_too_long_may_have_a_quote_that_is_not_closed(tmp_path: Path) -> None:
    content = 'id,text\n1,a\n2,"b\n' + "3,c\n" * 1000
    with pytest.raises(RawFileTooLarge, match="line 3: a cell has more than 1,000 bytes, or its quote is not closed"):
        read(tmp_path / "a.csv", content, RawLimits(row_bytes=1000))


def test_a_header_that_is_longer_than_a_block_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RawFileRefused, match="its first 1,048,576 bytes have no line end; put each row on a line"):
        read(tmp_path / "a.csv", f"{LONG}\n1\n")
