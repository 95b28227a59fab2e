"""Operations of `LanceOperation`: the reference's classes and fields, and equal values when both read them back."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops import LanceOperation
from tests.interop.test_names import OUT_OF_SCOPE
from tests.interop.two_libraries import LIBRARIES, rows

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

FRAGMENTS = {lance_ops: lance_ops.LanceFragment, lance: import_module("lance.fragment").LanceFragment}
SCHEMAS = {library: import_module(f"{library.__name__}.schema").LanceSchema for library in (lance_ops, lance)}

ABSENT = {name.partition(".")[2] for names in OUT_OF_SCOPE.values() for name in names if name.startswith("LanceOp")}
CLASSES: dict[str, Any] = {
    name: theirs
    for name, theirs in vars(lance.LanceOperation).items()
    if inspect.isclass(theirs) and name not in ABSENT
}
OPERATIONS = {name for name, theirs in CLASSES.items() if issubclass(theirs, lance.LanceOperation.BaseOperation)}

ONLY_ON_THE_WIRE = {
    "Overwrite": ["config_upsert_values"],
    "RewrittenIndex": ["files"],
    "Update": ["inserted_rows", "compacted_sstables"],
}
"""Protobuf fields that the reference's classes drop; ours keep them as keyword arguments."""


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_a_class_has_the_reference_s_fields_in_its_order(name: str) -> None:
    ours, theirs = getattr(LanceOperation, name), CLASSES[name]
    assert inspect.isclass(ours)
    assert issubclass(ours, LanceOperation.BaseOperation) == (name in OPERATIONS)
    assert is_dataclass(ours) == is_dataclass(theirs)
    if is_dataclass(ours) and is_dataclass(theirs):
        positional = [field.name for field in fields(ours) if not field.kw_only]
        assert positional == [field.name for field in fields(theirs)]
        assert [field.name for field in fields(ours) if field.kw_only] == ONLY_ON_THE_WIRE.get(name, [])


def told(value: Any) -> Any:
    """Return a value of either library in a form that compares with the other's."""
    if isinstance(value, list | tuple):
        return [told(each) for each in value]
    if isinstance(value, Mapping):
        return {key: told(each) for key, each in value.items()}
    if hasattr(value, "to_json"):
        return value.to_json()
    if hasattr(value, "to_pyarrow"):
        return [(field.name(), field.id(), field.metadata, str(field.to_arrow())) for field in value.fields()]
    if hasattr(value, "is_dataset_root"):
        return value.id, value.name, value.path, value.is_dataset_root
    if hasattr(value, "uuid"):
        return str(value.uuid), value.name, list(value.fields), value.dataset_version
    if hasattr(value, "column_indices"):
        return value.path, list(value.fields), list(value.column_indices), value.file_size_bytes
    return {field.name: told(getattr(value, field.name)) for field in fields(value)} if is_dataclass(value) else value


def read_by_both(uri: str, version: int) -> tuple[str, dict[str, Any]]:
    """Return the name and fields of a version's operation; check that both libraries read the same."""
    ours, theirs = (library.dataset(uri).read_transaction(version).operation for library in (lance_ops, lance))
    name = type(theirs).__name__
    assert isinstance(ours, getattr(LanceOperation, name)) and isinstance(theirs, CLASSES[name])
    said = {field.name: told(getattr(theirs, field.name)) for field in fields(theirs)}
    assert {field: told(getattr(ours, field)) for field in said} == said
    return name, said


def replaced_file(library: Any, uri: str, column: str, field_id: int, values: list[int]) -> Any:
    """Write a file of one column, and return it as the library takes it."""
    path = Path(uri, "data", f"{library.__name__}.lance")
    table = pa.table({column: values})
    with lance.file.LanceFileWriter(str(path), table.schema, version="2.2") as writer:
        writer.write_batch(table)
    file = import_module(f"{library.__name__}.fragment").DataFile
    return file(path.name, (field_id,) if library is lance_ops else [field_id], (0,), 2, 2, path.stat().st_size)


@pytest.mark.parametrize(("library", "other"), LIBRARIES)
def test_operations_read_back_equal_the_committed_ones(
    library: Any, other: Any, dataset_uri: str, tmp_path: Path
) -> None:
    make, uri, create = library.LanceOperation, dataset_uri, FRAGMENTS[library].create
    made: dict[str, dict[str, Any]] = {}

    def commit(operation: Any, place: str = uri, read_version: int | None = None) -> Any:
        """Commit; check that both libraries read the operation back, except for fields that a commit decides."""
        before = None if isinstance(operation, make.Overwrite) else library.dataset(uri).version
        dataset = library.LanceDataset.commit(place, operation, read_version or before)
        name, said = read_by_both(place, dataset.version)
        assert type(operation) is getattr(make, name) and isinstance(operation, make.BaseOperation)
        assert other.dataset(place).version == dataset.version
        made[name] = said
        for field in said.keys() - {"new_schema", "fragments", "new_fragments", "initial_bases", "groups"}:
            assert told(getattr(operation, field)) == said[field], field
        return dataset

    base = library.DatasetBasePath(str(tmp_path / "base"), "side")
    dataset = commit(make.Overwrite(rows(0, 1).schema, [create(uri, rows(0, 9)), create(uri, rows(9, 19))], [base]))
    assert [told[1:] for told in made["Overwrite"]["initial_bases"]] == [("side", str(tmp_path / "base"), False)]
    dataset = commit(make.Append([create(uri, rows(20, 30))]))
    assert len(made["Append"]["fragments"]) == 1

    kept = {fragment.fragment_id: fragment.delete("id < 3 OR id >= 20") for fragment in dataset.get_fragments()}
    gone = [fragment_id for fragment_id, left in kept.items() if left is None]
    dataset = commit(make.Delete([left for left in kept.values() if left is not None], gone, "id < 3 OR id >= 20"))
    assert (made["Delete"]["deleted_fragment_ids"], made["Delete"]["predicate"]) == ([2], "id < 3 OR id >= 20")

    values = pa.table({"id": [4, 5], "s": ["four", "five"]})
    new, changed, offsets = dataset.get_fragments()[0].update_columns(values, "id", with_offsets=True)
    dataset = commit(make.Update([], [new], [], changed, [], "rewrite_columns", {0: offsets}))
    assert made["Update"]["fields_modified"] == [1] and set(made["Update"]["updated_fragment_offsets"]) == {0}
    dataset = commit(make.Update([1], new_fragments=[create(uri, rows(9, 12))], update_mode="rewrite_rows"))
    assert made["Update"]["removed_fragment_ids"] == [1] and made["Update"]["updated_fragment_offsets"] is None

    parts = [fragment.merge_columns({"w": "id + 1"}) for fragment in dataset.get_fragments()]
    dataset = commit(make.Merge([fragment for fragment, _ in parts], parts[0][1], True))
    assert [name for name, *_ in made["Merge"]["schema"]] == ["id", "s", "w"]
    file = replaced_file(library, uri, "w", 2, [*range(9)])
    dataset = commit(make.DataReplacement([make.DataReplacementGroup(0, file)]))
    commit(make.Project(SCHEMAS[library].from_pyarrow(rows(0, 1).schema), preserves_nullability=True))

    maps = make.UpdateMap({"a": "1"}), make.UpdateMap({"t": "x"}, replace=True), make.UpdateMap({"k": None})
    dataset = commit(make.UpdateConfig(*maps, {0: make.UpdateMap({"unit": "m"})}))
    commit(make.UpdateConfig(table_metadata_updates=make.UpdateMap({"t": "y"})))
    assert made["UpdateConfig"]["field_metadata_updates"] is None

    dataset.create_scalar_index("id", "BTREE")
    indexed = library.dataset(uri).version
    name, said = read_by_both(uri, indexed)
    assert name == "CreateIndex" and len(said["new_indices"]) == 1
    commit(make.CreateIndex([], library.dataset(uri).read_transaction(indexed).operation.new_indices))

    dataset = library.dataset(uri)
    group = make.RewriteGroup(
        [fragment.metadata for fragment in dataset.get_fragments()], [create(uri, dataset.to_table())]
    )
    commit(make.Rewrite([group], []))
    assert made["Rewrite"]["rewritten_indices"] == []
    dataset = commit(make.Restore(1))
    commit(make.Clone(True, None, 1, uri, None), str(tmp_path / "clone"), read_version=1)
    assert set(made) == OPERATIONS - {"BaseOperation"}

    for library_of in (lance_ops, lance):
        kinds = [type(transaction.operation).__name__ for transaction in library_of.dataset(uri).get_transactions(50)]
        assert len(kinds) == dataset.version and set(kinds) == OPERATIONS - {"BaseOperation", "Clone"}


@pytest.mark.parametrize(("library", "other"), LIBRARIES)
def test_an_operation_without_a_public_class_is_read_as_a_base_operation(
    library: Any, other: Any, dataset_uri: str, tmp_path: Path
) -> None:
    library.write_dataset(rows(0, 3), dataset_uri)
    library.dataset(dataset_uri).add_bases([library.DatasetBasePath(str(tmp_path / "base"), "side")])
    ours, theirs = (each.dataset(dataset_uri).read_transaction(2).operation for each in (lance_ops, lance))
    assert type(theirs) is lance.LanceOperation.BaseOperation
    assert isinstance(ours, LanceOperation.BaseOperation) and ours.name == "UpdateBases"
    assert not any(isinstance(ours, getattr(LanceOperation, name)) for name in OPERATIONS - {"BaseOperation"})
