"""Versions that store the key columns in another type than the keys have are searched only if a cast can tell."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import InvalidFilter
from lance_ops.maintenance.erasure import Subject, plan_erasure
from lance_ops.maintenance.erasure.subject.key_join import HasKey
from lance_ops.maintenance.erasure.subject.shared_table import SharedTable

FAMILIES: dict[str, list[pa.DataType]] = {
    "numbers": [pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.decimal128(9, 2)],
    "texts": [pa.string(), pa.large_string()],
    "bytes": [pa.binary(), pa.large_binary(), pa.binary(2)],
    "booleans": [pa.bool_()],
    "days": [pa.date32(), pa.date64()],
    "moments": [pa.timestamp("s"), pa.timestamp("ns")],
    "moments of a time zone": [pa.timestamp("us", "UTC"), pa.timestamp("ms", "Europe/Oslo")],
    "times of day": [pa.time32("s"), pa.time64("us")],
    "durations": [pa.duration("s"), pa.duration("us")],
}
TYPES = [(family, kind) for family, kinds in FAMILIES.items() for kind in kinds]


@pytest.mark.parametrize(
    ("before", "after", "key"),
    [
        (pa.array(["0042"]), pa.array([42]), 42),
        (pa.array([42]), pa.array(["0042"]), "0042"),
        (pa.array([b"0042"]), pa.array(["0042"]), "0042"),
        (pa.array(["2020-01-01T00:00"]), pa.array([datetime(2020, 1, 1)]), datetime(2020, 1, 1)),
        (pa.array([datetime(2020, 1, 1, 12)]), pa.array([date(2020, 1, 1)]), date(2020, 1, 1)),
        (pa.array([3], pa.duration("s")), pa.array(["3"]), "3"),
        (pa.array(["3"]), pa.array([3], pa.duration("s")), 3),
        (pa.array([3], pa.time64("us")), pa.array([datetime(2020, 1, 1)]), datetime(2020, 1, 1)),
    ],
    ids=lambda each: str(each.type) if isinstance(each, pa.Array) else "",
)
def test_a_version_that_stores_the_subject_in_a_type_of_another_family_goes(
    dataset_uri: str, before: pa.Array, after: pa.Array, key: Any
) -> None:
    lance_ops.write_dataset(pa.table({"user_id": before}), dataset_uri)
    made = lance_ops.write_dataset(pa.table({"user_id": after}), dataset_uri, mode="overwrite")
    report = made.erase(keys=pa.array([key], after.type), on="user_id", reason="request 12")
    assert report.is_proven, report.unproven
    assert report.erased_rows == 1
    assert "main/1" in report.removed_versions
    assert not [file.path for file in report.files if file.path.startswith("data/")]


@pytest.mark.parametrize(("family", "given"), TYPES, ids=str)
def test_keys_are_compared_within_a_family_and_refused_with_a_typed_error_across(
    dataset_uri: str, family: str, given: pa.DataType
) -> None:
    made = lance_ops.write_dataset(
        pa.table({f"k{at}": pa.nulls(1, kind) for at, (_, kind) in enumerate(TYPES)}), dataset_uri
    )
    for at, (other, _) in enumerate(TYPES):
        keys = SharedTable(pa.table({f"k{at}": pa.nulls(2, given)}))
        if family == other:
            HasKey.bind(made.snapshot, keys)
        else:
            with pytest.raises(InvalidFilter, match=f"'k{at}'.*cast the keys"):
                HasKey.bind(made.snapshot, keys)


def test_a_branch_that_stores_the_keys_in_another_family_is_not_searched(dataset_uri: str) -> None:
    made = lance_ops.write_dataset(pa.table({"id": ["0042"]}), dataset_uri)
    made.create_branch("trial", 1)
    made = lance_ops.write_dataset(pa.table({"id": [42]}), dataset_uri, mode="overwrite")
    found = plan_erasure(made.snapshot, Subject.of_keys(pa.table({"id": [42]})))
    assert {branch.name: set(branch.holding) for branch in found.branches} == {"trial": {1}, "main": {1, 2}}
