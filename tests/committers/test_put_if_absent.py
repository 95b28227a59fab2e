"""Commits with lost answers, refusals, stores that do not answer, and stores that ignore the condition."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lance_ops.committers import CommitOutcome, Committed, Conflict, PutIfAbsentCommitter, Unknown
from lance_ops.committers.create_retries import CreateRetries
from lance_ops.core.errors import StoreError, UnsafeStore, WriteRefused
from lance_ops.core.file_names import ManifestNaming, manifest_name
from lance_ops.store import (
    BytesLike,
    Fault,
    FaultyStore,
    LocalStore,
    MemoryStore,
    PutOutcome,
    SimulatedCrash,
    Store,
    When,
)

OURS = b"ours, with a uuid"
V2_ONE = "_versions/18446744073709551614.manifest"


def commit(store: Store, version: int = 1, data: bytes = OURS, attempts: int = 4) -> CommitOutcome:
    return PutIfAbsentCommitter(store, retries=CreateRetries(attempts, 0.001)).commit(version, data)


def test_a_lost_answer_is_recognised_as_our_own_commit() -> None:
    store = FaultyStore(MemoryStore(), Fault("put_if_absent", when=When.AFTER))

    assert commit(store) == Committed(1, V2_ONE, recognised=True)
    assert [call.operation for call in store.calls if call.path == V2_ONE] == ["put_if_absent", "get", "make_durable"]


def test_a_lost_answer_to_a_losing_commit_is_a_conflict() -> None:
    inner = MemoryStore()
    commit(inner, data=b"theirs")
    store = FaultyStore(inner, Fault("put_if_absent", when=When.AFTER))

    outcome = commit(store)

    assert isinstance(outcome, Conflict)
    assert outcome.theirs.to_pybytes() == b"theirs"


@pytest.mark.parametrize("when", [When.BEFORE, When.PARTIAL, When.LATE])
def test_a_commit_that_did_not_arrive_is_sent_again_to_the_same_version(when: When) -> None:
    store = FaultyStore(MemoryStore(), Fault("put_if_absent", when=when))

    assert commit(store) == Committed(1, V2_ONE)
    store.deliver_late()
    assert PutIfAbsentCommitter(store).versions() == [1]
    assert store.get(V2_ONE).to_pybytes() == OURS


def test_a_store_that_keeps_failing_leaves_the_outcome_unknown_after_the_attempts() -> None:
    store = FaultyStore(MemoryStore(), Fault("put_if_absent", call=None))

    outcome = commit(store, attempts=3)

    assert isinstance(outcome, Unknown)
    assert "simulated failure" in outcome.reason
    assert [call.operation for call in store.calls].count("put_if_absent") == 3
    assert "delete" not in [call.operation for call in store.calls]


def test_a_commit_that_cannot_be_read_back_is_unknown_and_keeps_its_version() -> None:
    store = FaultyStore(
        MemoryStore(), Fault("put_if_absent", call=None, when=When.AFTER), Fault("get", "_versions/*", call=None)
    )

    assert isinstance(commit(store), Unknown)
    assert PutIfAbsentCommitter(store).versions() == [1]


def test_a_create_that_arrives_after_the_last_attempt_takes_effect_at_most_once() -> None:
    store = FaultyStore(MemoryStore(), Fault("put_if_absent", call=None, when=When.LATE))
    assert isinstance(commit(store), Unknown)

    store.deliver_late()

    assert PutIfAbsentCommitter(store).versions() == [1]
    assert store.get(V2_ONE).to_pybytes() == OURS


def test_a_passing_failure_to_read_back_is_overcome() -> None:
    store = FaultyStore(MemoryStore(), Fault("put_if_absent", when=When.AFTER), Fault("get", "_versions/*"))
    assert commit(store) == Committed(1, V2_ONE, recognised=True)


def test_our_bytes_count_as_committed_only_once_they_are_durable(tmp_path: Path) -> None:
    store = FaultyStore(
        LocalStore(str(tmp_path)), Fault("put_if_absent", when=When.AFTER), Fault("make_durable", call=None)
    )
    assert isinstance(commit(store), Unknown)


class Refusing(MemoryStore):
    """A store that says no, as one without space or permission does; `landed` is what an earlier try left."""

    def __init__(self, landed: bytes | None = None) -> None:
        super().__init__()
        self.landed = landed

    def put_if_absent(self, path: str, data: BytesLike, *, after: Iterable[str] = ()) -> PutOutcome:
        if self.landed is not None:
            self.put(path, self.landed)
        raise WriteRefused(f"no space left for {len(memoryview(data))} bytes")


def test_a_refusal_is_raised_at_once_and_no_version_exists() -> None:
    store = Refusing()
    with pytest.raises(WriteRefused, match="no space left"):
        commit(store)
    assert list(store.list()) == []


def test_a_refusal_after_the_clients_own_retry_succeeded_is_a_commit() -> None:
    assert commit(Refusing(landed=OURS)) == Committed(1, V2_ONE, recognised=True)


def test_a_refusal_of_a_version_that_another_has_is_a_conflict() -> None:
    assert isinstance(commit(Refusing(landed=b"theirs")), Conflict)


def test_a_refusal_after_a_doubtful_attempt_leaves_the_outcome_unknown() -> None:
    store = FaultyStore(Refusing(), Fault("put_if_absent"))
    assert isinstance(commit(store), Unknown)


@pytest.mark.parametrize("landed", [None, OURS])
def test_a_refusal_by_a_store_that_cannot_be_read_either_leaves_the_outcome_unknown(landed: bytes | None) -> None:
    """As when a token expires between the client's own attempts, the first of which landed."""
    store = FaultyStore(Refusing(landed), Fault("get", path=V2_ONE, call=None))
    assert isinstance(commit(store), Unknown)


class Careless(MemoryStore):
    """A store behind which a server ignores conditions."""

    @property
    def needs_proof(self) -> bool:
        return True

    def put_if_absent(self, path: str, data: BytesLike, *, after: Iterable[str] = ()) -> PutOutcome:
        self.put(path, data)
        return PutOutcome.CREATED


def test_nothing_is_committed_through_a_store_that_ignores_conditions() -> None:
    store = Careless()
    with pytest.raises(UnsafeStore, match="external manifest store"):
        commit(store)
    assert list(store.list()) == list(store.list_temporary()) == []


@pytest.mark.parametrize("hint", [b'{"version":1}', b'{"version":99}', b"garbage", b"", None])
def test_the_latest_version_is_right_whatever_the_hint_says(tmp_path: Path, hint: bytes | None) -> None:
    committer = PutIfAbsentCommitter(LocalStore(str(tmp_path)))
    for version in (1, 2, 3, 4):
        committer.commit(version, b"%d" % version)
    for version in (2, 3):
        committer.remove(version)
    path = tmp_path / "_versions" / "latest_version_hint.json"
    path.unlink()
    if hint is not None:
        path.write_bytes(hint)

    assert PutIfAbsentCommitter(LocalStore(str(tmp_path))).latest() == 4


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("when", list(When))
def test_a_hint_that_cannot_be_written_does_not_undo_the_commit(tmp_path: Path, when: When, crash: bool) -> None:
    local = LocalStore(str(tmp_path))
    store = FaultyStore(local, Fault("put_hint", when=when, crash=crash))
    if crash:
        with pytest.raises(SimulatedCrash):
            commit(store)
    else:
        assert commit(store) == Committed(1, V2_ONE)
    assert PutIfAbsentCommitter(local).versions() == [1]


@pytest.mark.parametrize("when", list(When))
def test_a_crash_at_any_step_leaves_no_version_or_the_whole_one(tmp_path: Path, when: When) -> None:
    steps = FaultyStore(LocalStore(str(tmp_path / "dry")))
    commit(steps)
    for step in range(1, len(steps.calls) + 1):
        local = LocalStore(str(tmp_path / f"{step}"))
        with pytest.raises(SimulatedCrash):
            commit(FaultyStore(local, Fault(call=step, when=when, crash=True)))

        survivor = PutIfAbsentCommitter(local)
        assert survivor.latest() in (None, 1)
        assert isinstance(survivor.commit(1, OURS), Committed)
        assert survivor.read(1).to_pybytes() == OURS


def test_a_directory_of_v1_names_continues_in_v1(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    first = PutIfAbsentCommitter(store, new_naming=ManifestNaming.V1)
    assert first.commit(1, b"one") == Committed(1, "_versions/1.manifest")

    others = PutIfAbsentCommitter(store)
    assert [others.commit(version, b"x") for version in range(2, 12)][-1] == Committed(11, "_versions/11.manifest")
    assert others.latest() == PutIfAbsentCommitter(store).latest() == 11
    assert others.read(1).to_pybytes() == b"one"


def test_a_handle_survives_the_renaming_of_all_manifests(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    committer = PutIfAbsentCommitter(store, new_naming=ManifestNaming.V1)
    committer.commit(1, b"one")
    assert committer.latest() == 1
    store.copy("_versions/1.manifest", V2_ONE)
    store.delete("_versions/1.manifest")

    assert committer.read(1).to_pybytes() == b"one"
    assert committer.commit(2, b"two") == Committed(2, "_versions/18446744073709551613.manifest")


def test_errors_of_listing_are_raised_not_taken_for_an_empty_dataset() -> None:
    store = FaultyStore(MemoryStore(), Fault("list_names", call=None))
    committer = PutIfAbsentCommitter(store)
    for use in (committer.latest, committer.versions, lambda: committer.commit(1, OURS)):
        with pytest.raises(StoreError):
            use()


def test_the_newest_version_is_listed_again_only_after_a_change(tmp_path: Path) -> None:
    store = FaultyStore(LocalStore(str(tmp_path)))
    committer, other = PutIfAbsentCommitter(store), PutIfAbsentCommitter(LocalStore(str(tmp_path)))

    def looks(known: int | None) -> tuple[int | None, int]:
        before = len(store.calls)
        newest = committer.latest(known)
        return newest, [call.operation for call in store.calls[before:]].count("list_names")

    def long_ago(seconds: int) -> None:  # no change shares a tick of the clock with one to come
        os.utime(tmp_path / "_versions", (seconds, seconds))

    for version in (1, 2, 3):
        other.commit(version, b"%d" % version)
    long_ago(1)
    assert looks(None) == (3, 1)
    assert looks(3) == (3, 0)
    assert looks(2) == (3, 1)
    assert looks(None) == (3, 1)
    other.commit(4, b"4")
    long_ago(2)
    assert looks(3) == (4, 1)
    other.remove(1)
    assert looks(4) == (4, 1)
    assert looks(4) == (4, 0)


def test_a_store_without_stamps_is_listed_each_time() -> None:
    store = FaultyStore(MemoryStore())
    committer = PutIfAbsentCommitter(store)
    committer.commit(1, b"1")
    before = len(store.calls)
    assert [committer.latest(), committer.latest(1), committer.latest(1)] == [1, 1, 1]
    assert [call.operation for call in store.calls[before:]].count("list_names") == 3


def test_short_manifests_in_place_are_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "_versions").mkdir()
    for version in range(1, 131):
        (tmp_path / "_versions" / manifest_name(version, ManifestNaming.V2)).write_bytes(b"%d LANC" % version)
    committer = PutIfAbsentCommitter(LocalStore(str(tmp_path)))
    assert committer.latest() == 130
    read_parts, sizes = LocalStore.read_parts, list[int]()

    def noting(store: LocalStore, paths: Sequence[str], *others: Any) -> list[int] | None:
        sizes.append(len(paths))
        return read_parts(store, paths, *others)

    monkeypatch.setattr(LocalStore, "read_parts", noting)
    monkeypatch.setattr(LocalStore, "view", None)
    found = [(version, data.to_pybytes()) for version, data in committer.read_several(range(1, 131))]
    assert found == [(version, b"%d LANC" % version) for version in range(1, 131)]
    assert sizes == [64, 64, 2]


def test_a_short_manifest_of_which_only_a_part_was_read_is_read_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(str(tmp_path))
    committer = PutIfAbsentCommitter(store)
    for version in (1, 2):
        committer.commit(version, b"%d LANC" % version)
    read_parts = LocalStore.read_parts

    def cut_short(store: LocalStore, *arguments: Any) -> list[int] | None:
        sizes = read_parts(store, *arguments)
        return sizes and [sizes[0], sizes[1] - 1]

    monkeypatch.setattr(LocalStore, "read_parts", cut_short)
    assert [data.to_pybytes() for _, data in committer.read_several([1, 2])] == [b"1 LANC", b"2 LANC"]
