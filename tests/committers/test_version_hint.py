"""When the hint to the newest version is used, and after which changes it must not be used."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from lance_ops.committers import Committed, PutIfAbsentCommitter
from lance_ops.committers.version_hint import VERSION_HINT_PATH
from lance_ops.core.errors import CorruptFile, VersionNotFound
from lance_ops.core.file_names import ManifestNaming, manifest_name
from lance_ops.store import BytesLike, Fault, FaultyStore, LocalStore, PutOutcome, When


def manifest(root: Path, version: int, naming: ManifestNaming = ManifestNaming.V2) -> Path:
    return root / "_versions" / manifest_name(version, naming)


def make(root: Path, *versions: int) -> None:
    """Commit versions as this library does."""
    committer = PutIfAbsentCommitter(LocalStore(str(root)))
    committer.latest()
    for version in versions:
        assert isinstance(committer.commit(version, b"%d" % version), Committed)


def by_another(root: Path, *versions: int) -> None:
    """Make versions as a writer that leaves no hint."""
    for version in versions:
        manifest(root, version).write_bytes(b"%d" % version)


def look(root: Path) -> tuple[int | None, int]:
    """Return the newest version as a new handle finds it, and how many times it listed the directory."""
    store = FaultyStore(LocalStore(str(root)))
    newest = PutIfAbsentCommitter(store).latest()
    return newest, [call.operation for call in store.calls].count("list_names")


def is_watched(root: Path) -> bool:
    """Return whether the file system tells which names come and go."""
    with LocalStore(str(root)).watch_directory("_versions") as names:
        return names() is not None


def hint(root: Path) -> bytes:
    return (root / VERSION_HINT_PATH).read_bytes()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A table of four versions, the newest of them hinted at."""
    made = tmp_path / "table"
    make(made, 1, 2, 3, 4)
    assert look(made) == (4, 0)
    return made


def read(root: Path, version: int) -> tuple[bytes, int]:
    """Return a version as a new handle reads it by number, and how many times it listed the directory."""
    store = FaultyStore(LocalStore(str(root)))
    data = PutIfAbsentCommitter(store).read(version)
    return data.to_pybytes(), [call.operation for call in store.calls].count("list_names")


def test_a_version_is_read_by_its_number_without_a_listing_while_the_hint_holds(root: Path) -> None:
    assert [read(root, version) for version in (1, 3, 4)] == [(b"1", 0), (b"3", 0), (b"4", 0)]
    with pytest.raises(VersionNotFound):
        read(root, 5)
    by_another(root, 5)
    assert [read(root, version) for version in (3, 5)] == [(b"3", 1), (b"5", 1)]


def test_a_version_is_not_read_by_its_number_from_a_mixture_of_names(root: Path) -> None:
    manifest(root, 5, ManifestNaming.V1).write_bytes(b"5")
    with pytest.raises(CorruptFile, match="both naming schemes"):
        read(root, 3)


def test_each_commit_but_the_first_writes_a_hint_that_saves_a_listing(tmp_path: Path) -> None:
    for version in range(1, 13):
        make(tmp_path, version)
        assert look(tmp_path) == (version, 0 if version > 1 else 1)
        found = json.loads(hint(tmp_path))
        assert found["version"] == version
        assert b" " not in hint(tmp_path)


def test_a_version_found_by_the_hint_can_be_read_and_committed_after(root: Path) -> None:
    store = FaultyStore(LocalStore(str(root)))
    committer = PutIfAbsentCommitter(store)
    assert committer.latest() == 4
    assert committer.read(4).to_pybytes() == b"4"
    assert committer.commit(5, b"5") == Committed(5, f"_versions/{manifest_name(5, ManifestNaming.V2)}")
    assert committer.latest(known=5) == 5
    assert isinstance(committer.commit(6, b"6"), Committed)
    assert isinstance(PutIfAbsentCommitter(store).commit(7, b"7"), Committed)  # has not looked for the newest
    assert [call.operation for call in store.calls].count("list_names") == (2 if is_watched(root) else 4)
    assert look(root) == (7, 0)


@pytest.mark.parametrize(
    ("made", "removed", "newest"),
    [
        ([5], [], 5),
        ([5, 6], [], 6),
        ([5, 6], [5], 6),
        ([9], [], 9),
        ([], [4], 3),
        ([], [1, 2], 4),
        ([5], [5], 4),
        ([5, 6], [5, 4, 1], 6),
    ],
)
def test_after_versions_came_or_went_the_directory_is_listed(
    root: Path, made: list[int], removed: list[int], newest: int
) -> None:
    by_another(root, *made)
    for version in removed:
        manifest(root, version).unlink()
    assert look(root) == (newest, 1)


@pytest.mark.parametrize(
    "change",
    [
        lambda versions: (versions / "d9223372036854775809.manifest").touch(),
        lambda versions: (versions / ".lance_ops_tmp.0").touch(),
        lambda versions: (versions / "notes").mkdir(),
        lambda versions: (versions / "latest_version_hint.json").unlink(),
        os.utime,
    ],
    ids=["detached", "temporary", "directory", "no hint", "touched"],
)
def test_after_any_other_change_of_names_the_directory_is_listed(root: Path, change: Callable[[Path], object]) -> None:
    change(root / "_versions")
    assert look(root) == (4, 1)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 45,
        b"garbage",
        b"{}",
        b'{"version":2}',
        b'{"version":4}',
        b'{"version":99}',
        b'{"version":2,"seal":"0000000000000000"}',
        b'{"version":4,"seal":"0000000000000000"}',
        b'{"version":4,"seal":null}',
        b'{"version":99999999999999999999999,"seal":"0000000000000000"}',
        b'{"version":-4,"seal":"0000000000000000"}',
        b"\xff" * 45,
        b"[" * 100_000,
    ],
)
def test_any_other_content_leads_to_a_listing(root: Path, content: bytes) -> None:
    (root / VERSION_HINT_PATH).write_bytes(content)
    assert look(root) == (4, 1)


def test_a_seal_is_valid_for_one_version_only(root: Path) -> None:
    sealed = hint(root)
    for other in (b"3", b"5", b"44", b"04"):
        (root / VERSION_HINT_PATH).write_bytes(sealed.replace(b":4,", b":%b," % other))
        assert look(root) == (4, 1)
    (root / VERSION_HINT_PATH).write_bytes(sealed + b"\n")
    assert look(root) == (4, 1)
    (root / VERSION_HINT_PATH).write_bytes(sealed)
    assert look(root) == (4, 0)


def test_a_torn_hint_is_ignored(tmp_path: Path) -> None:
    make(tmp_path, *range(1, 10))
    before = hint(tmp_path)
    make(tmp_path, 10)
    after = hint(tmp_path)
    assert len(after) == len(before) + 1
    for cut in range(len(after) + 1):
        for torn in (after[:cut] + before[cut:], before[:cut] + after[cut:]):
            (tmp_path / VERSION_HINT_PATH).write_bytes(torn)
            assert look(tmp_path) == (10, 0 if torn == after else 1)


def test_a_hint_that_is_a_link_or_no_file_leads_to_a_listing(root: Path, tmp_path: Path) -> None:
    path = root / VERSION_HINT_PATH
    outside = tmp_path / "outside.json"
    path.rename(outside)
    path.symlink_to(outside)
    assert look(root) == (4, 1)
    path.unlink()
    path.mkdir()
    assert look(root) == (4, 1)
    make(root, 5)
    assert look(root) == (5, 1)


def test_a_power_cut_that_keeps_the_hint_or_the_version_alone_does_no_harm(root: Path) -> None:
    before = hint(root)
    make(root, 5)
    after = hint(root)
    (root / VERSION_HINT_PATH).write_bytes(before)
    assert look(root) == (5, 1)
    (root / VERSION_HINT_PATH).write_bytes(after)
    assert look(root) == (5, 0)
    manifest(root, 5).unlink()
    assert look(root) == (4, 1)


@pytest.mark.parametrize("links", [False, True], ids=["copied", "linked"])
def test_a_copy_with_all_its_times_is_listed_until_something_is_committed_there(
    root: Path, tmp_path: Path, links: bool
) -> None:
    copy = tmp_path / "copy"
    if links:
        shutil.copytree(root, copy, copy_function=os.link)
    else:
        shutil.copytree(root, copy)
    manifest(copy, 2).unlink()
    shutil.copystat(root / "_versions", copy / "_versions")
    assert look(copy) == (4, 1)
    assert look(root) == (4, 0)
    make(copy, 5)
    assert (look(copy)[0], look(root)) == (5, (4, 0))
    make(copy, 6)
    assert (look(copy), look(root)) == ((6, 0), (4, 0))


def test_a_commit_to_a_table_without_a_hint_leaves_one_that_saves_a_listing(root: Path) -> None:
    (root / VERSION_HINT_PATH).unlink()
    assert look(root) == (4, 1)
    make(root, 5)
    assert look(root) == (5, 0)


@pytest.mark.parametrize("hint_first", [True, False])
def test_a_table_copied_while_it_is_written_is_listed(root: Path, tmp_path: Path, hint_first: bool) -> None:
    copy = tmp_path / "copy"
    (copy / "_versions").mkdir(parents=True)
    times = root / "_versions"
    first, second = (VERSION_HINT_PATH, None) if hint_first else (None, VERSION_HINT_PATH)
    if first:
        shutil.copy2(root / first, copy / first)
    shutil.copystat(times, copy / "_versions")
    make(root, 5, 6)
    manifest(root, 5).unlink()
    make(root, 7)
    for path in sorted(times.glob("*.manifest")):
        shutil.copy2(path, copy / "_versions")
    if second:
        shutil.copy2(root / second, copy / second)
    shutil.copystat(times, copy / "_versions")
    assert look(copy) == (7, 1)


def test_a_backup_restored_over_the_table_is_listed(root: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    shutil.copytree(root, backup)
    make(root, 5, 6)
    manifest(root, 5).unlink()
    shutil.copytree(backup, root, dirs_exist_ok=True)
    assert (root / "_versions").stat().st_mtime_ns == (backup / "_versions").stat().st_mtime_ns
    assert look(root) == (6, 1)


def test_a_hint_that_comes_late_does_no_harm(root: Path) -> None:
    late = FaultyStore(LocalStore(str(root)), Fault("put_hint", when=When.LATE))
    committer = PutIfAbsentCommitter(late)
    assert committer.latest() == 4
    assert isinstance(committer.commit(5, b"5"), Committed)
    make(root, 6)
    by_another(root, 7)
    manifest(root, 6).unlink()
    late.deliver_late()
    assert json.loads(hint(root))["version"] == 5
    assert look(root) == (7, 1)


def test_an_overtaken_writer_writes_a_hint_to_the_newest_version(root: Path) -> None:
    class Overtaken(LocalStore):
        def seal_directory(self, directory: str) -> str | None:
            by_another(root, 6)
            return super().seal_directory(directory)

    committer = PutIfAbsentCommitter(Overtaken(str(root)))
    assert committer.latest() == 4
    assert isinstance(committer.commit(5, b"5"), Committed)
    assert look(root) == (6, 0)
    assert committer.latest(known=5) == 6


class Racing(LocalStore):
    """Lets others act when a commit has begun to watch, or before it seals."""

    def watch_directory(self, directory: str) -> AbstractContextManager[Callable[[], frozenset[str] | None]]:
        watch = super().watch_directory(directory)
        self.begun()
        return watch

    def put_if_absent_with_callbacks(self, path: str, data: BytesLike, **options: Any) -> PutOutcome:
        self.looked()
        return super().put_if_absent_with_callbacks(path, data, **options)

    def seal_directory(self, directory: str) -> str | None:
        self.made()
        return super().seal_directory(directory)

    def begun(self) -> None: ...
    def looked(self) -> None: ...
    def made(self) -> None: ...


@pytest.mark.parametrize("moment", ["begun", "looked", "made"])
@pytest.mark.parametrize("others", [(6,), (6, 7), (7,)])
def test_versions_that_others_make_and_remove_during_a_commit_are_found(
    root: Path, moment: str, others: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before ours is made, others make and clean up a version of its number too; then ours is a stray one."""
    passing = [*others[:-1], *([] if moment == "made" else [5])]

    def act() -> None:
        by_another(root, *passing, others[-1])
        for version in passing:
            manifest(root, version).unlink()

    monkeypatch.setattr(Racing, moment, lambda _: act())
    committer = PutIfAbsentCommitter(Racing(str(root)))
    assert committer.latest() == 4
    done = committer.commit(5, b"5")
    assert isinstance(done, Committed)
    assert done.newest == max(others)
    assert look(root) == (max(others), 0)
    assert committer.latest(known=max(others)) == max(others)


def test_a_commit_that_cannot_watch_lists(root: Path) -> None:
    for operation in ("watch", "stamp"):
        newest, _ = look(root)
        assert newest is not None
        store = FaultyStore(LocalStore(str(root)), Fault(operation, call=2 if operation == "stamp" else 1))
        committer = PutIfAbsentCommitter(store)
        assert committer.latest() == newest
        done = committer.commit(newest + 1, b"x")
        assert isinstance(done, Committed)
        assert done.newest == newest + 1
        assert [call.operation for call in store.calls].count("list_names") == 1
        assert look(root) == (newest + 1, 0)


def test_the_next_version_is_found_where_a_directory_keeps_its_times(root: Path) -> None:
    class Still(LocalStore):
        def directory_stamp(self, directory: str) -> str | None:
            return "the same"

        def seal_directory(self, directory: str) -> str | None:
            return "the same"

    still = Still(str(root))
    committer = PutIfAbsentCommitter(still)
    committer.latest()
    committer.commit(5, b"5")
    assert PutIfAbsentCommitter(still).latest() == 5
    by_another(root, 6)
    assert PutIfAbsentCommitter(still).latest() == 6
    manifest(root, 6).unlink()
    manifest(root, 5).unlink()
    assert PutIfAbsentCommitter(still).latest() == 4


def test_tables_of_v1_names_are_listed_and_a_mixture_is_corrupt(tmp_path: Path, root: Path) -> None:
    old = tmp_path / "old"
    committer = PutIfAbsentCommitter(LocalStore(str(old)), new_naming=ManifestNaming.V1)
    for version in (1, 2, 3):
        committer.commit(version, b"x")
    assert json.loads(hint(old)) == {"version": 3}
    assert look(old) == (3, 1)

    manifest(root, 3, ManifestNaming.V1).touch()
    with pytest.raises(CorruptFile, match="both naming schemes"):
        look(root)


def test_a_directory_that_cannot_be_sealed_gets_the_references_hint(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "utime", refuse)
    make(root, 5)
    assert hint(root) == b'{"version":5}'
    assert look(root) == (5, 1)


@pytest.mark.parametrize("value", ["0", "false", " OFF "])
def test_the_references_switch_forbids_hints(
    root: Path, tmp_path: Path, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANCE_USE_VERSION_HINT", value)
    assert look(root) == (4, 1)
    before = hint(root)
    make(root, 5)
    make(tmp_path / "new", 1, 2)
    assert hint(root) == before
    assert not (tmp_path / "new" / VERSION_HINT_PATH).exists()
    monkeypatch.setenv("LANCE_USE_VERSION_HINT", "1")
    assert look(root) == (5, 1)


def test_a_table_behind_a_symbolic_link_needs_no_listing(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    assert look(tmp_path / "link") == (4, 0)
    make(tmp_path / "link", 5)
    assert look(root) == look(tmp_path / "link") == (5, 0)


def test_two_processes_that_commit_and_clean_up_never_show_an_older_version(tmp_path: Path) -> None:
    make(tmp_path, 1, 2)
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_commit_and_clean_up, args=(tmp_path, 60)) for _ in range(2)]
    for writer in writers:
        writer.start()
    newest, without_listing = 0, 0
    while any(writer.is_alive() for writer in writers):
        found, listings = look(tmp_path)
        assert found is not None
        assert found >= newest
        listed = PutIfAbsentCommitter(LocalStore(str(tmp_path))).versions()[-1]
        assert listed >= found
        newest, without_listing = listed, without_listing + (not listings)
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    make(tmp_path, newest + 1)
    assert look(tmp_path) == (newest + 1, 0)


def _commit_and_clean_up(root: Path, times: int) -> None:
    """Commit, and remove all but the first version and the newest."""
    committer = PutIfAbsentCommitter(LocalStore(str(root)))
    for _ in range(times):
        made = False
        while not made:
            newest = committer.latest()
            assert newest is not None
            made = isinstance(committer.commit(newest + 1, b"%d of %d" % (newest + 1, os.getpid())), Committed)
        for version in committer.versions()[1:-1]:
            committer.remove(version)
