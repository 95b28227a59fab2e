"""Batches have the reference's lengths; with a filter, all but the last have exactly the length that was asked for."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import CorruptFile, InvalidInput
from lance_ops.reading import scan_plan
from lance_ops.snapshot import Snapshot, open_alike
from lance_ops.table import Fragment

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

VARIABLE = "LANCE_DEFAULT_BATCH_SIZE"

WITHOUT_FILTER: list[dict[str, Any]] = [
    {},
    {"batch_size": 1},
    {"batch_size": 7},
    {"batch_size": 40},
    {"batch_size": 1000},
    {"batch_size": 7, "limit": 20},
    {"batch_size": 7, "limit": 20, "offset": 5},
    {"batch_size": 7, "offset": 33},
    {"batch_size": 7, "limit": 0},
    {"batch_size": 7, "scan_in_order": False},
    {"batch_size": 7, "batch_readahead": 1},
    {"batch_size": 7, "fragment_readahead": 1},
    {"batch_size": 7, "order_by": ["a"]},
    {"batch_size": 7, "columns": ["_rowid"]},
    {"batch_size": 7, "columns": {"b": "a + 1"}},
    {"batch_size": 7, "columns": [], "with_row_id": True},
    {"batch_size": 7, "columns": []},
    {"batch_size": 7, "strict_batch_size": True},
    {"strict_batch_size": True},
]

FILTERED: list[dict[str, Any]] = [
    {"filter": "a % 2 = 0"},
    {"batch_size": 7, "filter": "a % 3 = 0"},
    {"batch_size": 7, "filter": "a > 50"},
    {"batch_size": 7, "filter": "a = 1 OR a = 90"},
    {"batch_size": 7, "filter": "a % 3 = 0", "limit": 10, "offset": 3},
    {"batch_size": 7, "filter": "a % 3 = 0", "late_materialization": True},
    {"batch_size": 7, "filter": "a < 0"},
]


def lengths(source: Any, **options: Any) -> list[int]:
    return [batch.num_rows for batch in source.to_batches(**options)]


@pytest.fixture(scope="module", params=["2.2", "2.0"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=["whole", "deleted from"])
def uri(request: pytest.FixtureRequest, version: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("batches") / "t")
    table = pa.table({"a": range(100), "s": [str(number) for number in range(100)]})
    dataset = lance.write_dataset(table, uri, max_rows_per_file=40, data_storage_version=version)
    if request.param == "deleted from":
        dataset.delete("a IN (3, 4, 5, 9, 44, 45, 79)")
    return uri


@pytest.mark.parametrize("options", WITHOUT_FILTER, ids=str)
def test_batches_without_a_filter_have_the_reference_s_lengths(uri: str, options: dict[str, Any]) -> None:
    found = lengths(lance_ops.dataset(uri), **options)
    assert found == lengths(lance.dataset(uri), **options)
    assert sum(found) or options.get("limit") == 0


@pytest.mark.parametrize("options", [each for each in WITHOUT_FILTER if "scan_in_order" not in each][:9], ids=str)
def test_batches_of_a_fragment_have_the_reference_s_lengths(uri: str, options: dict[str, Any]) -> None:
    ours, theirs = (library.dataset(uri).get_fragments()[1] for library in (lance_ops, lance))
    known = {name: value for name, value in options.items() if name != "fragment_readahead"}
    assert lengths(ours, **known) == lengths(theirs, **known)


@pytest.mark.parametrize("options", FILTERED, ids=str)
def test_filtered_batches_are_full_but_for_the_last_and_hold_the_reference_s_rows(
    uri: str, options: dict[str, Any]
) -> None:
    ours, theirs = lance_ops.dataset(uri), lance.dataset(uri)
    found = lengths(ours, **options)
    size = options.get("batch_size", 8192)
    assert all(length == size for length in found[:-1])
    assert all(0 < length <= size for length in found[-1:])
    expected = pa.Table.from_batches(theirs.to_batches(**options), theirs.schema)
    assert pa.Table.from_batches(ours.to_batches(**options), ours.schema).equals(expected)


@pytest.mark.parametrize(
    "options", [{"batch_size": 100}, {"batch_size": 700, "offset": 30}, {"strict_batch_size": True}]
)
def test_blocks_of_a_large_fragment_do_not_shorten_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(pa.table({"a": range(10_000), "s": ["x" * 50] * 10_000}), uri, max_rows_per_file=6000)
    lance.dataset(uri).delete("a % 997 = 0")
    monkeypatch.setattr(scan_plan, "BLOCK_BYTES", 16_000)  # some 240 rows
    ours = lance_ops.dataset(uri)
    assert len(scan_plan.plan_scan(ours.snapshot, ours.scanner()._request).blocks) > 10
    assert lengths(ours, **options) == lengths(lance.dataset(uri), **options)


@pytest.mark.parametrize("size", ["7", "13", "100", ""])
def test_the_environment_sets_the_default_size_in_both(uri: str, monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    monkeypatch.setenv(VARIABLE, size)
    ours, theirs = lance_ops.dataset(uri), lance.dataset(uri)
    assert lengths(ours) == lengths(theirs)
    assert lengths(ours, batch_size=9) == lengths(theirs, batch_size=9)
    assert (max(lengths(ours)) <= int(size)) if size else (max(lengths(ours)) >= 36)


@pytest.mark.parametrize(
    "options", [{}, {"batch_size": 5}, {"filter": "a % 3 = 0"}, {"limit": 50, "offset": 3}], ids=str
)
@pytest.mark.parametrize("num_bytes", [1, 64, 100, 1 << 20])
def test_batches_of_bytes_have_the_reference_s_rows_and_no_more_bytes(
    uri: str, num_bytes: int, options: dict[str, Any]
) -> None:
    options = {"columns": ["a"], "batch_size_bytes": num_bytes, **options}
    found = list(lance_ops.dataset(uri).to_batches(**options))
    expected = list(lance.dataset(uri).to_batches(**options))
    assert pa.Table.from_batches(found).column("a").to_pylist() == pa.Table.from_batches(expected)["a"].to_pylist()
    assert all(batch.nbytes <= max(num_bytes, 8) and batch.num_rows <= options.get("batch_size", 40) for batch in found)
    if num_bytes == 64 and not options.keys() & {"batch_size", "filter"}:
        assert max(batch.num_rows for batch in found) == 8


@pytest.mark.parametrize("size", ["0", "-5", "many", "1.5", "²"])
def test_an_unusable_default_size_is_refused_by_name(uri: str, monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    monkeypatch.setenv(VARIABLE, size)
    with pytest.raises(InvalidInput, match=VARIABLE):
        lance_ops.dataset(uri).scanner()


@pytest.mark.parametrize(
    "options", [{"batch_size": 0}, {"batch_size": -1}, {"strict_batch_size": True, "batch_size_bytes": 10}]
)
def test_sizes_that_the_reference_refuses_are_refused(uri: str, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="batch_size"):
        lance_ops.dataset(uri).scanner(**options)
    with pytest.raises((ValueError, OverflowError)):
        list(lance.dataset(uri).scanner(**options).to_batches())


@pytest.mark.parametrize("matching", [None, "a >= 0"])
def test_rows_that_were_read_before_a_damaged_file_come_before_the_error(tmp_path: Path, matching: str | None) -> None:
    dataset = lance_ops.write_dataset(pa.table({"a": range(40)}), tmp_path / "t", max_rows_per_file=10)
    damaged = dataset.snapshot.fragments[2].files[0].path
    (tmp_path / "t" / "data" / damaged).write_bytes(b"damaged")
    batches = dataset.to_batches(filter=matching)
    found = [next(batches)]
    with pytest.raises(CorruptFile, match=damaged):
        found.extend(batches)
    assert pa.Table.from_batches(found)["a"].to_pylist() == [*range(20)]


def test_the_first_batch_of_a_filtered_scan_comes_before_the_last_block_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = lance_ops.write_dataset(pa.table({"a": range(100_000)}), tmp_path / "t", max_rows_per_file=1000).uri
    first_batches_came, opened_after_them = threading.Event(), list[bool]()

    def open_last_later(snapshot: Snapshot, fragments: Sequence[Fragment], *arguments: Any) -> Any:
        if fragments[-1].id == 99:
            opened_after_them.append(first_batches_came.wait(timeout=60))
        return open_alike(snapshot, fragments, *arguments)

    monkeypatch.setattr("lance_ops.reading.joined_fragments.open_alike", open_last_later)
    batches = lance_ops.dataset(uri).to_batches(filter="a % 2 = 0", batch_size=100)
    assert [batch.num_rows for batch in islice(batches, 3)] == [100, 100, 100]
    first_batches_came.set()
    assert sum(batch.num_rows for batch in batches) == 50_000 - 300
    assert opened_after_them == [True]
