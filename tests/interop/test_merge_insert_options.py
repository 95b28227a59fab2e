"""Every clause and every option of `merge_insert`, alone and in pairs, does what it does in the reference."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from tests.interop.same_change import DIFFERENCES, Change, Difference, check_same, make_change

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

Build = Callable[[Any], Any]
"""Adds clauses to a merge's builder."""


def rows(*keys: int | None) -> pa.Table:
    keys = keys or tuple(range(6))
    values = [None if key == 2 else float(key or 0) for key in keys]
    return pa.table({"id": pa.array(keys, pa.int32()), "v": values, "s": [f"s{key}" for key in keys]})


def source(*keys: int | None) -> pa.Table:
    columns = {
        "v": pa.array([100.0 + (key or 0) for key in keys]),
        "s": pa.array([f"n{key}" for key in keys], pa.string()),
    }
    return pa.table({"id": pa.array(keys, pa.int32()), **columns})


SOURCE = source(1, 4, 40)
PART = SOURCE.select(["id", "v"])


def merge(build: Build, data: Any = SOURCE, on: Any = "id", **options: Any) -> Change:
    return lambda dataset, _: dict(build(dataset.merge_insert(on)).execute(data, **options))


def update(merge: Any) -> Any:
    return merge.when_matched_update_all()


def insert(merge: Any) -> Any:
    return merge.when_not_matched_insert_all()


def upsert(merge: Any) -> Any:
    return insert(update(merge))


def given(condition: str) -> Build:
    return lambda merge: merge.when_matched_update_all(condition)


def rest_deleted(condition: str) -> Build:
    return lambda merge: merge.when_not_matched_by_source_delete(condition)


def written(mode: str | None) -> Build:
    return lambda merge: merge.write_mode(mode)


def in_version(version: str | None) -> Build:
    return lambda merge: merge.data_storage_version(version)


def also(first: Build, then: Build) -> Build:
    return lambda merge: then(first(merge))


UNCHANGED = "A merge that changes no row makes no version"


def pruned(data: pa.Table, *, all_others: bool) -> Difference:
    """Return the difference of a merge that deletes the rows that match, and all other rows or some of them."""
    keys = data["id"].to_pylist()
    kept = [key for key in range(6) if key not in keys and not all_others and key in (1, 2)]
    left = rows(*kept) if kept else rows().slice(6)
    return Difference("deletes matched rows and rows without a match", rows=left)


def check_merge(
    root: Path, table: pa.Table, change: Change, known: Difference | None = None, **options: Any
) -> dict[str, int] | None:
    """Check a merge as `check_same` does, but for the version that the reference makes if no row changes.

    Return the counts.
    """
    ours, theirs = make_change(root, table, change, **options)
    if ours.succeeds and theirs.succeeds and not any(ours.result.values()):
        assert UNCHANGED in DIFFERENCES
        assert ours.result == theirs.result
        assert ours.rows == theirs.rows == sorted(map(str, table.to_pylist()))
        assert ours.version == 1
    else:
        check_same(ours, theirs, known)
    counts: dict[str, int] | None = ours.result
    return counts


# -- clauses --------------------------------------------------------------------------------------------------------

MATCHED: dict[str, Build] = {
    "keep": lambda merge: merge,
    "update": update,
    "update if": given("source.v > 102 AND target.s != 's5'"),
    "delete": lambda merge: merge.when_matched_delete(),
    "fail": lambda merge: merge.when_matched_fail(),
}
NOT_MATCHED: dict[str, Build] = {"leave out": lambda merge: merge, "insert": insert}
NOT_IN_SOURCE: dict[str, Build] = {
    "keep": lambda merge: merge,
    "delete": lambda merge: merge.when_not_matched_by_source_delete(),
    "delete if": lambda merge: merge.when_not_matched_by_source_delete("v > 2 OR s = 's0'"),
}
SOURCES = {
    "some match": SOURCE,
    "none match": source(40, 41),
    "all match": source(0, 1, 2, 3, 4, 5),
    "no row": source(),
}


@pytest.mark.parametrize("data", SOURCES)
@pytest.mark.parametrize("matched", MATCHED)
@pytest.mark.parametrize(("inserts", "deletes"), list(product(NOT_MATCHED, NOT_IN_SOURCE)))
def test_clauses_in_any_combination_do_the_same(
    tmp_path: Path, matched: str, inserts: str, deletes: str, data: str
) -> None:
    build: Build = lambda merge: NOT_IN_SOURCE[deletes](NOT_MATCHED[inserts](MATCHED[matched](merge)))  # noqa: E731
    known = None
    if (matched, inserts) == ("delete", "leave out") and deletes != "keep":
        known = pruned(SOURCES[data], all_others=deletes == "delete")
    check_merge(tmp_path, rows(), merge(build, SOURCES[data]), known)


# -- options --------------------------------------------------------------------------------------------------------


def in_place(merge: Any) -> Any:
    return update(merge).write_mode("rewrite_columns")


def beside(other: Callable[[Any], Any], build: Build) -> Change:
    """Return a merge of a handle that is older than another writer's change."""

    def change(dataset: Any, _: Any) -> dict[str, int]:
        other(lance_ops.dataset(dataset.uri))
        return dict(build(dataset.merge_insert("id")).execute(SOURCE))

    return change


def updates_a_row(dataset: Any) -> None:
    dataset.update({"v": "-1"}, "id = 1")


def updates_another_row(dataset: Any) -> None:
    dataset.update({"v": "-1"}, "id = 5")


def committed(build: Build, data: pa.Table = SOURCE) -> Change:
    """Return a merge without its commit, and then the commit."""

    def change(dataset: Any, library: Any) -> dict[str, int]:
        transaction, counts = build(dataset.merge_insert("id")).execute_uncommitted(data)
        assert dataset.version == library.dataset(dataset.uri).version == 1
        library.LanceDataset.commit(dataset, transaction)
        return dict(counts)

    return change


def indexed(build: Build, data: pa.Table, use_index: bool) -> Change:
    def change(dataset: Any, _: Any) -> dict[str, int]:
        dataset.create_scalar_index("id", "BTREE")
        return dict(build(dataset.merge_insert("id").use_index(use_index)).execute(data))

    return change


def streamed(dataset: Any, _: Any) -> dict[str, int]:
    return dict(upsert(dataset.merge_insert("id")).execute(SOURCE.to_reader()))


def batches(schema: pa.Schema | None) -> Change:
    def change(dataset: Any, _: Any) -> dict[str, int]:
        return dict(upsert(dataset.merge_insert("id")).execute(iter(SOURCE.to_batches()), schema=schema))

    return change


def into_root(dataset: Any, _: Any) -> dict[str, int]:
    return dict(upsert(dataset.merge_insert("id")).target_bases([dataset.uri]).execute(SOURCE))


CONDITIONS = [
    "source.v > 102",
    "target.v < 3",
    "source.v > target.v",
    "target.v IS NOT NULL AND source.s = 'n1'",
    "SOURCE.V > 102",
    "true",
    "false",
    "NULL",
    "v > 102",
    "source.nope > 1",
    "source.v",
    "1",
    "",
]
DELETE_CONDITIONS = [
    "v > 2",
    "v IS NULL",
    "V > 2",
    "id IN (0, 2)",
    "true",
    "false",
    "target.v > 2",
    "nope",
    "v",
    "1",
    "",
]
OPTIONS: dict[str, dict[str, Change]] = {
    "on": {
        "a list": merge(upsert, on=["id"]),
        "a tuple": merge(upsert, on=("id",)),
        "two columns": merge(upsert, on=["id", "s"]),
        "one column twice": merge(upsert, on=["id", "id"]),
        "a column of numbers with a null": merge(upsert, on="v"),
        "in another case": merge(upsert, on="ID"),
        "in another case, in place": merge(in_place, PART, on="ID"),
        "in another case, deleting": merge(lambda m: m.when_matched_delete(), SOURCE.select(["id"]), on=["Id"]),
        "in back quotes": merge(upsert, on="`id`"),
        "unknown": merge(upsert, on="nope"),
        "one unknown": merge(upsert, on=["id", "nope"]),
        "left out": merge(upsert, on=None),
        "empty": merge(upsert, on=[]),
        "not in the source": merge(upsert, SOURCE.select(["v", "s"])),
    },
    "when_matched_update_all": {
        **{condition: merge(given(condition)) for condition in CONDITIONS},
        **{f"{condition}, inserting": merge(also(given(condition), insert)) for condition in CONDITIONS},
        "a condition, then none": merge(lambda m: update(given("source.v > 102")(m))),
        "none, then a condition": merge(lambda m: given("source.v > 102")(update(m))),
        "after a deletion": merge(lambda m: update(m.when_matched_delete())),
        "after a refusal": merge(lambda m: update(m.when_matched_fail())),
        "two rows for one": merge(update, source(1, 1)),
        "two rows for one, of which a condition takes one": merge(
            given("source.s = 'n1'"), pa.concat_tables([source(1), source(1).set_column(2, "s", [["other"]])])
        ),
        "two rows for one that a condition leaves": merge(given("source.v > 1000"), source(1, 1)),
        "some columns": merge(update, PART),
        "the key only": merge(update, PART.select(["id"])),
    },
    "when_matched_delete": {
        "the key only": merge(lambda m: m.when_matched_delete(), PART.select(["id"])),
        "after an update": merge(lambda m: update(m).when_matched_delete()),
        "two rows for one": merge(lambda m: m.when_matched_delete(), source(1, 1)),
        "keys of another type that does not fit": merge(
            lambda m: m.when_matched_delete(), pa.table({"id": [1, 2**40]})
        ),
    },
    "when_matched_fail": {
        "after an update": merge(lambda m: update(m).when_matched_fail()),
        "new rows, one twice": merge(lambda m: insert(m.when_matched_fail()), source(40, 40)),
        "after an update, nothing matches": merge(lambda m: insert(update(m).when_matched_fail()), source(40, 41)),
    },
    "when_not_matched_insert_all": {
        "a row twice": merge(insert, source(1, 1, 40, 40)),
        "twice": merge(lambda m: insert(insert(m))),
        "some columns": merge(insert, PART),
        "the key only": merge(insert, PART.select(["id"])),
        "a column too many": merge(insert, SOURCE.append_column("z", [[1, 2, 3]])),
        "columns in another order": merge(insert, SOURCE.select(["s", "id", "v"])),
    },
    "when_not_matched_by_source_delete": {
        **{f"if {c!r}": merge(also(update, rest_deleted(c))) for c in DELETE_CONDITIONS},
        **{f"alone, if {c!r}": merge(rest_deleted(c)) for c in DELETE_CONDITIONS},
        "a condition, then another": merge(
            lambda m: upsert(m).when_not_matched_by_source_delete("v > 2").when_not_matched_by_source_delete("v < 2")
        ),
        "a condition, then none": merge(
            lambda m: upsert(m).when_not_matched_by_source_delete("v > 2").when_not_matched_by_source_delete()
        ),
    },
    "conflict_retries": {
        "ten, of which one is needed": beside(updates_a_row, upsert),
        "one, which is needed": beside(updates_a_row, lambda m: upsert(m).conflict_retries(1)),
        "none, but one is needed": beside(updates_a_row, lambda m: upsert(m).conflict_retries(0)),
        "none, and none is needed": beside(updates_another_row, lambda m: upsert(m).conflict_retries(0)),
        "one, in place": beside(updates_a_row, lambda m: in_place(m).conflict_retries(1)),
        "one for a deleted row": beside(lambda d: d.delete("id = 1"), lambda m: upsert(m).conflict_retries(1)),
        "in a replaced table": beside(lambda d: d.insert(SOURCE, mode="overwrite"), upsert),
        "negative": merge(lambda m: upsert(m).conflict_retries(-1)),
        "no number": merge(lambda m: upsert(m).conflict_retries("1")),
    },
    "retry_timeout": {
        "enough": beside(updates_a_row, lambda m: upsert(m).retry_timeout(timedelta(minutes=10))),
        "zero": merge(lambda m: upsert(m).retry_timeout(timedelta(0))),
        "zero, but a retry is needed": beside(updates_a_row, lambda m: upsert(m).retry_timeout(timedelta(0))),
        "negative": merge(lambda m: upsert(m).retry_timeout(timedelta(seconds=-1))),
        "no time": merge(lambda m: upsert(m).retry_timeout(5)),
    },
    "use_index": {
        f"{use_index}, {name}": indexed(build, data, use_index)
        for use_index in (True, False)
        for name, build, data in (
            ("upsert", upsert, SOURCE),
            ("update", update, SOURCE),
            ("update of some columns", update, PART),
            ("whole rows of some columns", lambda m: update(m).write_mode("rewrite_rows"), PART),
            ("in place", in_place, PART),
            ("insert", insert, SOURCE),
            ("delete", lambda m: m.when_matched_delete(), PART.select(["id"])),
            ("replace", lambda m: upsert(m).when_not_matched_by_source_delete("v > 2"), SOURCE),
        )
    },
    "write_mode": {
        f"{mode}, {name}": merge(also(build, written(mode)), data)
        for mode in ("auto", "rewrite_rows", "rewrite_columns", "columns", None)
        for name, build, data in (
            ("update", update, SOURCE),
            ("update of some columns", update, PART),
            ("update of some columns if", given("source.v > 102"), PART),
            ("upsert of some columns", upsert, PART),
            ("update of the key", update, PART.select(["id"])),
            ("delete", lambda m: m.when_matched_delete(), PART),
            ("update and delete", lambda m: update(m).when_not_matched_by_source_delete("v > 4"), PART),
            ("two rows for one", update, source(1, 1).select(["id", "v"])),
        )
    },
    "data_storage_version": {
        str(version): merge(also(upsert, in_version(version)))
        for version in ("2.0", "2.1", "2.2", "2.3", "stable", "next", "legacy", "0.1", "3", None)
    },
    "target_bases": {  # tests/interop/test_base_paths.py has other bases
        "the root": into_root,
        "none": merge(lambda m: upsert(m).target_bases([])),
        "unknown": merge(lambda m: upsert(m).target_bases(["nope"])),
        "beside all bases": merge(lambda m: upsert(m).target_all_bases().target_bases(["nope"])),
    },
    "target_all_bases": {
        "with the root": merge(lambda m: upsert(m).target_all_bases()),
        "without the root": merge(lambda m: upsert(m).target_all_bases(False)),
    },
    "execute": {
        "with a schema": merge(upsert, schema=SOURCE.schema),
        "a reader": streamed,
        "batches": batches(SOURCE.schema),
        "batches without a schema": batches(None),
        "a data frame": merge(upsert, SOURCE.to_pandas()),
        "dictionaries": merge(upsert, [{"id": 1, "v": 1.0, "s": "x"}], schema=SOURCE.schema),
        "wider numbers": merge(upsert, SOURCE.set_column(0, "id", SOURCE["id"].cast(pa.int64()))),
        "text for a number": merge(upsert, SOURCE.set_column(0, "id", SOURCE["id"].cast(pa.string()))),
        "nothing to do": merge(lambda m: m),
        "no data": merge(upsert, None),
    },
    "execute_uncommitted": {
        "upsert": committed(upsert),
        "update": committed(update),
        "in place": committed(in_place, PART),
        "delete": committed(lambda m: m.when_matched_delete()),
        "replace": committed(lambda m: upsert(m).when_not_matched_by_source_delete()),
    },
}
IN_OTHER_TESTS = {"explain_plan", "analyze_plan"}
"""tests/interop/test_merge_plans.py compares them."""
NOT_OFFERED = {"mark_sstables_as_compacted"}
"""tests/interop/test_names.py says why."""
CAST = Difference("A source is cast to the table's types", rows=pa.concat_tables([rows(0, 2, 3, 5), SOURCE]))
UNSTABLE = Difference("File version 2.3", ours_succeeds=False, theirs_succeeds=True)
KNOWN = {
    ("when_matched_delete", "keys of another type that does not fit"): Difference(
        "a key that does not fit is an error", ours_succeeds=False, theirs_succeeds=True
    ),
    ("use_index", "True, update of some columns"): Difference(
        '`write_mode="auto"` moves whole rows', theirs_succeeds=True
    ),
    ("data_storage_version", "2.3"): UNSTABLE,
    ("data_storage_version", "next"): UNSTABLE,
    ("execute", "a data frame"): CAST,
    ("execute", "wider numbers"): CAST,
}


def test_every_option_has_cases() -> None:
    builder = import_module("lance.dataset").MergeInsertBuilder
    methods = {name for name in dir(builder) if not name.startswith("_") and not name.endswith("_batches")}
    assert methods == {*OPTIONS, *IN_OTHER_TESTS, *NOT_OFFERED} - {"on"}


@pytest.mark.parametrize(("option", "case"), [(option, case) for option in OPTIONS for case in OPTIONS[option]])
def test_options_do_the_same(tmp_path: Path, option: str, case: str) -> None:
    check_merge(tmp_path, rows(), OPTIONS[option][case], KNOWN.get((option, case)))


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1"])
@pytest.mark.parametrize("build", [upsert, update, in_place], ids=["upsert", "update", "in place"])
def test_merges_into_tables_of_older_versions_do_the_same(
    tmp_path: Path, build: Build, version: str, stable: bool
) -> None:
    table = rows(0, 1, 3, 4, 5, 6)  # files of 0.1 hold no nulls
    options: dict[str, Any] = {"data_storage_version": version, "enable_stable_row_ids": stable}
    counts = check_merge(tmp_path, table, merge(build, SOURCE if build is upsert else PART), **options)
    assert counts == {"num_inserted_rows": build is upsert, "num_updated_rows": 2, "num_deleted_rows": 0}


@pytest.mark.parametrize("matched", ["update", "delete"])
@pytest.mark.parametrize("inserts", NOT_MATCHED)
@pytest.mark.parametrize("table", [rows(1, None, 5), rows().slice(6)], ids=["null keys", "no row"])
def test_null_keys_and_empty_tables_do_the_same(tmp_path: Path, matched: str, inserts: str, table: pa.Table) -> None:
    build: Build = lambda merge: NOT_MATCHED[inserts](MATCHED[matched](merge))  # noqa: E731
    check_merge(tmp_path, table, merge(build, source(1, None, 40)))
