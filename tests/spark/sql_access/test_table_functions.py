"""Table functions for `spark.sql`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PythonException

from lance_ops.api import LanceDataset, write_dataset
from lance_ops.spark import register_functions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def rows(spark: SparkSession, text: str) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in spark.sql(text).collect()]


def test_fragments_indices_scans_and_changes(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"manifest_store": f"sqlite:///{tmp_path}/hunter2.db"}
    uri = str(tmp_path / "numbers.lance")
    numbers = pa.table(
        {
            "id": pa.array(range(6), pa.int64()),
            "n": [{"a": i, "b": [i]} for i in range(6)],
            "m": pa.array([[("k", i)] for i in range(6)], pa.map_(pa.string(), pa.int64())),
        }
    )
    opened = write_dataset(numbers, uri, max_rows_per_file=4, enable_stable_row_ids=True, storage_options=options)
    opened.create_scalar_index("id", "BTREE")
    opened.delete("id = 0")
    opened.insert(numbers.slice(5))
    register_functions(spark, options)

    fragments = rows(spark, f"SELECT * FROM lance_fragments('{uri}')")
    assert [(each["num_rows"], each["physical_rows"]) for each in fragments] == [(3, 4), (2, 2), (1, 1)]
    indices = rows(spark, f"SELECT * FROM lance_indices('{uri}')")
    assert [(each["name"], each["type"], each["num_unindexed_rows"]) for each in indices] == [("id_idx", "BTree", 1)]
    versions = rows(spark, f"SELECT * FROM lance_versions('{uri}')")
    assert [(each["version"], each["tags"]) for each in versions] == [(1, []), (2, []), (3, []), (4, [])]
    assert versions[0]["timestamp"] < versions[3]["timestamp"]

    tables = f"(VALUES ('late', '{uri}'), ('none', NULL)) AS tables(name, uri)"
    of_each = rows(spark, f"SELECT name, num_rows FROM {tables}, LATERAL lance_fragments(tables.uri)")
    assert of_each == [{"name": "late", "num_rows": count} for count in (3, 2, 1)]

    scan = f"SELECT * FROM lance_scan('{uri}', filter => 'id < 3', columns => 'n,m')"
    assert rows(spark, scan) == [{"n": {"a": i, "b": [i]}, "m": {"k": i}} for i in (1, 2)]
    assert rows(spark, f"SELECT count(*) AS n FROM lance_scan('{uri}', version => 1)") == [{"n": 6}]
    assert rows(spark, f"SELECT * FROM lance_scan('{uri}', columns => 'id', filter => 'id > 77')") == []

    changes = rows(spark, f"SELECT _change_type, id, n.b AS b FROM lance_changes('{uri}', 1, {opened.version})")
    assert changes == [{"_change_type": "insert", "id": 5, "b": [5]}, {"_change_type": "delete", "id": None, "b": None}]
    assert rows(spark, f"SELECT count(*) AS n FROM lance_changes('{uri}', 0, 1)") == [{"n": 6}]
    spark.sql(scan).explain(mode="extended")
    assert "hunter2" not in capsys.readouterr().out
    assert LanceDataset(uri, storage_options=options).count_rows() == 6
    register_functions(spark)


def test_each_function_takes_what_names_a_version_or_a_branch(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "numbers.lance")
    opened = write_dataset(pa.table({"id": range(4)}), uri, enable_stable_row_ids=True)
    opened.create_scalar_index("id", "BTREE")
    opened.tags.create("indexed", 2)
    branch = opened.create_branch("b", 1)
    branch.insert(pa.table({"id": [7]}))
    branch.delete("id = 0")
    register_functions(spark)

    def numbers(call: str, column: str) -> list[Any]:
        return [row[column] for row in rows(spark, f"SELECT * FROM {call}")]

    assert numbers(f"lance_versions('{uri}')", "version") == [1, 2]
    assert numbers(f"lance_versions('{uri}', branch => 'b')", "num_rows") == [4, 5, 4]
    assert numbers(f"lance_fragments('{uri}', branch => 'b')", "num_rows") == [3, 1]
    assert numbers(f"lance_fragments('{uri}', branch => 'b', version => {branch.version - 1})", "num_rows") == [4, 1]
    assert numbers(f"lance_indices('{uri}', tag => 'indexed')", "name") == ["id_idx"]
    assert numbers(f"lance_indices('{uri}', version => 1)", "name") == []
    assert numbers(f"lance_indices('{uri}', timestamp => '2999-01-01')", "name") == ["id_idx"]
    last = branch.version
    assert numbers(f"lance_changes('{uri}', {last - 1}, {last}, branch => 'b')", "_change_type") == ["delete"]
    assert numbers(f"lance_changes('{uri}', {last - 2}, branch => 'b')", "id") == [7, None]
    tables = f"(VALUES (1), (2)) AS versions(number), LATERAL lance_indices('{uri}', version => number)"
    assert rows(spark, f"SELECT number, name FROM {tables}") == [{"number": 2, "name": "id_idx"}]
    with pytest.raises(PythonException, match="options 'branch' and 'tag' both name a version") as twice:
        numbers(f"lance_fragments('{uri}', branch => 'b', tag => 'indexed')", "num_rows")
    with pytest.raises(PythonException, match="no branch 'c'") as unknown:
        numbers(f"lance_versions('{uri}', branch => 'c')", "version")
    with pytest.raises(PythonException, match="takes versions as whole numbers, not True") as truth:
        numbers(f"lance_changes('{uri}', true, 2)", "id")
    with pytest.raises(AnalysisException, match="takes versions as whole numbers, not True") as other_truth:
        numbers(f"lance_changes('{uri}', 0, true)", "id")
    with pytest.raises(AnalysisException, match="'version' must be a positive number, not 'True'"):
        numbers(f"lance_scan('{uri}', version => true)", "id")
    for error in (twice, unknown, truth, other_truth):
        assert "Traceback" not in str(error.value)


def test_maps_are_what_the_format_gives(spark: SparkSession, dataset_uri: str) -> None:
    key = pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string())]))])
    of_structs, of_texts = pa.map_(key, pa.map_(pa.string(), pa.int64())), pa.map_(pa.string(), pa.int64())
    first, second = {"a": 1, "b": {"c": "x"}}, {"a": None, "b": None}
    columns = {
        "m": pa.array([[(first, [("q", 1)]), (second, None)], None, []], of_structs),
        "repeated": pa.array([[("k", 1), ("l", 3), ("k", 2)], None, []], of_texts),
        "s": pa.array([{"m": [(first, [])], "z": 3}, None, {}], pa.struct([("m", of_structs), ("z", pa.int64())])),
        "l": pa.array([[[(first, None)], None], None, []], pa.list_(of_structs)),
    }
    write_dataset(pa.table(columns), dataset_uri)
    register_functions(spark)
    expected = spark.read.format("lance").load(dataset_uri).collect()
    assert spark.sql(f"SELECT * FROM lance_scan('{dataset_uri}')").collect() == expected
    assert expected[0].repeated == {"k": 2, "l": 3}


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([2932897], pa.int32()).cast(pa.date32()), "year 10000|date value out of range"),
        (pa.array([253402300800000000], pa.int64()).cast(pa.timestamp("us")), "out of range|year 10000"),
        (pa.array([[([1, 2], "x")]], pa.map_(pa.list_(pa.int64()), pa.string())), "a map with keys of type list"),
    ],
    ids=["date", "timestamp", "key"],
)
def test_a_value_that_python_cannot_hold_is_refused_by_its_column(
    spark: SparkSession, dataset_uri: str, column: pa.Array, message: str
) -> None:
    write_dataset(pa.table({"id": [1], "far": column}), dataset_uri)
    register_functions(spark)
    with pytest.raises(PythonException, match=f"column 'far' in a table function.*({message})") as caught:
        spark.sql(f"SELECT id FROM lance_scan('{dataset_uri}')").collect()
    assert "Traceback" not in str(caught.value)
    assert rows(spark, f"SELECT * FROM lance_scan('{dataset_uri}', columns => 'id')") == [{"id": 1}]
