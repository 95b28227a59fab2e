"""Conformance tests of every committer on every store."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from lance_ops.committers import ALL_COMMITTERS, Committed, Committer, Conflict
from lance_ops.core.errors import InvalidInput, VersionNotFound
from lance_ops.store import LocalStore, Store
from tests.conformance.conftest import COMMITTERS
from tests.conformance.races import NUM_RACERS, race_in_processes, race_in_threads

MakeCommitter = Callable[[Store], Committer]
NewCommitter = Callable[[], Committer]


def test_a_missing_dataset_has_no_versions(new_committer: NewCommitter) -> None:
    committer = new_committer()

    assert committer.latest() is None
    assert committer.versions() == []
    assert not committer.exists(1)
    with pytest.raises(VersionNotFound, match="version 1"):
        committer.read(1)


def test_every_handle_reads_committed_versions_unchanged(new_committer: NewCommitter) -> None:
    ours, theirs = new_committer(), new_committer()
    for version in range(1, 13):
        outcome = (ours, theirs)[version % 2].commit(version, b"manifest %d" % version)
        assert outcome == Committed(version, ours.location(version))
        assert ours.latest() == theirs.latest() == version

    for committer in (ours, theirs, new_committer()):
        assert committer.latest() == 12
        assert committer.versions() == list(range(1, 13))
        assert [committer.read(v).to_pybytes() for v in (1, 9, 12)] == [b"manifest 1", b"manifest 9", b"manifest 12"]
        assert committer.exists(10)
        assert not committer.exists(13)


def test_several_versions_are_removed_by_one_call(new_committer: NewCommitter) -> None:
    committer = new_committer()
    for version in range(1, 7):
        committer.commit(version, b"%d" % version)
    committer.remove(4)

    assert committer.remove_several([2, 4, 5]) == set()
    assert new_committer().versions() == [1, 3, 6]
    assert committer.remove_several([]) == set()


def test_several_versions_are_read_without_those_that_were_removed(new_committer: NewCommitter) -> None:
    committer = new_committer()
    written = {version: b"%d" % version * (1 if version % 2 else 20_000) for version in range(1, 7)}
    for version, data in written.items():
        committer.commit(version, data)

    def read(versions: Iterable[int]) -> dict[int, bytes]:
        return {version: data.to_pybytes() for version, data in new_committer().read_several(versions)}

    assert read(range(6, 0, -1)) == written
    assert read([]) == {}
    committer.remove(3)
    del written[3]
    assert read(range(1, 7)) == written


def test_committing_an_existing_version_returns_a_conflict_with_the_winner(new_committer: NewCommitter) -> None:
    new_committer().commit(1, b"first")
    committer = new_committer()

    assert committer.commit(1, b"second") == Conflict(1, pa.py_buffer(b"first"))
    assert committer.read(1).to_pybytes() == b"first"
    assert committer.versions() == [1]


def test_committing_the_same_bytes_again_is_recognised_as_ours(new_committer: NewCommitter) -> None:
    new_committer().commit(1, b"same")
    again = new_committer().commit(1, b"same")

    assert isinstance(again, Committed)
    assert again.recognised
    assert new_committer().versions() == [1]


@pytest.mark.parametrize("version", [0, -1, 1 << 64])
def test_an_invalid_version_number_raises_invalid_input(new_committer: NewCommitter, version: int) -> None:
    committer = new_committer()
    for use in (committer.location, committer.read, committer.exists, committer.remove):
        with pytest.raises(InvalidInput):
            use(version)
    with pytest.raises(InvalidInput):
        committer.commit(version, b"x")


def test_large_version_numbers_are_committed_and_read(new_committer: NewCommitter) -> None:
    large = (1 << 63) - 1
    new_committer().commit(large, b"x")
    assert new_committer().latest() == large
    assert new_committer().read(large).to_pybytes() == b"x"


def test_removing_versions_keeps_the_newest(new_committer: NewCommitter) -> None:
    for version in range(1, 6):
        new_committer().commit(version, b"%d" % version)
    committer = new_committer()
    for version in (1, 2, 4):
        committer.remove(version)
    committer.remove(4)

    assert committer.versions() == [3, 5]
    assert committer.latest() == new_committer().latest() == 5
    assert not committer.exists(4)
    with pytest.raises(VersionNotFound):
        committer.read(4)


def test_a_pickled_committer_sees_the_same_dataset(new_committer: NewCommitter) -> None:
    committer = new_committer()
    committer.commit(1, b"one")
    again = pickle.loads(pickle.dumps(committer))

    assert again.read(1).to_pybytes() == b"one"
    assert isinstance(again.commit(2, b"two"), Committed)
    assert committer.latest() == 2


def test_commit_outcomes_pickle(new_committer: NewCommitter) -> None:
    won, lost = new_committer().commit(1, b"one"), new_committer().commit(1, b"two")
    assert pickle.loads(pickle.dumps((won, lost))) == (won, lost)


def test_of_racing_threads_exactly_one_commits_and_the_others_see_its_bytes(new_committer: NewCommitter) -> None:
    for version in range(1, 4):
        outcomes = race_in_threads(partial(_commit, new_committer, version))
        winners = [racer for racer, outcome in enumerate(outcomes) if isinstance(outcome, Committed)]

        assert len(winners) == 1
        theirs = b"%d by %d" % (version, winners[0])
        assert [o.theirs.to_pybytes() for o in outcomes if isinstance(o, Conflict)] == [theirs] * (NUM_RACERS - 1)
        assert new_committer().read(version).to_pybytes() == theirs


def _commit(new_committer: NewCommitter, version: int, racer: int) -> object:
    return new_committer().commit(version, b"%d by %d" % (version, racer))


def _append(make_committer: MakeCommitter, root: str, a_round: int, racer: int) -> int:
    """Commit one more line after all existing lines, with retries; return the version."""
    committer = make_committer(LocalStore(root))
    while True:
        latest = committer.latest()
        lines = committer.read(latest).to_pybytes() if latest else b""
        outcome = committer.commit((latest or 0) + 1, lines + b"%d-%d\n" % (a_round, racer))
        if isinstance(outcome, Committed):
            return outcome.version


def test_racing_processes_lose_no_commit_and_leave_no_gap(make_committer: MakeCommitter, tmp_path: Path) -> None:
    num_rounds, num_racers = 4, 8
    rounds = race_in_processes(partial(_append, make_committer, str(tmp_path)), num_rounds, num_racers)

    committer = make_committer(LocalStore(str(tmp_path)))
    versions = list(range(1, num_rounds * num_racers + 1))
    assert sorted(version for answers in rounds for version in answers) == committer.versions() == versions
    lines = committer.read(versions[-1]).to_pybytes().splitlines()
    assert sorted(lines) == sorted(b"%d-%d" % (r, p) for r in range(num_rounds) for p in range(num_racers))


def test_this_suite_runs_over_every_committer() -> None:
    assert set(COMMITTERS) == set(ALL_COMMITTERS)
