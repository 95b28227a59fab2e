"""This library reads, applies and encodes pylance's transactions and manifests, and pylance reads ours."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap

import lance_ops
from lance_ops.committers import Committer, PutIfAbsentCommitter
from lance_ops.core.errors import CommitConflict, IncompatibleTransaction, RetryableConflict
from lance_ops.core.file_names import DATA_DIR, DELETIONS_DIR, data_file_name, new_deletion_file_id
from lance_ops.pb import table_pb2, transaction_pb2
from lance_ops.store import LocalStore
from lance_ops.table import (
    Fragment,
    decode_manifest,
    encode_deletion_vector,
    encode_manifest,
    inline_transaction,
    violations,
)
from lance_ops.transactions import (
    NO_TABLE,
    Append,
    ApplyContext,
    Delete,
    Operation,
    Overwrite,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    Transaction,
    UpdateConfig,
    UpdateMap,
    commit,
    next_manifest,
    read_manifest,
    read_version,
    versions_newest_first,
)
from tests.transactions.pylance_history import rows, write_history

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def lance() -> Any:
    """The reference implementation."""
    import lance

    return lance


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable"])
def life(lance: Any, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose history pylance wrote; tests do not change it."""
    folder = tmp_path_factory.mktemp("life") / "data.lance"
    write_history(lance, str(folder), stable_row_ids=request.param)
    return folder


def opened(folder: Path | str) -> tuple[LocalStore, Committer]:
    store = LocalStore(str(folder))
    return store, PutIfAbsentCommitter(store)


def without_positions(data: bytes) -> table_pb2.Manifest:
    """Return a manifest's message without the positions of its parts in the file."""
    position = int.from_bytes(data[-16:-8], "little")
    message = table_pb2.Manifest.FromString(data[position + 4 : -16])
    for name in ("index_section", "transaction_section", "transaction_section_deprecated", "version_aux_data"):
        message.ClearField(name)
    return message


class TestHistory:
    def test_every_operation_of_the_api_is_decoded(self, life: Path) -> None:
        names = [
            landed.transaction.operation.name for landed in versions_newest_first(*opened(life)) if landed.transaction
        ]

        assert len(names) == len(list((life / "_versions").glob("*.manifest")))
        assert set(names) == {*THEIRS, "ReserveFragments"}

    def test_manifests_round_trip(self, life: Path) -> None:
        for path in (life / "_versions").glob("*.manifest"):
            data = path.read_bytes()
            again = encode_manifest(decode_manifest(data, str(path)), inline_transaction(data, str(path)) or b"")

            assert without_positions(again) == without_positions(data)
            assert decode_manifest(again, "m") == decode_manifest(data, "m")

    def test_transactions_round_trip(self, life: Path) -> None:
        for path in (life / "_transactions").glob("*.txn"):
            data = path.read_bytes()
            again = Transaction.decode(data, str(path)).encode()

            message = transaction_pb2.Transaction.FromString
            assert message(again) == message(data)

    def test_the_inline_transaction_equals_the_file(self, life: Path) -> None:
        store, committer = opened(life)
        for landed in versions_newest_first(store, committer):
            inline = inline_transaction(committer.read(landed.version), "m")
            assert inline == store.get(f"_transactions/{landed.manifest.transaction_file}").to_pybytes()

    def test_manifests_break_no_invariant(self, life: Path) -> None:
        for landed in versions_newest_first(*opened(life)):
            assert violations(landed.manifest) == []

    def test_each_transaction_applied_here_gives_its_version(self, life: Path) -> None:
        store, committer = opened(life)
        before = NO_TABLE
        for version in committer.versions():
            landed = read_version(store, committer, version)
            assert landed.transaction is not None
            needed = landed.transaction.operation.needed_versions
            context = ApplyContext(
                manifests={old: read_manifest(store, committer, old) for old in needed},
                stable_row_ids=version == 1 and landed.manifest.uses_stable_row_ids,
            )

            made = next_manifest(before, landed.transaction, context, landed.manifest.timestamp_ns or 0)

            assert replace(made, writer_version=landed.manifest.writer_version) == landed.manifest
            before = landed.manifest

    def test_pylance_reads_manifests_that_were_encoded_here(self, lance: Any, life: Path, tmp_path: Path) -> None:
        copy = tmp_path / "copy.lance"
        shutil.copytree(life, copy)
        for path in (copy / "_versions").glob("*.manifest"):
            data = path.read_bytes()
            path.write_bytes(encode_manifest(decode_manifest(data, "m"), inline_transaction(data, "m") or b""))

        versions = [entry["version"] for entry in lance.dataset(str(copy)).versions()]
        for version in versions:
            ours, theirs = lance.dataset(str(copy), version=version), lance.dataset(str(life), version=version)
            ours.validate()
            assert ours.to_table(with_row_id=True) == theirs.to_table(with_row_id=True)
            assert [index.name for index in ours.describe_indices()] == [
                index.name for index in theirs.describe_indices()
            ]


class Ours:
    """Operations of this library on a table whose files pylance wrote, planned on one version."""

    def __init__(self, uri: str) -> None:
        self.store, self.committer = opened(uri)
        version = self.committer.latest()
        assert version is not None
        self.base = read_manifest(self.store, self.committer, version)

    def commit(self, operation: Operation) -> int:
        return commit(self.committer, self.store, Transaction(self.base.version, operation)).version

    def copied(self, fragment: Fragment) -> Fragment:
        """Return a fragment with the same rows in a file of its own."""
        name = data_file_name()
        self.store.copy(f"{DATA_DIR}/{fragment.files[0].path}", f"{DATA_DIR}/{name}")
        return Fragment(0, (replace(fragment.files[0], path=name),), physical_rows=fragment.physical_rows)

    def append(self) -> Append:
        return Append((self.copied(self.base.fragments[0]),))

    def delete(self, offset: int) -> Delete:
        fragment = self.base.fragments[0]
        deletion_file, data = encode_deletion_vector(BitMap([offset]), self.base.version, new_deletion_file_id())
        self.store.put(f"{DELETIONS_DIR}/{deletion_file.name(fragment.id)}", data)
        return Delete((replace(fragment, deletion_file=deletion_file),), (), "true")

    def rewrite(self) -> Rewrite:
        old = self.base.fragments[0]
        return Rewrite((RewriteGroup((old,), (self.copied(old),)),))

    def overwrite(self) -> Overwrite:
        return Overwrite((self.copied(self.base.fragments[0]),), self.base.schema)


OURS: dict[str, Callable[[Ours], Operation]] = {
    "Append": Ours.append,
    "Delete": lambda ours: ours.delete(1),
    "Rewrite": Ours.rewrite,
    "Overwrite": Ours.overwrite,
    "Restore": lambda ours: Restore(1),
    "UpdateConfig": lambda ours: UpdateConfig(UpdateMap({"ours": "1"})),
    "ReserveFragments": lambda ours: ReserveFragments(2),
}
THEIRS: dict[str, Callable[[Any], object]] = {
    "Append": lambda dataset: dataset.insert(rows(500, 510)),
    "Delete": lambda dataset: dataset.delete("a = 5"),
    "Update": lambda dataset: dataset.update({"b": "'x'"}, where="a = 6"),
    "Rewrite": lambda dataset: dataset.optimize.compact_files(),
    "Overwrite": lambda dataset: dataset.insert(rows(0, 5), mode="overwrite"),
    "CreateIndex": lambda dataset: dataset.create_scalar_index("a", "BTREE"),
    "Merge": lambda dataset: dataset.add_columns({"c": "a + 1"}),
    "Project": lambda dataset: dataset.drop_columns(["l"]),
    "Restore": lambda dataset: dataset.restore(),
    "UpdateConfig": lambda dataset: dataset.update_config({"theirs": "1"}),
}
# All touch fragment 0; deletions touch different rows. "-" is committed, "r" is retryable, "x" is incompatible, "b" is
# committed although the reference would give up.
AGAINST_THEIRS = """
                 Append Delete Update Rewrite Overwrite CreateIndex Merge Project Restore UpdateConfig
Append           -      -      -      -       x         -           -     -       x       -
Delete           -      -      -      b       x         -           r     -       x       -
Rewrite          -      b      b      r       x         r           r     -       x       -
Overwrite        -      -      -      -       r         -           -     -       -       -
Restore          -      -      -      -       -         -           -     -       -       -
UpdateConfig     -      -      -      -       -         -           -     -       -       -
ReserveFragments -      -      -      -       x         -           -     -       x       -
"""


def cells() -> list[tuple[str, str, str]]:
    header, *lines = AGAINST_THEIRS.split("\n")[1:-1]
    return [
        (line.split()[0], theirs, cell)
        for line in lines
        for theirs, cell in zip(header.split(), line.split()[1:], strict=True)
    ]


@pytest.fixture
def uri(lance: Any, dataset_uri: str) -> str:
    """A table that pylance wrote: two fragments of twenty rows, with the columns a, b and l."""
    lance.write_dataset(rows(0, 20), dataset_uri)
    lance.write_dataset(rows(20, 40), dataset_uri, mode="append")
    return dataset_uri


@pytest.mark.parametrize(("ours", "theirs", "cell"), cells())
def test_our_operation_after_pylance_committed_theirs(lance: Any, uri: str, ours: str, theirs: str, cell: str) -> None:
    planned = Ours(uri)
    operation = OURS[ours](planned)
    THEIRS[theirs](lance.dataset(uri))
    landed = planned.committer.latest() or 0
    before = lance.dataset(uri).count_rows()

    if cell in "-b":
        assert planned.commit(operation) == landed + 1
        dataset = lance.dataset(uri)
        dataset.validate()
        rows_after = {"Append": before + 20, "Delete": before - 1, "Overwrite": 20, "Restore": 20}.get(ours, before)
        assert dataset.to_table().num_rows == dataset.count_rows() == rows_after
        assert violations(read_manifest(planned.store, planned.committer, landed + 1)) == []
    else:
        with pytest.raises(RetryableConflict if cell == "r" else IncompatibleTransaction):
            planned.commit(operation)
        assert lance.dataset(uri).version == landed


def test_the_same_row_deleted_by_both_is_retryable(lance: Any, uri: str) -> None:
    planned = Ours(uri)
    operation = planned.delete(5)
    lance.dataset(uri).delete("a = 5")

    with pytest.raises(RetryableConflict, match="1 rows of fragment 0"):
        planned.commit(operation)


@pytest.mark.parametrize("ours", ["Append", "Delete", "UpdateConfig", "ReserveFragments"])
@pytest.mark.parametrize("theirs", ["Append", "Delete", "Update", "CreateIndex", "UpdateConfig"])
def test_pylance_rebases_over_our_commit(lance: Any, uri: str, ours: str, theirs: str) -> None:
    stale = lance.dataset(uri)
    planned = Ours(uri)
    planned.commit(OURS[ours](planned))

    THEIRS[theirs](stale)

    dataset = lance.dataset(uri)
    dataset.validate()
    expected = 40 + {"Append": 20, "Delete": -1}.get(ours, 0) + {"Append": 10, "Delete": -1}.get(theirs, 0)
    assert dataset.count_rows() == expected
    assert dataset.version == 4


@pytest.mark.parametrize("ours", ["Overwrite", "Rewrite"])
def test_pylance_finds_a_conflict_with_our_commit(lance: Any, uri: str, ours: str) -> None:
    stale = lance.dataset(uri)
    planned = Ours(uri)
    planned.commit(OURS[ours](planned))

    if ours == "Overwrite":
        with pytest.raises(OSError, match="ncompatible"):
            stale.create_scalar_index("a", "BTREE")
    else:
        stale.delete("a = 5")  # retried by pylance itself, on the rewritten fragment
        assert lance.dataset(uri).count_rows("a = 5") == 0
        assert lance.dataset(uri).count_rows() == 39


def test_pylance_opens_a_table_created_here(lance: Any, tmp_path: Path) -> None:
    source = tmp_path / "source.lance"
    lance.write_dataset(rows(0, 20), str(source))
    theirs, committer = opened(source)
    manifest = read_manifest(theirs, committer, 1)
    store, committer = opened(tmp_path / "ours.lance")
    file = manifest.fragments[0].files[0]
    store.put(f"{DATA_DIR}/{file.path}", theirs.get(f"{DATA_DIR}/{file.path}"))
    first = Overwrite((Fragment(0, (file,), physical_rows=20),), manifest.schema)

    commit(committer, store, Transaction(0, first), stable_row_ids=True)

    dataset = lance.dataset(store.uri)
    dataset.validate()
    assert dataset.to_table() == rows(0, 20)
    dataset.insert(rows(20, 30))
    dataset = lance.dataset(store.uri)
    assert dataset.to_table(with_row_id=True).column("_rowid").to_pylist() == list(range(30))
    assert dataset.has_stable_row_ids


def test_a_commit_message_is_read_by_pylance(lance: Any, uri: str) -> None:
    planned = Ours(uri)
    transaction = Transaction(2, planned.append(), transaction_properties={"__lance_commit_message": "hello"})
    commit(planned.committer, planned.store, transaction)

    read = lance.dataset(uri).read_transaction(3)
    assert read.uuid == transaction.uuid
    assert read.read_version == 2


def test_a_conflict_with_pylance_leaves_no_file_of_ours(lance: Any, uri: str) -> None:
    planned = Ours(uri)
    operation = planned.rewrite()
    lance.dataset(uri).create_scalar_index("a", "BTREE")
    before = {info.path for info in planned.store.list()}

    with pytest.raises(CommitConflict):
        planned.commit(operation)

    assert {info.path for info in planned.store.list()} == before


@pytest.mark.parametrize("left", [None, b"", b"\0" * 99, b"\x08\x01\x12\x24half"], ids=["none", "no", "zero", "half"])
def test_pylance_judges_our_versions_with_damaged_transaction_files(dataset_uri: str, left: bytes | None) -> None:
    import lance

    rows = pa.table({"a": [1, 2, 3]})
    lance_ops.write_dataset(rows, dataset_uri)
    stale, late = lance.dataset(dataset_uri), lance.dataset(dataset_uri)
    lance_ops.dataset(dataset_uri).delete("a = 2")
    (path,) = Path(dataset_uri, "_transactions").glob("1-*.txn")
    if left is None:
        path.unlink()
    else:
        path.write_bytes(left)

    assert lance.dataset(dataset_uri).read_transaction(2) is not None
    stale.insert(rows)
    with pytest.raises(OSError, match="conflict"):
        lance.LanceDataset.commit(
            dataset_uri, lance.LanceOperation.Delete([], [late.get_fragments()[0].fragment_id], "a > 0"), read_version=1
        )
    assert sorted(lance.dataset(dataset_uri).to_table()["a"].to_pylist()) == [1, 1, 2, 3, 3]
    assert lance_ops.dataset(dataset_uri).version == 3
