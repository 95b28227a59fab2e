"""Hostile tables and names that try to reach files outside the root, other servers or secrets."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import lance_ops
from lance_ops import DatasetBasePath, LanceDataset
from lance_ops.blobs.blob_reader import BlobReader
from lance_ops.committers import open_root
from lance_ops.core.blob_types import DESCRIPTOR, BlobKind
from lance_ops.core.file_names import check_branch_name, check_index_name, check_reference_name
from lance_ops.errors import CorruptFile, InvalidInput, LanceOpsError, UnsafePath
from lance_ops.maintenance.compaction.compaction_plan import CompactionOptions, plan_compaction
from lance_ops.maintenance.ingest import IngestBatch, RawFile
from lance_ops.maintenance.ingest.planning import plan_ingest
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.snapshot.snapshot_reference import SnapshotReference
from lance_ops.store import MemoryStore, open_store
from lance_ops.table import BasePath, ExternalFile, IndexFile, Manifest, encode_manifest

NOW = timedelta(0)
SECRET = "hunter2-hunter2"
OUTSIDE = "kept safe"


@pytest.fixture
def dataset(dataset_uri: str, tmp_path: Path) -> Iterator[LanceDataset]:
    """Return a table of three versions; a file beside its root must still exist at the end."""
    secret = tmp_path / "secret"
    secret.write_text(OUTSIDE)
    made = lance_ops.write_dataset(pa.table({"id": range(10)}), dataset_uri)
    made.insert(pa.table({"id": range(10)}))
    made.delete("id = 3")
    yield made
    assert secret.read_text() == OUTSIDE


def forged(dataset: LanceDataset, change: Callable[[Manifest], Manifest], version: int | None = None) -> LanceDataset:
    """Return the table with another manifest for a version."""
    snapshot = dataset.snapshot if version is None else dataset.snapshot.at(version)
    path = Path(snapshot.uri, snapshot.committer.location(snapshot.version))
    path.write_bytes(encode_manifest(change(snapshot.manifest), b""))
    return lance_ops.dataset(snapshot.uri)


class TestPaths:
    @pytest.mark.parametrize("name", ["../../secret", "/etc/passwd", "a/../../../secret", "s3://x/y", "a\0b"])
    def test_a_transaction_file_outside_its_folder_is_refused(self, dataset: LanceDataset, name: str) -> None:
        forged(dataset, lambda manifest: replace(manifest, transaction_file=name), 2)
        opened = lance_ops.dataset(dataset.uri)
        with pytest.raises(UnsafePath):
            opened.read_transaction(2)
        with pytest.raises(UnsafePath):
            opened.cleanup_old_versions(NOW, delete_unverified=True)
        assert opened.count_rows() == 18

    @pytest.mark.parametrize("path", ["/a/../../etc", "..", "file:///a/../b", "s3://b/../c", "a\0b", "x\\..\\y"])
    def test_an_unsafe_base_path_is_refused(self, dataset: LanceDataset, path: str) -> None:
        with pytest.raises(UnsafePath, match="base path 1"):
            forged(dataset, lambda manifest: replace(manifest, base_paths=(BasePath(1, path),)))

    def test_clean_up_removes_nothing_outside_the_root(self, dataset: LanceDataset, tmp_path: Path) -> None:
        fragment = dataset.snapshot.fragments[0]
        stolen = replace(fragment, files=(replace(fragment.files[0], path="secret", base_id=1),))
        bases = (BasePath(1, str(tmp_path)), BasePath(2, str(tmp_path), is_dataset_root=True))
        forged(
            dataset,
            lambda manifest: replace(
                manifest, base_paths=bases, fragments=manifest.fragments.with_changes({fragment.id: stolen})
            ),
            2,
        )
        opened = lance_ops.dataset(dataset.uri)
        opened.cleanup_old_versions(NOW, delete_unverified=True)
        assert [version["version"] for version in opened.versions()] == [3]

    def test_a_manifest_with_another_version_number_is_refused(self, dataset: LanceDataset) -> None:
        with pytest.raises(CorruptFile, match="has version 99"):
            forged(dataset, lambda manifest: replace(manifest, version=99))

    @pytest.mark.parametrize("folder", ["_versions", "_transactions", "_deletions", "data"])
    def test_a_folder_that_leads_out_of_the_root_is_refused(
        self, dataset: LanceDataset, tmp_path: Path, folder: str
    ) -> None:
        Path(dataset.uri, folder).rename(tmp_path / "moved")
        Path(dataset.uri, folder).symlink_to(tmp_path / "moved")
        kept = {path.name for path in (tmp_path / "moved").iterdir()}
        for use in (
            lambda: lance_ops.dataset(dataset.uri).to_table(),
            dataset.snapshot.latest,
            lambda: dataset.insert(pa.table({"id": [1]})),
            lambda: dataset.cleanup_old_versions(NOW, delete_unverified=True),
        ):
            with suppress(UnsafePath):
                use()
        assert {path.name for path in (tmp_path / "moved").iterdir()} == kept
        with pytest.raises(UnsafePath, match=r"out of the root|symbolic link"):
            dataset.delete("id = 5")

    @pytest.mark.parametrize(
        "uri",
        [
            "http://169.254.169.254/latest/meta-data",
            "ftp://host/x",
            "github://o:r@m/x",
            "zip://x::/tmp/y.zip",
        ],
    )
    def test_an_external_blob_is_read_from_supported_stores_only(self, dataset: LanceDataset, uri: str) -> None:
        with pytest.raises(UnsafePath, match="not an allowed location"):
            blob_at(dataset.snapshot, uri)

    @pytest.mark.parametrize("uri", ["/etc/passwd", "file:///etc/passwd", "memory://x/y"])
    def test_a_remote_table_cannot_read_local_files(self, dataset: LanceDataset, uri: str) -> None:
        root = open_root("s3://bucket/table", {"region": "x"})
        remote = replace(dataset.snapshot, store=root.store, committer=root.committer)
        with pytest.raises(UnsafePath, match="not an allowed location"):
            blob_at(remote, uri)


def blob_at(snapshot: Snapshot, uri: str) -> object:
    """Read a blob that a data file says is at a URI."""
    described = pa.array(
        [{"kind": BlobKind.EXTERNAL, "position": 0, "size": 1, "blob_id": 0, "blob_uri": uri}], pa.struct(DESCRIPTOR)
    )
    return BlobReader(snapshot).locate(snapshot.schema.fields[0], described, pa.array([0], pa.uint64()).to_numpy())


class TestCopies:
    @pytest.mark.parametrize("content", [b"", b"key", OUTSIDE.encode() * 100])
    def test_a_deep_clone_copies_no_file_that_is_not_a_lance_file(
        self, dataset: LanceDataset, tmp_path: Path, content: bytes
    ) -> None:
        (tmp_path / "private").mkdir()
        (tmp_path / "private" / "id_rsa").write_bytes(content)
        fragment = dataset.snapshot.fragments[0]
        stolen = replace(fragment, files=(replace(fragment.files[0], path="id_rsa", base_id=1, file_size_bytes=0),))
        hostile = forged(
            dataset,
            lambda manifest: replace(
                manifest,
                base_paths=(BasePath(1, str(tmp_path / "private")),),
                fragments=manifest.fragments.with_changes({fragment.id: stolen}),
            ),
        )
        copy = tmp_path / "copy"
        with pytest.raises(CorruptFile, match="id_rsa"):
            hostile.deep_clone(str(copy), hostile.version)
        assert not [path for path in copy.rglob("*") if path.is_file()]


class TestBranches:
    """A manifest in a folder `tree/dev` says that it is the branch `dev` of the dataset above the folder."""

    VERBS: ClassVar[dict[str, Callable[[LanceDataset], object]]] = {
        "create a tag": lambda table: table.tags.create("t"),
        "move a tag": lambda table: table.tags.update("t", 1),
        "remove a tag": lambda table: table.tags.delete("t"),
        "describe a tag": lambda table: table.tags.replace_metadata("t", {"a": "b"}),
        "create a branch": lambda table: table.create_branch("other"),
        "remove a branch": lambda table: table.branches.delete("victim"),
        "describe a branch": lambda table: table.branches.replace_metadata("victim", {"a": "b"}),
    }

    @pytest.mark.parametrize("verb", list(VERBS))
    def test_a_false_branch_writes_and_removes_nothing_above_its_root(self, tmp_path: Path, verb: str) -> None:
        above = lance_ops.write_dataset(pa.table({"id": [1]}), str(tmp_path / "above"))
        above.create_branch("victim")
        above.tags.create("t")
        made = lance_ops.write_dataset(pa.table({"id": [1]}), f"{above.uri}/tree/dev")
        hostile = forged(made, lambda manifest: replace(manifest, branch="dev"))
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        with pytest.raises(UnsafePath, match="no such branch"):
            self.VERBS[verb](hostile)
        assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before

    def test_a_true_branch_is_named_and_tagged(self, dataset: LanceDataset) -> None:
        branch = dataset.create_branch("dev")
        branch.tags.create("on-dev")
        assert list(dataset.tags.list()) == ["on-dev"]


class TestNames:
    @given(st.text(max_size=20))
    @example("../../secret")
    @example("a/../b")
    @example("%2e%2e%2fx")
    @example("x.lock")
    @example("main")
    def test_an_allowed_name_is_a_single_file_in_its_folder(self, name: str) -> None:
        store = MemoryStore()
        dataset = lance_ops.write_dataset(pa.table({"id": [1]}), store.uri)
        before = {info.path for info in store.list()}
        for create, folder, is_branch in (
            (dataset.tags.create, "_refs/tags/", False),
            (dataset.create_branch, "_refs/branches/", True),
        ):
            try:
                create(name)
            except InvalidInput:
                assert {info.path for info in store.list()} == before
                continue
            made = {info.path for info in store.list()} - before
            noted = {path for path in made if path.startswith("_refs/")}
            assert len(noted) == 1 and all("/" not in path.removeprefix(folder) for path in noted)
            assert all(path.startswith(f"tree/{name}/") for path in made - noted) or not is_branch
            (dataset.branches if is_branch else dataset.tags).delete(name)
            before = {info.path for info in store.list()}

    @pytest.mark.parametrize("check", [check_reference_name, check_branch_name, check_index_name])
    @pytest.mark.parametrize("name", ["", "a\0b", "a\nb", "\x1b[2J"])
    def test_no_name_is_empty_or_holds_control_characters(self, check: Callable[[str], str], name: str) -> None:
        with pytest.raises(InvalidInput, match="name"):
            check(name)

    @pytest.mark.parametrize("name", ["__lance_frag_reuse", "__lance_mem_wal", "a\x00b", ""])
    def test_an_index_cannot_have_a_reserved_name(self, dataset: LanceDataset, name: str) -> None:
        with pytest.raises(InvalidInput, match="index name"):
            dataset.create_scalar_index("id", "BTREE", name)
        assert not dataset.list_indices()

    @pytest.mark.parametrize("name", ["..%2F..%2Fsecret", "%2Fetc", "a%2F%2Fb", "main"])
    def test_a_branch_file_with_a_forbidden_name_is_refused(self, dataset: LanceDataset, name: str) -> None:
        store = dataset.snapshot.store
        store.put(f"_refs/branches/{name}.json", b'{"parentVersion": 1}')
        for look in (dataset.branches.list, lambda: dataset.cleanup_old_versions(NOW)):
            with pytest.raises(InvalidInput, match="branch name"):
                look()

    @pytest.mark.parametrize("branch", ["../../secret", "/etc", "a//b", "a\0b"])
    def test_a_tag_or_parent_with_a_forbidden_branch_name_is_corrupt(self, dataset: LanceDataset, branch: str) -> None:
        text = branch.replace("\0", "\\u0000")
        dataset.snapshot.store.put("_refs/tags/t.json", f'{{"version": 1, "branch": "{text}"}}'.encode())
        with pytest.raises(CorruptFile, match=r"t\.json"):
            dataset.checkout_version("t")
        note = f'{{"parentVersion": 1, "parentBranch": "{text}"}}'.encode()
        dataset.snapshot.store.put("_refs/branches/b.json", note)
        with pytest.raises(CorruptFile, match=r"b\.json"):
            dataset.branches.list()

    def test_a_hostile_branch_in_a_manifest_is_ignored(self, dataset: LanceDataset, tmp_path: Path) -> None:
        opened = forged(dataset, lambda manifest: replace(manifest, branch="../../secret"))
        opened.tags.create("t")
        assert Path(dataset.uri, "_refs/tags/t.json").is_file() and opened.branches.list() == {}


class TestSecrets:
    OPTIONS: ClassVar = {"aws_secret_access_key": SECRET, "base_1.account_key": SECRET, "ignored": "x"}

    def test_secrets_are_in_no_repr_of_tables_and_plans(self, dataset: LanceDataset) -> None:
        opened = lance_ops.dataset(dataset.uri, storage_options=self.OPTIONS)
        snapshot = opened.snapshot
        raw = Path(dataset.uri).with_name("raw.parquet")
        pq.write_table(pa.table({"id": [1]}), raw)
        ingest = plan_ingest(
            dataset.uri,
            [IngestBatch("day", (RawFile(str(raw), raw.stat().st_size, "token"),))],
            storage_options=self.OPTIONS,
            raw_storage_options=self.OPTIONS,
        )
        compaction = plan_compaction(snapshot, CompactionOptions())
        root = open_root(dataset.uri, self.OPTIONS)
        for value in (
            opened,
            snapshot,
            root,
            root.committer,
            SnapshotReference.of(snapshot),
            opened.get_fragments(),
            opened.scanner(filter="id > 3"),
            opened.scanner(filter="id > 3").explain_plan(),
            opened.optimize,
            opened.tags,
            compaction,
            *compaction.tasks,
            ingest,
            *ingest.tasks,
        ):
            assert SECRET not in repr(value) + str(value), type(value)
            assert SECRET not in f"{value!r}"
        assert compaction.tasks and ingest.tasks
        assert pickle.loads(pickle.dumps(compaction.tasks[0])).snapshot.storage_options == self.OPTIONS

    def test_secrets_are_in_no_file_and_no_log(self, dataset_uri: str, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.DEBUG):
            made = lance_ops.write_dataset(pa.table({"id": range(10)}), dataset_uri, storage_options=self.OPTIONS)
            made.add_bases([DatasetBasePath("/elsewhere")])
            made.create_scalar_index("id", "BTREE")
            made.insert(pa.table({"id": range(10)}), transaction_properties={"lance_ops.batch.day": "t"})
            made.tags.create("t")
            made.create_branch("dev").delete("id = 1")
            made.shallow_clone(f"{dataset_uri}-copy", made.version)
            made.optimize.compact_files()
            made.cleanup_old_versions(NOW)
        files = [path for path in Path(dataset_uri).parent.rglob("*") if path.is_file()]
        assert len(files) > 15
        assert not [path for path in files if SECRET.encode() in path.read_bytes()]
        assert SECRET not in caplog.text

    @pytest.mark.parametrize(
        "uri", [f"s3://key:{SECRET}@bucket/x", f"ftp://user:{SECRET}@host/x", f"gs://:{SECRET}@bucket"]
    )
    def test_a_uri_with_a_password_is_refused(self, dataset: LanceDataset, uri: str) -> None:
        for name in (
            lambda: open_store(uri),
            lambda: lance_ops.dataset(uri),
            lambda: dataset.add_bases([DatasetBasePath(uri)]),
            lambda: lance_ops.write_dataset(
                pa.table({"id": [1]}), f"{dataset.uri}-2", initial_bases=[DatasetBasePath(uri)]
            ),
            lambda: dataset.shallow_clone(uri, 1),
        ):
            with pytest.raises(InvalidInput, match="password") as caught:
                name()
            assert SECRET not in "".join(traceback.format_exception(caught.value))

    def test_an_unknown_option_is_named_without_its_value(self, dataset: LanceDataset) -> None:
        for options in ({"aws_secret": SECRET}, {"aws_secret_access_key": [SECRET]}):
            with pytest.raises(LanceOpsError) as caught:
                lance_ops.dataset("s3://bucket/x", storage_options=options)  # type: ignore[arg-type]  # as users may
            assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_nothing_on_disk_is_a_pickle(dataset: LanceDataset, tmp_path: Path) -> None:
    @lance_ops.batch_udf(output_schema=pa.schema([("double", pa.int64())]), checkpoint_file=tmp_path / "checkpoint")
    def double(batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.column("id")[0].as_py() == 0 and len(seen) > 0:
            raise ArithmeticError
        seen.append(batch.num_rows)
        return pa.record_batch([pa.compute.multiply(batch.column("id"), 2)], ["double"])

    seen: list[int] = []
    with pytest.raises(ArithmeticError):
        dataset.add_columns(double, batch_size=4)
    dataset.create_scalar_index("id", "BTREE")
    dataset.insert(pa.table({"id": [1]}), transaction_properties={"lance_ops.batch.day": "t"})
    dataset.optimize.compact_files()
    dataset.cleanup_old_versions(NOW)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 10 and (tmp_path / "checkpoint").is_file()
    for path in files:
        with pytest.raises((pickle.UnpicklingError, EOFError, ValueError, KeyError, IndexError, TypeError)):
            assert pickle.loads(path.read_bytes()) is None  # bytes that happen to be an opcode make no object
        assert not path.read_bytes().startswith(b"\x80"), path


def test_a_fragment_with_a_path_outside_the_root_cannot_be_constructed(dataset: LanceDataset) -> None:
    file = dataset.snapshot.fragments[0].files[0]
    for path in ("../../secret", "/etc/passwd", "s3://x/y", "a\0b"):
        with pytest.raises(UnsafePath):
            replace(file, path=path)
        with pytest.raises(UnsafePath):
            ExternalFile(path, 0, 1)
        with pytest.raises(UnsafePath):
            IndexFile(path, 1)
