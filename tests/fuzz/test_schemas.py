"""Any schema is refused with an error of this library, or makes tables that are read as they were written."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import lance_ops
from lance_ops.errors import InvalidInput
from tests.fuzz.schemas.history import plain_values, run_history
from tests.fuzz.schemas.strategies import NAMES, fields, tables

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop


def is_read_alike(uri: str) -> None:
    """Check that both libraries read the same rows."""
    theirs, ours = lance.dataset(uri), lance_ops.dataset(uri)
    assert theirs.count_rows() == ours.count_rows()
    assert theirs.schema.names == ours.schema.names
    assert plain_values(theirs.to_table()) == plain_values(ours.to_table())


@pytest.mark.parametrize(("version", "least"), [("0.1", 1 / 4), ("2.0", 1 / 3), ("2.1", 1 / 3), ("2.2", 1 / 3)])
def test_what_is_committed_of_any_schema_is_read_by_both_libraries(version: str, least: float) -> None:
    created = []

    @settings(max_examples=40, suppress_health_check=list(HealthCheck))
    @given(table=tables(), name=NAMES, added=fields())
    def check(table: pa.Table, name: str, added: pa.Field) -> None:
        with tempfile.TemporaryDirectory() as folder:
            outcome = run_history(Path(folder), table, version, name, added, is_read_alike)
        created.append("create" in outcome.committed)

    check()
    assert sum(created) > least * len(created), "too many schemas are refused: the test sees little"


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([pa.field("a", pa.int64(), metadata={"ARROW:extension:name": "arrow.uuid"})]),
        pa.schema([pa.field("a", pa.int64())], {"ARROW:extension:name": "arrow.json"}),
    ],
    ids=["of a column", "of the schema"],
)
def test_an_extension_type_that_does_not_fit_is_refused(tmp_path: Path, schema: pa.Schema) -> None:
    with pytest.raises(InvalidInput, match="extension"):
        lance_ops.write_dataset(schema.empty_table(), tmp_path / "t")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
