"""JSON whose rows are the items of an array, and JSON that has no rows."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from lance_ops.errors import RawFileRefused
from lance_ops.maintenance.ingest import (
    TextReading,
)
from lance_ops.maintenance.ingest.decoding.json_bytes import JsonSource
from tests.maintenance.ingest.decoding.text_files import BOTH, load

ARRAYS = {
    "one line": '[{"id": 1, "text": "a,] \\\\\\" [", "list": [1, 2]}, {"id": 2}]',
    "many lines": '\n[\n  {\n    "id": 1,\r\n    "text": "a,] \\\\\\" [",\n    "list": [1,\n2]},\n  {"id": 2}\n]\n',
}


@BOTH
@pytest.mark.parametrize("content", ARRAYS.values(), ids=ARRAYS)
def test_rows_of_json_may_be_the_items_of_an_array(tmp_path: Path, content: str, isolated: bool) -> None:
    marked = b"\xef\xbb\xbf" + content.encode()
    assert load(tmp_path, "a.json", marked, None, isolated=isolated) == [
        {"id": 1, "text": 'a,] \\" [', "list": [1, 2]},
        {"id": 2, "text": None, "list": None},
    ]
    bad = content.replace('"id": 2', '"id": "two"')
    with pytest.raises(RawFileRefused, match=r"b\.json: line 2: column 'id': \"two\" is no int64"):
        load(tmp_path, "b.json", bad, None, isolated=isolated)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('[{"id": 1}, ]', [1]),
        ('[{"id": 1},, {"id": 2}]', [1, 2]),
        (b"\xef\xbb\xbf" + b" " * 4000 + b'[{"id": 1}]', [1]),
    ],
    ids=["comma at the end", "two commas", "spaces"],
)
def test_an_array_may_have(tmp_path: Path, content: str | bytes, expected: list[int]) -> None:
    assert [row["id"] for row in load(tmp_path, "a.json", content, None)] == expected


def test_an_array_may_be_compressed_or_of_another_encoding(tmp_path: Path) -> None:
    content = '[{"city": "Zürich"}]'
    utf16 = TextReading(encoding="utf-16")
    assert load(tmp_path, "a.json.gz", gzip.compress(content.encode()), None) == [{"city": "Zürich"}]
    assert load(tmp_path, "b.json", content.encode("utf-16"), None, utf16)[1:] == [{"city": "Zürich"}]


NO_ROWS = {
    "null": ("[null]", "line 1: null is not a row"),
    "nulls first": ('[null, null, {"id": 1}]', "line 1: null is not a row"),
    "null in a line": ('{"id": 1}\n\nnull\n', "line 3: null is not a row"),
    "null after a block": ('{"id": 1}\n' * 104_857 + "{}   \nnull\n", "line 104859: null is not a row"),
    "null in a row's line": ('{"id": 1} null\n', "it has text between its rows"),
    "numbers": ("[1, 2]", "line 1: 1 is not a row: each row is an object of fields"),
    "text": ('"a{}"\n', 'line 1: "a{}" is not a row'),
    "lists": ('{"id": 1}\n[{"id": 2}]\n', 'line 2: [{"id": 2}] is not a row'),
    "null after a surplus end": ('{"id": 1}\n' * 104_857 + "}    \nnull\n", "line 104859: null is not a row"),
    "a row behind a surplus end": ('}\n{"id": 1}\n', "it has text between its rows"),
    "null and then too deep": ('{"id": 1} null\n' + "[" * 100_000 + "\n", "nested more than"),
    "null and much later too deep": ('{"id": 1} null\n' + " " * 2**20 + "[" * 100_000, "it has text between its rows"),
    "no JSON": ("id=1\n", "it has text between its rows"),
}


@pytest.mark.parametrize(("content", "reason"), NO_ROWS.values(), ids=NO_ROWS)
def test_json_whose_rows_are_no_objects_is_refused_before_arrow_ends_the_process(
    tmp_path: Path, content: str, reason: str
) -> None:
    with pytest.raises(RawFileRefused, match=re.escape(reason)):
        load(tmp_path, "a.json", content, None)


@BOTH
@pytest.mark.parametrize(
    "content", ['[{"id": 1}, {"id": 2}', '[{"id": 1}}', '[{"id": 1}]]', "[1, 2]", "[]", '[[{"id": 1}]]']
)
def test_an_array_that_is_cut_off_or_wrong_is_refused(tmp_path: Path, content: str, isolated: bool) -> None:
    with pytest.raises(RawFileRefused, match=r"a\.json: "):
        load(tmp_path, "a.json", content, None, isolated=isolated)


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 7])
def test_an_array_is_the_same_rows_wherever_its_bytes_are_cut(tmp_path: Path, block_bytes: int) -> None:
    path = tmp_path / "a.json"
    path.write_text(ARRAYS["many lines"])
    whole = JsonSource(str(path), None, "utf-8", 1000).open().read()
    stream = JsonSource(str(path), None, "utf-8", 1000).open()
    parts = list(iter(lambda: stream.read(block_bytes), b""))
    assert len(parts) > 9 and b"".join(parts) == whole
    assert [json.loads(line)["id"] for line in whole.splitlines()] == [1, 2]


BROKEN = {
    "cut off": (
        f'{{"id": 1, "t": "{"x" * 9000}"}}\n' * 150 + '{"id": 1, "t": "x',
        "line 151: it is not JSON (",
        True,
    ),
    "in the first block": ('{"id": 1}\n{"id": 01}\n{"id": 2}\n', "line 2: it is not JSON (Expecting ',' del", False),
    "a field twice": ('{"id": 1} {"id": 2}\n\n{"id": 1, "id": 2}', 'line 3: it is not JSON (the field "id" is', True),
    "no UTF-8": (b'{"id": 1}\n{"\xff": 1, "id" 2}\n', "line 2: it is not UTF-8: set the file's encoding", False),
}


@pytest.mark.parametrize("with_table", [False, True], ids=["new", "table"])
@pytest.mark.parametrize(("content", "reason", "is_last"), BROKEN.values(), ids=BROKEN)
def test_a_line_that_is_no_json_is_named(
    tmp_path: Path, content: str | bytes, reason: str, is_last: bool, with_table: bool
) -> None:
    table = pa.schema([("id", pa.int64()), ("t", pa.string())]) if with_table else None
    with pytest.raises(RawFileRefused, match=re.escape(f"a.json: {reason}")) as refused:
        load(tmp_path, "a.json", content, table)
    assert ("the file may be cut off" in str(refused.value)) == is_last
