"""The texts of `lance_ops.debug` name what the reference's name, for tables of either library."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops import debug

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

REFERENCE = import_module("lance.debug")
TABLE = pa.table({"a": [1, 2, 3], "s": [{"x": 1, "y": "é"}] * 3})


@pytest.fixture(params=[lance_ops, lance], ids=["written here", "written there"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    library: Any = request.param
    uri = str(tmp_path / "t")
    dataset = library.write_dataset(TABLE, uri)
    dataset = library.write_dataset(TABLE, uri, mode="append")
    dataset.delete("a = 2")
    dataset.create_scalar_index("a", "BTREE")
    dataset.add_columns({"b": "a + 1"})
    return uri


def both(uri: str) -> list[tuple[Any, Any]]:
    return [(debug, lance_ops.dataset(uri)), (REFERENCE, lance.dataset(uri))]


def values_of(text: str, *names: str) -> list[str]:
    """Return the plain values of these members, in the text's order."""
    return re.findall(rf"\b(?:{'|'.join(names)}): (?:Some\(\s*)?([^\s,(\[{{]+)", text)


def test_a_schema_has_the_names_and_ids_of_all_fields(table: str) -> None:
    ours, theirs = (module.format_schema(dataset) for module, dataset in both(table))
    assert ours.startswith("Schema {")
    assert values_of(ours, "name") == values_of(theirs, "name") == ['"a"', '"s"', '"x"', '"y"', '"b"']
    assert sorted(values_of(ours, "id", "parent_id")) == sorted(values_of(theirs, "id", "parent_id"))
    assert values_of(ours, "logical_type") == ['"int64"', '"struct"', '"int64"', '"string"', '"int64"']


def test_a_manifest_has_the_fragments_and_their_files(table: str) -> None:
    ours, theirs = (module.format_manifest(dataset) for module, dataset in both(table))
    assert ours.startswith(
        "Manifest {\n    version: 5,\n    schema: Schema {\n        fields: [\n            Field {\n"
    )
    assert ours.endswith("\n}")
    for name in ("physical_rows", "num_deleted_rows", "max_fragment_id", "transaction_file", "reader_feature_flags"):
        assert values_of(ours, name) == values_of(theirs, name) != []
    files = [name for name in values_of(ours, "path") if "page_" not in name]  # theirs lists no indices
    assert files == values_of(theirs, "path")
    assert "fragment_bitmap: [0-1]," in ours


def test_a_fragment_has_the_fields_of_each_file(table: str) -> None:
    texts = [module.format_fragment(dataset.get_fragments()[0].metadata, dataset) for module, dataset in both(table)]
    ours, theirs = texts
    assert ours.startswith("Fragment {\n    id: 0,\n    files: [\n        DataFile {\n")
    assert values_of(ours, "name") == values_of(theirs, "name") == ['"a"', '"s"', '"x"', '"y"', '"b"']
    assert values_of(ours, "path") == values_of(theirs, "path")


def test_transactions_are_listed_newest_first(table: str) -> None:
    for module, dataset in both(table):
        texts = module.list_transactions(dataset)
        assert all(text.startswith("Transaction {\n    read_version: ") for text in texts)
        names = [re.findall(r"^    operation: (\w+) \{", text, re.MULTILINE) for text in texts]
        assert names == [["Merge"], ["CreateIndex"], ["Delete"], ["Append"], ["Overwrite"]]
        assert [values_of(text, "read_version")[0] for text in texts] == ["4", "3", "2", "1", "0"]
        assert (
            module.list_transactions(dataset, 2) == module.list_transactions(dataset, max_transactions=2) == texts[:2]
        )
    assert 'predicate: "a = 2",' in (debug.list_transactions(lance_ops.dataset(table))[2] or "")


def test_a_text_shows_no_password(tmp_path: Path) -> None:
    dataset = lance_ops.write_dataset(TABLE, tmp_path / "t")
    dataset.update_config({"source": "https://user:pa55word@host/x?token=t0ken"})
    for text in (debug.format_manifest(dataset), *debug.list_transactions(dataset)):
        assert text is not None
        assert "pa55word" not in text
        assert "t0ken" not in text
    assert "source" in debug.format_manifest(dataset)
