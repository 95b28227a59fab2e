"""Branches created by one library; the other reads, writes and branches them again."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import lance_ops
from lance_ops.errors import InvalidInput
from tests.interop.two_libraries import LIBRARIES, ids_read_by_both, rows, thinned

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop


def ids(uri: str, branch: str | None) -> list[int]:
    """The rows of a line's newest version that both libraries read."""
    ours, theirs = (each.dataset(uri).checkout_version((branch, None)) for each in (lance_ops, lance))
    return ids_read_by_both(ours, theirs)


@pytest.fixture
def source(tmp_path: Path, library: Any) -> Any:
    dataset = thinned(library, str(tmp_path / "source"))
    dataset.tags.create("t", 2)
    return dataset


@pytest.mark.parametrize(("library", "other"), LIBRARIES)
def test_a_branch_and_the_main_branch_change_independently(
    source: Any, library: Any, other: Any, tmp_path: Path
) -> None:
    uri = str(tmp_path / "source")
    branch = source.create_branch("dev/x", "t")
    assert branch.version == 2 and ids(uri, "dev/x") == list(range(5, 100))
    manifest = lance_ops.dataset(uri).checkout_version(("dev/x", 2)).snapshot.manifest
    assert manifest.branch == "dev/x" and manifest.reader_feature_flags == 1 | 16
    assert [(base.id, base.path, base.name) for base in manifest.base_paths] == [(0, uri, None)]

    theirs = other.dataset(uri).checkout_version(("dev/x", None))
    other.write_dataset(rows(100, 120), theirs, mode="append")
    library.dataset(uri).checkout_version(("dev/x", None)).delete("id < 10")
    assert ids(uri, "dev/x") == list(range(10, 120)) and ids(uri, "main") == list(range(5, 100))
    other.dataset(uri).delete("id >= 90")
    other.dataset(uri).checkout_version(("dev/x", None)).optimize.compact_files()
    assert ids(uri, "dev/x") == list(range(10, 120)) and ids(uri, None) == list(range(5, 90))
    assert len(list((tmp_path / "source/tree/dev/x/data").iterdir())) == 2

    listed = [each.dataset(uri).branches.list() for each in (library, other)]
    assert listed[0] == listed[1] and list(listed[0]) == ["dev/x"]
    ((begun_with, digits),) = listed[0]["dev/x"]["branch_identifier"]
    assert begun_with == 2 and len(digits) == 32


@pytest.mark.parametrize(("library", "other"), LIBRARIES)
def test_branches_of_branches_and_their_tags_are_read_by_both(
    source: Any, library: Any, other: Any, tmp_path: Path
) -> None:
    uri = str(tmp_path / "source")
    parent = source.create_branch("parent")
    library.write_dataset(rows(100, 110), parent, mode="append")
    parent = other.dataset(uri).checkout_version(("parent", 3))
    child = parent.create_branch("child", ("parent", 3))
    other.write_dataset(rows(110, 120), child, mode="append")
    assert ids(uri, "child") == list(range(5, 120))
    base_paths = {base.id: (base.path, base.name) for base in child.base_paths().values()}
    assert base_paths == {0: (uri, None), 1: (f"{uri}/tree/parent", "parent")}

    library.dataset(uri).tags.create("of-child", ("child", 4))
    for each in (library, other):
        dataset = each.dataset(uri)
        assert dataset.tags.list()["of-child"]["branch"] == "child"
        assert dataset.checkout_version("of-child").count_rows() == 115
        steps = dataset.branches.list()["child"]["branch_identifier"]
        assert [version for version, _ in steps] == [2, 3]
        assert [name for name, _ in dataset.branches.list_ordered()] == ["child", "parent"]
        with pytest.raises((InvalidInput, OSError)):
            dataset.branches.delete("parent")
    library.dataset(uri).tags.replace_metadata("of-child", {"a": "b"})
    assert other.dataset(uri).tags.list()["of-child"]["metadata"] == {"a": "b"}
    other.dataset(uri).tags.delete("of-child")
    library.dataset(uri).branches.replace_metadata("child", {"a": "b"})
    assert other.dataset(uri).branches.list()["child"]["metadata"] == {"a": "b"}
    library.dataset(uri).branches.delete("child")
    other.dataset(uri).branches.delete("parent")
    assert library.dataset(uri).branches.list() == {} and ids(uri, None) == list(range(5, 100))
    other.dataset(uri).create_branch("child", 1)
    assert ids(uri, "child") == list(range(100))


@pytest.mark.parametrize(("library", "other"), LIBRARIES)
def test_clean_up_of_one_branch_keeps_the_files_of_others(
    source: Any, library: Any, other: Any, tmp_path: Path
) -> None:
    uri = str(tmp_path / "source")
    library.dataset(uri).create_scalar_index("id", "BTREE")
    source.create_branch("parent", 3)
    parent = library.dataset(uri).checkout_version(("parent", None))
    library.write_dataset(rows(100, 120), parent, mode="append")
    other.dataset(uri).checkout_version(("parent", 4)).create_branch("child", ("parent", 4))
    library.write_dataset(rows(0, 1), uri, mode="overwrite")
    library.write_dataset(rows(0, 2), f"{uri}/tree/parent", mode="overwrite")
    source.tags.delete("t")
    for line in (None, "parent", "child"):
        cleaned = lance_ops.dataset(uri).checkout_version((line, None))
        cleaned.cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert ids(uri, None) == [0] and ids(uri, "parent") == [0, 1] and ids(uri, "child") == list(range(5, 120))
    explained = lance_ops.dataset(uri).explain_cleanup_old_versions(timedelta(0))
    assert explained.referenced_branches == ("parent",) and explained.stats.bytes_removed == 0
    library.dataset(uri).branches.delete("child")
    library.dataset(uri).branches.delete("parent")
    stats = lance_ops.dataset(uri).cleanup_old_versions(timedelta(0))
    assert stats.data_files_removed == 3 and ids(uri, None) == [0]
