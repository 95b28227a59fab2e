"""Samplers choose the reference's rows in its order, and each row goes to exactly one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops import sampler
from lance_ops.errors import InvalidInput, MissingPackage

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

REFERENCE = import_module("lance.sampler")
NUM_ROWS = 98


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("samples") / "t")
    rows = pa.table({"a": range(100), "st": [{"x": i} for i in range(100)]})
    lance.write_dataset(rows, uri, max_rows_per_file=40).delete("a IN (3, 50)")
    return uri


def values(batches: Iterator[pa.RecordBatch]) -> list[list[int]]:
    return [batch["a"].to_pylist() for batch in batches]


def flat(batches: list[list[int]]) -> list[int]:
    return [value for batch in batches for value in batch]


def both(uri: str, make: Callable[[Any], Any], **options: Any) -> tuple[list[list[int]], list[list[int]]]:
    """Return the batches of our sampler and of the reference's."""
    mine = make(sampler)(lance_ops.dataset(uri), **options)
    other = make(REFERENCE)(lance.dataset(uri), **options)
    return values(mine), values(other)


@pytest.mark.parametrize("columns", [["a"], None, ["a", "st.x"]])
@pytest.mark.parametrize("randomize", [False, True])
@pytest.mark.parametrize("name", ["ShardedFragmentSampler", "ShardedBatchSampler"])
@pytest.mark.parametrize(("rank", "world_size"), [(0, 1), (0, 2), (1, 3), (5, 9)])
def test_a_process_gets_the_reference_s_rows_in_its_order(
    uri: str, name: str, rank: int, world_size: int, randomize: bool, columns: list[str] | None
) -> None:
    def make(library: Any) -> Any:
        return getattr(library, name)(rank, world_size, randomize=randomize, seed=5)

    mine, other = both(uri, make, batch_size=7, columns=columns)
    assert mine == other


def test_a_full_scan_gives_the_reference_s_batches(uri: str) -> None:
    for options in ({}, {"batch_size": 9}, {"columns": ["a"], "with_row_id": True, "batch_readahead": 2}):
        mine, other = both(uri, lambda library: library.FullScanSampler(), **options)
        assert mine == other
    mine, other = both(uri, lambda library: library.FullScanSampler(), filter="a > 20", batch_size=9)
    assert flat(mine) == flat(other)


@pytest.mark.parametrize(("rank", "world_size"), [(0, 1), (1, 3), (2, 3)])
def test_filtered_rows_are_shared_as_in_the_reference(uri: str, rank: int, world_size: int) -> None:
    mine, other = both(
        uri, lambda library: library.ShardedBatchSampler(rank, world_size), filter="a > 20", batch_size=7
    )
    assert mine == other


@pytest.mark.parametrize("name", ["ShardedFragmentSampler", "ShardedBatchSampler"])
@pytest.mark.parametrize("matching", [None, "a % 2 = 0", "a = 4", "a < 0"])
@pytest.mark.parametrize("randomize", [False, True])
@pytest.mark.parametrize("world_size", [1, 2, 5])
def test_every_row_goes_to_exactly_one_process(
    uri: str, name: str, matching: str | None, randomize: bool, world_size: int
) -> None:
    dataset = lance_ops.dataset(uri)
    found = []
    for rank in range(world_size):
        share = getattr(sampler, name)(rank, world_size, randomize=randomize)
        share.set_epoch(3)
        for batch in values(share(dataset, batch_size=4, filter=matching)):
            assert 0 < len(batch) <= 4
            found += batch
    assert sorted(found) == dataset.to_table(["a"], filter=matching)["a"].to_pylist()


@pytest.mark.parametrize("name", ["ShardedFragmentSampler", "ShardedBatchSampler"])
def test_each_epoch_has_an_order_of_its_own_that_the_seed_repeats(tmp_path: Path, name: str) -> None:
    dataset = lance_ops.write_dataset(pa.table({"a": range(60)}), tmp_path / "t", max_rows_per_file=5)

    def order(seed: int, epoch: int, **options: Any) -> list[list[int]]:
        made = getattr(sampler, name)(0, 2, randomize=True, seed=seed)
        made.set_epoch(epoch)
        return values(made(dataset, batch_size=5, **options))

    for options in ({}, {"filter": "a >= 0"}):
        orders = [order(1, epoch, **options) for epoch in range(4)]
        assert orders == [order(1, epoch, **options) for epoch in range(4)]
        assert len({str(each) for each in orders}) == 4


def test_a_long_filtered_scan_is_shuffled_within_bounded_memory(tmp_path: Path) -> None:
    dataset = lance_ops.write_dataset(pa.table({"a": range(3000)}), tmp_path / "t")
    batches = values(sampler.ShardedBatchSampler(0, 1, randomize=True)(dataset, batch_size=2, filter="a >= 0"))
    firsts = [batch[0] for batch in batches]
    assert sorted(firsts) == [*range(0, 3000, 2)]
    assert firsts != sorted(firsts)
    assert firsts[0] < 2 * 256


def test_row_ids_come_with_batches(uri: str) -> None:
    dataset = lance_ops.dataset(uri)
    for made in (sampler.ShardedBatchSampler(1, 2), sampler.ShardedFragmentSampler(1, 2), sampler.FullScanSampler()):
        for columns in (["a"], None, {"a": "a"}):
            (first, *_) = made(dataset, columns=columns, batch_size=9, with_row_id=True)
            assert dataset._take_rows(first["_rowid"], columns=["a"])["a"].to_pylist() == first["a"].to_pylist()


@pytest.mark.parametrize("where", [None, "a > 5"])
@pytest.mark.parametrize("columns", [["a", "_rowid"], {"a": "a", "_rowid": "_rowid"}])
def test_row_ids_that_are_a_column_already_come_once(
    uri: str, columns: list[str] | dict[str, str], where: str | None
) -> None:
    read = sampler.ShardedBatchSampler(0, 1)
    batches = list(read(lance_ops.dataset(uri), columns=columns, with_row_id=True, batch_size=50, filter=where))
    assert {tuple(batch.schema.names) for batch in batches} == {("a", "_rowid")}
    expected = lance_ops.dataset(uri).to_table(columns=columns, filter=where)
    assert pa.Table.from_batches(batches) == expected


@pytest.mark.parametrize(("rank", "world_size"), [(0, 4), (1, 4), (3, 4), (0, 1)])
@pytest.mark.parametrize(("batch_size", "total"), [(100, 1000), (2, 10), (1, 3), (7, 0), (0, 0)])
@pytest.mark.parametrize("randomize", [False, True])
def test_batches_of_positions_are_the_reference_s(
    rank: int, world_size: int, batch_size: int, total: int, randomize: bool
) -> None:
    arguments = (rank, world_size, randomize, 7, batch_size, total)
    mine = sampler.ShardedFixedBatchSampler(*arguments)
    other = REFERENCE.ShardedFixedBatchSampler(*arguments)
    mine.set_epoch(2)
    other.set_epoch(2)
    assert list(mine) == (list(other) if total else [])
    assert len(mine) == len(list(mine)) <= len(other)


def test_a_rank_outside_the_world_and_useless_batches_are_refused(uri: str) -> None:
    dataset = lance_ops.dataset(uri)
    for name in ("ShardedFragmentSampler", "ShardedBatchSampler", "ShardedFixedBatchSampler"):
        for rank, world_size in ((2, 2), (-1, 2), (0, 0)):
            with pytest.raises(InvalidInput, match="rank"):
                getattr(sampler, name)(rank, world_size)
    with pytest.raises(InvalidInput, match="batches of 0"):
        sampler.ShardedFixedBatchSampler(0, 1, batch_size=0, total_num_rows=5)
    with pytest.raises(InvalidInput, match="batch_size"):
        sampler.ShardedBatchSampler(0, 1)(dataset, batch_size=0)


def test_a_sampler_of_one_s_own_chooses_fragments(uri: str) -> None:
    class Last(sampler.FragmentSampler):
        def iter_fragments(self, ds: lance_ops.LanceDataset, **kwargs: Any) -> Iterator[lance_ops.LanceFragment]:
            yield ds.get_fragments()[-1]

    assert values(Last()(lance_ops.dataset(uri), batch_size=50, columns=["a"])) == [[*range(80, 100)]]


def test_from_torch_names_the_extra_if_torch_is_missing() -> None:
    try:
        import_module("torch.distributed")
    except ImportError:
        with pytest.raises(MissingPackage, match=r"lance-ops\[torch\]"):
            sampler.ShardedBatchSampler.from_torch()
    else:
        pytest.skip("torch is installed")


@pytest.mark.parametrize("source", [str, Path, lance_ops.dataset])
def test_a_small_sample_is_the_reference_s_for_the_same_seed(uri: str, source: Callable[[str], Any]) -> None:
    samples = []
    for library, opened in ((sampler, source(uri)), (REFERENCE, uri)):
        np.random.seed(3)  # noqa: NPY002 # what both draw from
        samples.append(values(library.maybe_sample(opened, 30, ["a"], batch_size=8)))
    assert samples[0] == samples[1]


@pytest.mark.parametrize("n", [0, 1, 6, 50, 97])
@pytest.mark.parametrize("max_takes", [1, 7, 60, 2048])
@pytest.mark.parametrize("batch_size", [4, 10240])
def test_a_sample_has_exactly_the_rows_asked_for(uri: str, n: int, max_takes: int, batch_size: int) -> None:
    dataset = lance_ops.dataset(uri)
    batches = values(sampler.maybe_sample(dataset, n, "a", batch_size, max_takes))
    drawn = flat(batches)
    assert len(drawn) == len(set(drawn)) == n
    assert set(drawn) <= set(range(100)) - {3, 50}
    assert all(len(batch) == batch_size for batch in batches[:-1])


@pytest.mark.parametrize("max_takes", [5, 2048])
def test_every_row_is_drawn_some_time(uri: str, max_takes: int) -> None:
    np.random.seed(0)  # noqa: NPY002 # a repeatable test
    dataset = lance_ops.dataset(uri)
    drawn = {
        value
        for _ in range(60)
        for batch in values(sampler.maybe_sample(dataset, 30, "a", 30, max_takes))
        for value in batch
    }
    assert drawn == set(range(100)) - {3, 50}


@pytest.mark.parametrize(("n", "expected"), [(5, 5), (44, 44), (45, 45), (90, 45), (1000, 45)])
def test_a_filtered_sample_draws_matching_rows(uri: str, n: int, expected: int) -> None:
    drawn = flat(values(sampler.maybe_sample(uri, n, ["a"], filt="a > 10 AND a % 2 = 0", max_takes=9)))
    assert len(drawn) == len(set(drawn)) == min(expected, len(range(12, 100, 2)) - 1)
    assert all(value > 10 and value % 2 == 0 for value in drawn)


def test_a_large_sample_reads_no_more_runs_than_allowed(uri: str) -> None:
    positions = flat(values(sampler.maybe_sample(uri, 60, ["a"], max_takes=4)))
    live = [value for value in range(100) if value not in (3, 50)]
    places = np.array([live.index(value) for value in positions])
    assert (np.diff(places) > 0).all()
    assert (np.diff(places) > 1).sum() <= 3


@pytest.mark.parametrize(("name", "value"), [("n", -1), ("batch_size", 0), ("max_takes", 0)])
def test_useless_numbers_of_a_sample_are_refused_by_name(uri: str, name: str, value: int) -> None:
    with pytest.raises(InvalidInput, match=name):
        sampler.maybe_sample(uri, **{"n": 5, "columns": ["a"], **dict[str, Any]({name: value})})
