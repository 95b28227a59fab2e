"""Names of JSON match a table's without case, wherever in a file a field first occurs."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lance_ops.errors import RawFileRefused, SchemaMismatch
from lance_ops.maintenance.ingest import ExtraColumns, RawFile, RawReader, RawReading
from lance_ops.maintenance.ingest.decoding import json_bytes
from lance_ops.maintenance.ingest.decoding.requests import BLOCK_BYTES, CUT_BYTES, RawLimits, RawSource
from tests.maintenance.ingest.decoding.text_files import BOTH, load

TABLE = pa.schema(
    [
        ("id", pa.int64()),
        ("pad", pa.string()),
        ("note", pa.string()),
        ("s", pa.struct([("note", pa.string()), ("day", pa.date32())])),
        ("l", pa.list_(pa.struct([("note", pa.string())]))),
    ]
)
EXTRA = pytest.mark.parametrize("extra", ExtraColumns, ids=lambda extra: extra.value)


def lines(*last: dict[str, Any], blocks: int = 1) -> str:
    """Return rows that fill blocks of the file, and then the last ones."""
    first = [{"id": at, "pad": "x" * 100_000} for at in range(11 * blocks)]
    return "".join(f"{json.dumps(row)}\n" for row in (*first, *last))


LATE: dict[str, tuple[dict[str, Any], str]] = {
    "a column": ({"Note": "a"}, "note"),
    "escapes": ({"NOTE": "ä"}, "note"),
    "in a struct": ({"s": {"Note": "a", "DAY": "2026-01-02"}}, "s"),
    "a struct and in it": ({"S": {"Note": "a"}}, "s"),
    "in a list": ({"l": [{}, {"nOTE": "a"}]}, "l"),
}


def lowered(value: Any) -> Any:
    if isinstance(value, dict):
        return {name.lower(): lowered(item) for name, item in value.items()}
    return [lowered(item) for item in value] if isinstance(value, list) else value


@BOTH
@EXTRA
@pytest.mark.parametrize(("row", "name"), LATE.values(), ids=LATE)
def test_a_field_that_first_occurs_late_may_be_spelled_in_another_case(
    tmp_path: Path, row: dict[str, Any], name: str, extra: ExtraColumns, isolated: bool
) -> None:
    rows = load(tmp_path, "a.json", lines(row), TABLE, isolated=isolated, extra_columns=extra)
    plain = load(tmp_path, "b.json", lines(lowered(row)), None, isolated=isolated, extra_columns=extra)
    assert plain[: len(rows)] == rows and plain[len(rows) :] == rows
    assert rows[-1][name] is not None and rows[0][name] is None


@EXTRA
def test_a_key_is_found_wherever_a_block_ends(tmp_path: Path, extra: ExtraColumns) -> None:
    first = f'{{"id": 0, "pad": "{"y" * 600_000}"}}\n{{"id": 1, "pad": "'
    for before in (0, 1, 4, 6, 7):
        content = f'{first}{"x" * (BLOCK_BYTES - before - len(first) - 3)}", "Note": "a"}}\n'
        assert content.index('"Note"') == BLOCK_BYTES - before
        folder = tmp_path / str(before)
        folder.mkdir()
        assert load(folder, "a.json", content, TABLE, extra_columns=extra)[-1]["note"] == "a"


@EXTRA
@pytest.mark.parametrize("compress", [False, True], ids=["plain", "gz"])
def test_a_field_that_a_file_spells_in_two_ways_is_refused(tmp_path: Path, extra: ExtraColumns, compress: bool) -> None:
    content = lines({"note": "a"}, {"id": 5}, {"Note": "b"}).encode()
    name, content = ("a.json.gz", gzip.compress(content, 1)) if compress else ("a.json", content)
    with pytest.raises(
        RawFileRefused, match=r'line 14: the field "Note" is "note" in line 12, and both are one column'
    ):
        load(tmp_path, name, content, TABLE, extra_columns=extra)
    within = lines({"s": {"note": "a"}}, {"S": {"day": None}})
    with pytest.raises(RawFileRefused, match='line 13: the field "S" is "s" in line 12'):
        load(tmp_path, "b.json", within, None, extra_columns=extra)


@EXTRA
@pytest.mark.parametrize("first", [{"s": {"note": "a"}}, {"l": [{"note": "a"}]}, {"note": "a"}], ids=str)
def test_a_late_field_may_have_the_name_of_an_early_one_elsewhere(
    tmp_path: Path, first: dict[str, Any], extra: ExtraColumns
) -> None:
    late: list[dict[str, Any]] = [{"Note": "b"}, {"s": {"NOTE": "b"}}, {"l": [{"nOTE": "b"}]}]
    for number, last in enumerate(late):
        if lowered(last).keys() != first.keys():
            content = f"{json.dumps(first)}\n{lines(last)}"
            (tmp_path / str(number)).mkdir()
            rows = load(tmp_path / str(number), "a.json", content, TABLE, extra_columns=extra)
            ((name, value),) = lowered(last).items()
            assert lowered(rows[-1])[name] == ({**value, "day": None} if name == "s" else value)


def test_a_late_spelling_of_an_early_field_is_no_field_to_add(tmp_path: Path) -> None:
    with pytest.raises(
        RawFileRefused,
        match='line 12: the field "ID" is "id" in another line, and both are one column: spell it in one',
    ):
        load(tmp_path, "a.json", lines({"ID": 1}), TABLE)
    with pytest.raises(RawFileRefused, match='line 12: the field "other" is not in the table: add it'):
        load(tmp_path, "b.json", lines({"other": 1}), None)


SPELLED = {
    "plain": ("Note", '"note"'),
    "escaped": ("note", r'"n\u004fte"'),
    "escaped all": ("note", r'"\u004e\u004F\u0054\u0045"'),
    "kelvin": ("kind", '"\u212aind"'),
    "escaped kelvin": ("kind", r'"\u212AIND"'),
    "umlaut": ("größe", '"GRÖßE"'),
    "escaped umlaut": ("größe", r'"gr\u00d6\u00dfe"'),
    "a slash": ("a/b", r'"A\/B"'),
    "a quote": ('a"b', r'"A\"B"'),
    "a backslash": ("a\\b", r'"A\\b"'),
    "a line feed": ("a\nb", r'"a\nB"'),
    "one letter": ("n", '"N"'),
    "a space": ("a b", '"a B"  '),
}


@EXTRA
@pytest.mark.parametrize(("name", "key"), SPELLED.values(), ids=SPELLED)
def test_a_late_field_is_found_however_its_letters_are_written(
    tmp_path: Path, name: str, key: str, extra: ExtraColumns
) -> None:
    table = pa.schema([("id", pa.int64()), ("pad", pa.string()), (name, pa.int64())])
    rows = load(tmp_path, "a.json", f"{lines(blocks=2)}{{{key}: 7}}\n", table, extra_columns=extra)
    assert rows[-1][name] == 7


def test_blocks_without_a_text_like_a_missing_field_are_not_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[int] = []
    key = json_bytes._JSON_KEY

    class Counted:
        def findall(self, text: bytes) -> list[bytes]:
            parsed.append(len(text))
            return key.findall(text)

    monkeypatch.setattr(json_bytes, "_JSON_KEY", Counted())
    (tmp_path / "a.json").write_text(lines({"pad": '\\u00e4ä "Note" net'}, blocks=8).replace("xxx", "ä,"))
    source = RawSource(str(tmp_path / "a.json"), None, "utf-8", 10**9)
    assert json_bytes.check_json(source, RawLimits(), ["id", "pad", "note"], in_all_rows=False).keys == {}
    assert len(parsed) == 1
    assert list(json_bytes.check_json(source, RawLimits(), ["id", "ote"], in_all_rows=True).keys) == [b'"id"']


def test_a_field_elsewhere_that_is_left_out_may_be_spelled_in_any_case(tmp_path: Path) -> None:
    others: list[dict[str, Any]] = [
        {"other": {"NOTE": 1, "Id": [2]}, "note": "a"},
        {"m": [{"nOtE": 3}]},
        {"Note2": 4, "s": {"ID": 5}},
    ]
    text = '{"pad": "\\"Note\\": \\"no field\\"", "id": 99}\n'
    rows = load(tmp_path, "a.json", lines(*others) + text, TABLE, extra_columns=ExtraColumns.IGNORE)
    assert [row["note"] for row in rows[-4:]] == ["a", None, None, None]
    assert [row["id"] for row in rows[-4:]] == [None, None, None, 99]


@EXTRA
def test_with_case_a_field_of_another_case_is_another_field(tmp_path: Path, extra: ExtraColumns) -> None:
    content = lines({"Note": "a"})
    if extra is ExtraColumns.IGNORE:
        rows = load(tmp_path, "a.json", content, TABLE, extra_columns=extra, case_sensitive=True)
        assert {row["note"] for row in rows} == {None}
    else:
        with pytest.raises(RawFileRefused, match='line 12: the field "Note", unlike "note", is not in the table'):
            load(tmp_path, "a.json", content, TABLE, extra_columns=extra, case_sensitive=True)


@EXTRA
def test_names_match_without_case_where_the_first_rows_have_no_common_type(tmp_path: Path, extra: ExtraColumns) -> None:
    table = pa.schema([("amount", pa.decimal128(9, 2))])
    rows = load(tmp_path, "a.json", '{"Amount": 1.5}\n{"Amount": "2.5"}\n', table, extra_columns=extra)
    assert [row["amount"] for row in rows] == [Decimal("1.50"), Decimal("2.50")]


def test_two_columns_that_differ_in_case_alone_keep_their_fields(tmp_path: Path) -> None:
    table = pa.schema([("id", pa.int64()), ("pad", pa.string()), ("a", pa.int64()), ("A", pa.int64())])
    rows = load(tmp_path, "a.json", lines({"A": 1}, {"a": 2}), table)
    assert [(row["a"], row["A"]) for row in rows[-2:]] == [(None, 1), (2, None)]
    with pytest.raises((RawFileRefused, SchemaMismatch)):
        load(tmp_path, "b.json", '{"id": 1}\n{"B": 1}\n', None)


@pytest.mark.parametrize("array", [False, True], ids=["lines", "array"])
def test_a_look_at_the_columns_reads_the_first_bytes_alone(
    tmp_path: Path, array: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = lines(blocks=6)
    path = tmp_path / "a.json"
    path.write_text("[" + content.replace("\n", ",")[:-1] + "]" if array else content)
    sizes: list[int] = []
    feed = json_bytes._Marks.feed

    def counted(self: Any, block: bytes) -> Any:
        sizes.append(len(block))
        return feed(self, block)

    monkeypatch.setattr(json_bytes._Marks, "feed", counted)
    file = RawFile(str(path), path.stat().st_size, "t")
    with RawReader({}, RawReading(isolated=False)) as reader:
        assert reader.schema(file).names == ["id", "pad"]
    assert path.stat().st_size > 3 * CUT_BYTES
    num_reads = 4 if array else 1  # an array is also scanned when it becomes lines, each time that it is opened
    assert sum(sizes) <= num_reads * CUT_BYTES


@pytest.mark.parametrize("end", ["", "\n"])
def test_the_last_line_of_a_short_file_counts_for_its_columns(tmp_path: Path, end: str) -> None:
    assert load(tmp_path, "a.json", f'{{"a": 1}}\n{{"a": 2, "b": 3}}{end}', None)[1] == {"a": 2, "b": 3}
