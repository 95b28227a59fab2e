"""Small methods of a dataset answer as the reference's do."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import CorruptFile, DatasetNotFound, InvalidInput
from lance_ops.maintenance.cleanup.auto_cleanup import configured_options

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

ROWS = pa.table({"id": range(10), "v": [float(i) for i in range(10)], "s": [f"s{i}" for i in range(10)]})


@pytest.fixture
def uri(tmp_path: Path) -> str:
    dataset = lance_ops.write_dataset(ROWS, tmp_path / "table", max_rows_per_file=4)
    dataset.delete("id = 3")
    return dataset.uri


def both(uri: str, **options: Any) -> tuple[Any, Any]:
    return lance_ops.dataset(uri, **options), lance.dataset(uri, **options)


@pytest.mark.parametrize("columns", [None, ["s", "id"], {"twice": "v * 2"}], ids=["all", "some", "computed"])
@pytest.mark.parametrize("randomize_order", [True, False])
def test_the_same_seed_draws_the_same_sample(uri: str, columns: Any, randomize_order: bool) -> None:
    samples = []
    for dataset in both(uri):
        random.seed(7)
        samples.append(dataset.sample(5, columns, randomize_order))
    ours, theirs = samples
    assert ours.equals(theirs) and ours.num_rows == 5
    if not randomize_order and columns == ["s", "id"]:
        assert ours["id"].to_pylist() == sorted(ours["id"].to_pylist())


def test_a_sample_larger_than_the_table_is_refused(uri: str) -> None:
    ours, theirs = both(uri)
    assert ours.sample(9).num_rows == theirs.sample(9).num_rows == 9
    assert ours.sample(0).num_rows == theirs.sample(0).num_rows == 0
    for num_rows in (10, -1):
        with pytest.raises(ValueError, match="negative"):
            theirs.sample(num_rows)
        with pytest.raises(InvalidInput, match=rf"sample of {num_rows} rows cannot be drawn from 9"):
            ours.sample(num_rows)


DEFAULTS: dict[str, dict[str, Any]] = {
    "none": {},
    "columns": {"columns": ["v", "id"]},
    "filter": {"filter": "id > 4"},
    "limit": {"limit": 2, "offset": 1},
    "row ids": {"with_row_id": True, "columns": ["id"]},
    "batch size": {"batch_size": 2},
}


@pytest.mark.parametrize("defaults", DEFAULTS.values(), ids=DEFAULTS)
def test_default_scan_options_apply_to_scans_only(uri: str, defaults: dict[str, Any]) -> None:
    ours, theirs = both(uri, default_scan_options=defaults)
    assert ours.schema == theirs.schema
    assert ours.to_table().equals(theirs.to_table())
    sizes = [len(batch) for batch in ours.to_batches()]
    assert max(sizes) <= defaults.get("batch_size", 10) and sum(sizes) == ours.to_table().num_rows
    assert ours.head(3).equals(theirs.head(3))
    explicit: dict[str, Any] = {"columns": ["s"], "filter": "id < 6", "limit": 3}
    assert ours.to_table(**explicit).equals(theirs.to_table(**explicit))
    assert ours.count_rows() == theirs.count_rows() == 9
    assert ours.count_rows("id > 7") == theirs.count_rows("id > 7") == 2
    assert ours.take([0, 5]).equals(theirs.take([0, 5]))
    assert ours.get_fragments()[0].to_table().equals(theirs.get_fragments()[0].to_table())
    assert ours.checkout_version(1).to_table().equals(theirs.checkout_version(1).to_table())
    assert pickle.loads(pickle.dumps(ours)).to_table().equals(ours.to_table())


def test_an_unknown_default_is_refused_by_a_scan(uri: str) -> None:
    ours, theirs = both(uri, default_scan_options={"colums": ["id"]})
    with pytest.raises(ValueError, match="colums"):
        theirs.to_table()
    with pytest.raises(InvalidInput, match="colums"):
        ours.to_table()


def test_a_branch_keeps_the_handle_s_default_scan_options(uri: str) -> None:
    ours = lance_ops.dataset(uri, default_scan_options={"columns": ["v"]}).create_branch("side")
    theirs = lance.dataset(uri, default_scan_options={"columns": ["v"]}).create_branch("other")
    assert ours.to_table().equals(theirs.to_table()) and ours.schema.names == ["v"]


def test_versions_and_fragments_are_numbered_alike(uri: str) -> None:
    for version in (1, 2):
        ours, theirs = both(uri, version=version)
        mine, other = ours.get_version(), theirs.get_version()
        assert (mine["version"], mine["metadata"]) == (other["version"], other["metadata"])
        assert mine == ours.versions()[-1] if version == 2 else mine == ours.checkout_version(2).versions()[0]
        assert ours.version_refs() == theirs.version_refs() == [{"version": 1}, {"version": 2}]
        assert list(ours.fragment_ids()) == list(theirs.fragment_ids()) == [0, 1, 2]


@pytest.mark.parametrize("given", [None, {"allow_http": "true"}])
def test_storage_options_returns_the_given_options(uri: str, given: dict[str, str] | None) -> None:
    ours, theirs = both(uri, storage_options=given)
    assert ours.initial_storage_options == ours.latest_storage_options() == given
    for reference in (theirs.initial_storage_options, theirs.latest_storage_options()):
        added = {} if given is None else {"user_agent": reference["user_agent"]}  # it makes itself known
        assert (reference or {}) == (given or {}) | added


def test_has_index_is_true_once_an_index_exists(uri: str) -> None:
    for expected in (False, True):
        ours, theirs = both(uri)
        assert ours.has_index is theirs.has_index is expected
        if not expected:
            ours.create_scalar_index("id", "BTREE")


def test_enabling_and_disabling_auto_cleanup_sets_the_reference_s_keys(uri: str, tmp_path: Path) -> None:
    ours, theirs = lance_ops.dataset(uri), lance.write_dataset(ROWS, tmp_path / "theirs")
    for dataset in (ours, theirs):
        dataset.optimize.enable_auto_cleanup({"interval": 3, "older_than_seconds": 90})
    assert ours.config().keys() == theirs.config().keys() and len(ours.config()) == 2
    assert configured_options(ours.config()) == configured_options(theirs.config())
    for dataset in (ours, theirs):
        dataset.optimize.disable_auto_cleanup()
    assert ours.config() == theirs.config() == {}
    assert lance.dataset(uri).version == ours.version == 4


def test_a_fragment_validates_its_own_files(uri: str) -> None:
    ours, theirs = (dataset.get_fragments() for dataset in both(uri))
    for fragment in (*ours, *theirs):
        fragment.validate()
    (file,) = ours[1].data_files()
    path = Path(uri) / "data" / file.path
    path.write_bytes(path.read_bytes()[:-1])
    ours[0].validate()
    with pytest.raises(CorruptFile, match=file.path):
        lance_ops.dataset(uri).get_fragments()[1].validate()
    with pytest.raises(Exception, match=r".+"):  # of the reference, whatever it raises
        lance.dataset(uri).get_fragments()[1].validate()


def test_the_dataset_and_fragment_constructors_work_as_in_the_reference(uri: str) -> None:
    ours, theirs = (library.LanceDataset(uri, 1) for library in (lance_ops, lance))
    assert (ours.version, ours.count_rows()) == (theirs.version, theirs.count_rows()) == (1, 10)
    ours.tags.create("first", 1)
    assert lance_ops.LanceDataset(uri, "first", default_scan_options={"columns": ["s"]}).schema.names == ["s"]
    for library in (lance_ops, lance):
        dataset = library.LanceDataset(uri)
        fragment = library.LanceFragment(dataset, 1)
        assert fragment.fragment_id == 1 and fragment.to_table()["id"].to_pylist() == [4, 5, 6, 7]
        with pytest.raises((InvalidInput, AttributeError)):
            library.LanceFragment(dataset, 99)
        with pytest.raises(ValueError, match="fragment"):
            library.LanceFragment(dataset, None)
        for name in ("physical_schema", "partition_expression"):
            with pytest.raises(NotImplementedError):
                getattr(fragment, name)
    with pytest.raises(DatasetNotFound):
        lance_ops.LanceDataset(f"{uri}-absent")


@pytest.mark.parametrize("with_row_address", [None, True])
def test_a_session_takes_rows_of_a_fragment(uri: str, with_row_address: bool | None) -> None:
    for fragment_id in (0, 1):
        taken = [
            library.LanceFragment(library.dataset(uri), fragment_id)
            .open_session(["s", "id"], with_row_address=with_row_address)
            .take([0, 2])
            for library in (lance_ops, lance)
        ]
        assert taken[0].equals(taken[1]) and taken[0].num_rows == 2
