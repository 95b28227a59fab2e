"""Quotes of CSV that other writers put otherwise, or that are not closed."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from lance_ops.errors import RawFileRefused
from lance_ops.maintenance.ingest import RawFile, RawReader, RawReading, TextReading
from lance_ops.maintenance.ingest.decoding import csv_rows
from lance_ops.maintenance.ingest.decoding.csv_bytes import WatchedCsv
from lance_ops.maintenance.ingest.decoding.requests import DecodingRefused, RawSource
from tests.maintenance.ingest.decoding.text_files import load

SPARK = "line 2: a quote ends a cell, and more of the cell stands behind it: set escape to '\\' (raw.text.escape, --e"
BAD = {
    "a quote within": ('id,note\n1,a\n2,"b\n3,c\n4,d\n', "line 3: a quote is not closed up to the end of the file"),
    "cut off": ('id,note\n1,"a"\n2,"b', "line 3: a quote is not closed up to the end of the file"),
    "fewer cells": ('id,note,n\n1,a,1\n2,"b,2\n3,c,3\n', "line 3: a quote is not closed"),
    "an empty cell": ('id,note\n1,"\n', "line 2: a quote is not closed"),
    "Spark's": ('id,note\n1,"5\\" pipe"\n', SPARK),
    "Spark's twice": ('id,note\n1,"5\\" and 6\\" pipes"\n', SPARK),
    "text behind": ('id,note\n1,"a"b"\n', "line 2: a quote ends a cell, and more of the cell stands behind it: double"),
}


@pytest.mark.parametrize(("content", "reason"), BAD.values(), ids=BAD)
def test_a_quote_that_is_not_closed_or_not_doubled_is_refused_by_its_line(
    tmp_path: Path, content: str, reason: str
) -> None:
    with pytest.raises(RawFileRefused, match=re.escape(f"a.csv: {reason}")):
        load(tmp_path, "a.csv", content, None)


LEGAL = {
    "a literal quote": ('id,note\n1,a"b\n', 'a"b'),
    "doubled quotes": ('id,note\n1,"a ""b"" c"\n', 'a "b" c'),
    "three doubled quotes": ('id,note\n1,"a ""b"\n', 'a "b'),
    "a line feed": ('id,note\n1,"a\nb,\n"\n', "a\nb,\n"),
    "a path": ('id,note\n1,"C:\\dir\\"\n', "C:\\dir\\"),
}


@pytest.mark.parametrize(("content", "note"), LEGAL.values(), ids=LEGAL)
def test_other_quotes_are_read(tmp_path: Path, content: str, note: str) -> None:
    assert load(tmp_path, "a.csv", content, None) == [{"id": 1, "note": note}]


def test_with_an_escape_or_without_a_quote_any_quotes_are_read(tmp_path: Path) -> None:
    content = 'id,note\n1,"5\\" pipe"\n'
    assert load(tmp_path, "a.csv", content, None, TextReading(escape="\\"))[0]["note"] == '5" pipe'
    assert load(tmp_path, "b.csv", content, None, TextReading(quote=""))[1]["note"] == '"5\\" pipe"'


@pytest.mark.parametrize("ending", ['5,e"\n', '5,"x"y"\n'], ids=["legal", "refused"])
def test_a_long_reading_for_quotes_shows_that_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr(csv_rows, "_STEP_BYTES", 8)
    content = f"id,note\n1,a\n2,b\n3,c\n4,d\n{ending}"
    path = tmp_path / "a.csv"
    path.write_text(content)
    found: list[pa.RecordBatch] = []
    with RawReader({}, RawReading(isolated=False)) as reader, suppress(RawFileRefused):
        found += reader.batches(RawFile(str(path), len(content), "t"), lambda request, _: request)
    assert [each.num_rows for each in found] == [5, 0, 0, 0]


def test_only_the_bytes_that_arrow_has_read_are_checked(tmp_path: Path) -> None:
    content = 'id,note\n1,"a\nb"\n2,"c\n'
    (tmp_path / "a.csv").write_text(content)
    source = RawSource(str(tmp_path / "a.csv"), None, "utf-8", 1000)
    for num_bytes in (9, 13, 16):
        assert not list(csv_rows.check_quotes(source, TextReading(), num_bytes))
    for all_bytes in (len(content), None):
        with pytest.raises(DecodingRefused, match="line 4: a quote is not closed"):
            list(csv_rows.check_quotes(source, TextReading(), all_bytes))


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 7])
def test_signs_are_seen_wherever_a_block_ends(tmp_path: Path, block_bytes: int) -> None:
    for content, has_doubtful_quotes, has_hexadecimal in (
        (b'1,"a\\""\n', True, False),
        (b'1,"a",0X1F\n', False, True),
        (b'1,"a,x0\n', True, False),
        (b'1,"a","",\\a\n', False, False),
    ):
        (tmp_path / "a.csv").write_bytes(content)
        with WatchedCsv(open(tmp_path / "a.csv", "rb"), '"', seeks_hexadecimal=True) as stream:
            while stream.read(block_bytes):
                pass
            assert (stream.has_doubtful_quotes, stream.has_hexadecimal) == (has_doubtful_quotes, has_hexadecimal)
