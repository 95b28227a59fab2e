"""How the work of each verb grows with columns, fragments, versions and offset.

Work is counted in Python instructions. Between a size and its double, and between the double and its double, work
that grows in proportion adds twice as much the second time; work that grows with the square adds four times as much.
Threads that race for work make a count vary, always upwards from the least: a limit that is missed is measured again.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.reading import joined_blocks, joined_fragments
from lance_ops.table import MANIFEST_CACHE
from lance_ops.wire import shared_schemas
from tests.growth.instructions import count_instructions

pytestmark = pytest.mark.xdist_group("growth")  # one worker writes the tables that tests copy

Verb = Callable[[str, int], object]
Copy = Callable[..., str]

ROWS = 20
"""Rows in each fragment."""


def _wide(columns: int) -> pa.Table:
    return pa.table({f"c{number}": np.arange(ROWS, dtype=np.int32) for number in range(columns)})


def _long(fragments: int) -> pa.Table:
    rows = fragments * ROWS
    return pa.table({"id": np.arange(rows), "v": np.arange(rows) / 2, "s": [f"s{row % 7}" for row in range(rows)]})


def _write_wide(uri: str, fragments: int, columns: int) -> None:
    for mode in ("create", "append")[:fragments]:
        lance_ops.write_dataset(_wide(columns), uri, mode=mode)
    lance_ops.dataset(uri).create_scalar_index("c4", "BTREE")


def _write_fragmented(uri: str, deletions: bool, fragments: int) -> None:
    dataset = lance_ops.write_dataset(_long(fragments), uri, max_rows_per_file=ROWS)
    dataset.create_scalar_index("id", "BTREE")
    if deletions:
        dataset.delete(f"id % {ROWS} = 3")


def _write_versions(uri: str, versions: int) -> None:
    dataset = lance_ops.write_dataset(_long(1), uri)
    dataset.create_scalar_index("id", "BTREE")
    for number in range(versions - 2):
        dataset.update_config({"number": str(number)})


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tables that tests copy."""
    return tmp_path_factory.mktemp("written")


@pytest.fixture
def copy(written: Path, tmp_path: Path) -> Copy:
    """Return a function that copies what a writer writes with some arguments: writing takes longer than measuring."""
    numbers = count()

    def copied(write: Callable[..., object], *arguments: object) -> str:
        table = written / "-".join(map(str, [write.__name__, *arguments]))
        if not table.exists():
            write(str(table), *arguments)
        uri = str(tmp_path / f"{next(numbers)}.lance")
        shutil.copytree(table, uri)
        lance_ops.dataset(uri)  # a manifest that this process wrote is known, too
        return uri

    return copied


def _grows_within(
    verb: Verb, make: Callable[[int], str], sizes: tuple[int, int, int], limit: Callable[[int], float]
) -> bool:
    """Return whether going from the second to the third size adds at most `limit(instructions added before that)`.

    Each table is new. The verb runs once before on another table, so that compiling and caching do not count.
    """
    verb(make(sizes[0]), sizes[0])
    least = [sys.maxsize] * len(sizes)
    for _ in range(4):
        counts = [count_instructions(partial(verb, make(size), size)) for size in sizes]
        least = [*map(min, least, counts)]
        if least[2] - least[1] <= limit(least[1] - least[0]):
            return True
    return False


def _in_proportion(added_before: int) -> float:
    """Return a limit between twice as much, which is in proportion, and four times as much."""
    return 2.8 * added_before + 2_000


BY_COLUMNS: dict[str, Verb] = {
    "open": lambda uri, _: lance_ops.dataset(uri).schema,
    "scan": lambda uri, _: lance_ops.dataset(uri).to_table(),
    "scan of one column": lambda uri, _: lance_ops.dataset(uri).to_table(columns=["c5"]),
    "filter": lambda uri, _: lance_ops.dataset(uri).to_table(filter="c3 = 5"),
    "take": lambda uri, _: lance_ops.dataset(uri).take([1, 5]),
    "look-up": lambda uri, _: lance_ops.dataset(uri).to_table(filter="c4 = 5"),
    "append": lambda uri, size: lance_ops.dataset(uri).insert(_wide(size)),
    "delete": lambda uri, _: lance_ops.dataset(uri).delete("c1 = 3"),
    "update": lambda uri, _: lance_ops.dataset(uri).update({"c1": "7"}, where="c2 = 5"),
    "compact": lambda uri, _: lance_ops.dataset(uri).optimize.compact_files(),
    "clean-up": lambda uri, _: lance_ops.dataset(uri).cleanup_old_versions(timedelta(0)),
}


@pytest.mark.parametrize("verb", BY_COLUMNS)
def test_work_grows_no_faster_than_the_columns(verb: str, copy: Copy) -> None:
    assert _grows_within(BY_COLUMNS[verb], partial(copy, _write_wide, 2), (60, 120, 240), _in_proportion)


PER_COLUMN: dict[str, tuple[Verb, int]] = {
    "open": (lambda uri, _: lance_ops.dataset(uri).schema, 70),
    "scan of one column": (lambda uri, _: lance_ops.dataset(uri).to_table(columns=["c5"]), 260),
}
"""Verbs, and the most instructions that one more column may take in a process that has not seen its schema."""


@pytest.mark.parametrize("verb", PER_COLUMN)
def test_a_column_that_is_not_read_costs_little(verb: str, copy: Copy) -> None:
    def make(columns: int) -> str:
        uri = copy(_write_wide, 1, columns)
        for forget in (
            MANIFEST_CACHE.reset,
            shared_schemas._as_encoded.cache_clear,
            shared_schemas._in_order.cache_clear,
        ):
            forget()
        return uri

    act, most = PER_COLUMN[verb]
    assert _grows_within(act, make, (1_100, 1_200, 1_400), lambda _: 200 * most)


BY_FRAGMENTS: dict[str, Verb] = {
    "scan": lambda uri, _: lance_ops.dataset(uri).to_table(),
    "count": lambda uri, _: lance_ops.dataset(uri).count_rows(),
    "filter": lambda uri, _: lance_ops.dataset(uri).to_table(filter="v > 2"),
    "range by index": lambda uri, size: lance_ops.dataset(uri).to_table(filter=f"id >= 20 and id < {20 + size}"),
    "append": lambda uri, _: lance_ops.dataset(uri).insert(_long(1)),
    "delete in every fragment": lambda uri, _: lance_ops.dataset(uri).delete(f"id % {ROWS} = 7"),
    "clean-up": lambda uri, _: lance_ops.dataset(uri).cleanup_old_versions(timedelta(0)),
    "compact": lambda uri, _: lance_ops.dataset(uri).optimize.compact_files(),
}

FEW_FRAGMENTS: dict[str, Verb] = {
    "open": lambda uri, _: lance_ops.dataset(uri).schema,
    "scan of the first rows": lambda uri, _: lance_ops.dataset(uri).to_table(limit=5),
    "offset near the end": lambda uri, size: lance_ops.dataset(uri).to_table(limit=5, offset=size * (ROWS - 2)),
    "take": lambda uri, _: lance_ops.dataset(uri).take([5]),
    "look-up": lambda uri, _: lance_ops.dataset(uri).to_table(filter="id = 25"),
}
"""Verbs that open one file or none: for every other fragment they may do no more than look at its row count."""

ONE_CHANGED: dict[str, Verb] = {
    "delete of one row": lambda uri, _: lance_ops.dataset(uri).delete("id = 25"),
    "update of one row": lambda uri, _: lance_ops.dataset(uri).update({"v": "7"}, where="id = 25"),
}
"""Verbs that change one fragment: every other one is taken over to the new version as the bytes that it was."""


@pytest.mark.parametrize("deletions", [False, True], ids=["whole", "with deletions"])
@pytest.mark.parametrize("verb", BY_FRAGMENTS)
def test_work_grows_no_faster_than_the_fragments(verb: str, deletions: bool, copy: Copy) -> None:
    make = partial(copy, _write_fragmented, deletions)
    assert _grows_within(BY_FRAGMENTS[verb], make, (24, 48, 96), _in_proportion)


@pytest.mark.parametrize("verb", FEW_FRAGMENTS)
def test_a_fragment_that_is_not_read_costs_next_to_nothing(verb: str, copy: Copy) -> None:
    make = partial(copy, _write_fragmented, True)
    assert _grows_within(FEW_FRAGMENTS[verb], make, (24, 96, 196), lambda _: 100 * 120)


def test_counting_rows_looks_at_each_fragment_once(copy: Copy) -> None:
    make = partial(copy, _write_fragmented, True)
    assert _grows_within(lambda uri, _: lance_ops.dataset(uri).count_rows(), make, (24, 96, 196), lambda _: 100 * 50)


@pytest.mark.parametrize("verb", ONE_CHANGED)
def test_a_fragment_that_is_not_changed_costs_next_to_nothing(
    verb: str, copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(MANIFEST_CACHE), "add", lambda *_: None)  # a check of this suite decodes what is added
    make = partial(copy, _write_fragmented, True)
    assert _grows_within(ONE_CHANGED[verb], make, (24, 96, 196), lambda _: 100 * 240)


JOINED: dict[str, Verb] = {
    "scan": lambda uri, _: lance_ops.dataset(uri).to_table(),
    "scan of one column": lambda uri, _: lance_ops.dataset(uri).to_table(columns=["v"]),
    "filter": lambda uri, _: lance_ops.dataset(uri).to_table(filter="v < 3"),
    "filter of one column": lambda uri, _: lance_ops.dataset(uri).to_table(columns=["v"], filter="v < 3"),
    "rows found by an index": lambda uri, _: lance_ops.dataset(uri).to_table(filter="id >= 5"),
    "row of each fragment found by an index": lambda uri, size: lance_ops.dataset(uri).to_table(
        filter=f"id IN ({', '.join(str(ROWS * number + 5) for number in range(size))})"
    ),
}
"""Verbs that read small fragments together."""

MOST_JOINED = 2_200
"""The most instructions that one more small fragment may take beside others."""


TOGETHER, ALONE = (48, 192), (24, 96)
"""Numbers of fragments that show what one more costs. Fragments that are read alone cost more, so fewer of them do."""


def _cost_of_one_more(
    verb: Verb, copy: Copy, sizes: tuple[int, int] = TOGETHER, tables: int = 1, repeats: int = 4
) -> float:
    """Return the instructions that one more fragment takes, from the least of repeats on each of several tables."""
    few, many = (
        min(
            count_instructions(partial(verb, uri, size))
            for uri in [copy(_write_fragmented, False, size) for _ in range(tables)]
            for _ in range(repeats)
        )
        for size in sizes
    )
    return (many - few) / (sizes[1] - sizes[0])


@pytest.mark.parametrize("verb", JOINED)
def test_a_small_fragment_costs_less_beside_others_than_alone(
    verb: str, copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    _cost_of_one_more(JOINED[verb], copy, ALONE, repeats=1)  # compiles and fills caches
    together = _cost_of_one_more(JOINED[verb], copy)
    assert together < MOST_JOINED
    monkeypatch.setattr(joined_blocks, "_MAX_JOINED", 1)
    assert together < 0.3 * _cost_of_one_more(JOINED[verb], copy, ALONE, repeats=2)


def _take_from_each(uri: str, size: int) -> object:
    return lance_ops.dataset(uri).take(range(5, size * ROWS, ROWS))


def _compact(uri: str, _: int) -> object:
    return lance_ops.dataset(uri).optimize.compact_files()


@pytest.mark.parametrize(
    ("verb", "tables", "repeats", "most"), [(_take_from_each, 1, 4, 1_000), (_compact, 2, 1, 3_500)]
)
def test_a_small_file_is_opened_with_others(
    verb: Verb, tables: int, repeats: int, most: int, copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    _cost_of_one_more(verb, copy, ALONE, repeats=1)  # compiles and fills caches
    together = _cost_of_one_more(verb, copy, TOGETHER, tables, repeats)
    assert together < most
    monkeypatch.setattr(joined_fragments, "open_alike", lambda *_: None)
    assert together < 0.5 * _cost_of_one_more(verb, copy, ALONE, tables, repeats)


@pytest.mark.parametrize("as_given", [np.asarray, np.ndarray.tolist], ids=["array", "list"])
def test_a_take_checks_its_rows_all_at_once(as_given: Callable[[np.ndarray], object], copy: Copy) -> None:
    dataset = lance_ops.dataset(copy(_write_fragmented, False, 40))
    few, many = as_given(np.arange(0, 800, 4)), as_given(np.arange(800))
    takes = [partial(dataset.take, rows) for rows in (few, many)]
    counts = [min(count_instructions(take) for _ in range(3)) for take in takes]  # the first one fills caches
    assert counts[1] - counts[0] < 10 * 600, "a check of each row takes 28 instructions"


BY_VERSIONS: dict[str, Verb] = {
    "open": lambda uri, _: lance_ops.dataset(uri).schema,
    "open a numbered version": lambda uri, _: lance_ops.dataset(uri, version=3).schema,
    "scan": lambda uri, _: lance_ops.dataset(uri).to_table(),
    "filter": lambda uri, _: lance_ops.dataset(uri).to_table(filter="v > 2"),
    "look-up": lambda uri, _: lance_ops.dataset(uri).to_table(filter="id = 5"),
    "append": lambda uri, _: lance_ops.dataset(uri).insert(_long(1)),
    "take": lambda uri, _: lance_ops.dataset(uri).take([5]),
    "versions": lambda uri, _: lance_ops.dataset(uri).versions(),
    "clean-up": lambda uri, _: lance_ops.dataset(uri).cleanup_old_versions(timedelta(0)),
}


@pytest.mark.parametrize("verb", BY_VERSIONS)
def test_work_grows_no_faster_than_the_versions(verb: str, copy: Copy) -> None:
    # each size exceeds the 16 manifests that stay decoded, or the step from hits to misses looks like growth
    make = partial(copy, _write_versions)
    assert _grows_within(BY_VERSIONS[verb], make, (24, 48, 96), _in_proportion)
