"""What listings with tags spare: manifests that are known, and the checks that a commit's dataset is still the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.committers import PutIfAbsentCommitter
from lance_ops.committers.known_manifests import KNOWN_MANIFESTS, KnownManifests
from lance_ops.core.errors import VersionNotFound
from lance_ops.store import MemoryStore
from tests.tagged_listings import tagged_listings

COUNTED = ("get", "get_ranges", "exists", "size", "put", "put_if_absent", "list_names", "delete")
ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture(params=[True, False], ids=["digests", "other tags"])
def digests(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Yield whether tags are digests, while listings have tags and no manifest is known."""
    KNOWN_MANIFESTS.reset()
    with tagged_listings(digests=request.param):
        yield request.param


def requests_of(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> Counter[str]:
    """Return the store calls of `act`, those of the tags themselves left out."""
    made: Counter[str] = Counter()
    with monkeypatch.context() as patch:
        for name in COUNTED:
            patch.setattr(MemoryStore, name, _counted(getattr(MemoryStore, name), name, made))
        act()
    made["get"] -= made.pop("tagged", 0)
    return +made


def _counted(call: Callable[..., object], name: str, made: Counter[str]) -> Callable[..., object]:
    def counting(self: MemoryStore, *arguments: object, **options: object) -> object:
        made[name] += 1
        found = call(self, *arguments, **options)
        if name == "list_names" and arguments[0] == "_versions":
            made["tagged"] += min(len(found), 16)  # type: ignore[arg-type]  # the fixture reads each listed object
        return found

    return counting


def test_an_append_asks_no_more_than_six_times(digests: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    written = lance_ops.write_dataset(ROWS, "memory://")
    made = requests_of(monkeypatch, lambda: lance_ops.write_dataset(ROWS, written.uri, mode="append"))
    known = {"list_names": 3, "put": 2, "put_if_absent": 1}
    assert made == (known if digests else {**known, "get": 1})
    assert lance_ops.dataset(written.uri).count_rows() == 6


def test_a_version_that_is_known_is_opened_by_one_listing(digests: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    written = lance_ops.write_dataset(ROWS, "memory://")
    lance_ops.dataset(written.uri)
    assert requests_of(monkeypatch, lambda: lance_ops.dataset(written.uri)) == {"list_names": 1}
    lance_ops.dataset(written.uri).insert(ROWS)
    assert lance_ops.dataset(written.uri).count_rows() == 6


def test_a_dataset_that_was_replaced_under_its_name_is_read_anew(digests: bool) -> None:
    written = lance_ops.write_dataset(ROWS, "memory://")
    assert lance_ops.dataset(written.uri).to_table() == ROWS
    lance_ops.LanceDataset.drop(written.uri)
    other = pa.table({"id": [7]})
    lance_ops.write_dataset(other, written.uri)
    assert lance_ops.dataset(written.uri).to_table() == other


def test_only_bytes_that_the_listing_before_stated_are_as_listed(digests: bool) -> None:
    store = MemoryStore()
    committer = PutIfAbsentCommitter(store)
    committer.commit(1, b"one")
    assert committer.as_listed(1) is None
    assert committer.latest() == 1
    assert committer.as_listed(1) == (pa.py_buffer(b"one") if digests else None)
    committer.read(1)
    assert committer.as_listed(1) == pa.py_buffer(b"one")
    store.put(committer.location(1), b"another")
    assert committer.read(1) == pa.py_buffer(b"another")
    assert committer.latest() == 1
    assert committer.as_listed(1) is None
    assert committer.read(1) == pa.py_buffer(b"another") == committer.as_listed(1)
    committer.remove(1)
    committer.latest()
    assert committer.as_listed(1) is None
    with pytest.raises(VersionNotFound):
        committer.read(1)


def test_a_listing_that_fails_leaves_nothing_as_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    with tagged_listings():
        committer = PutIfAbsentCommitter(MemoryStore())
        committer.commit(1, b"one")
        committer.latest()
        assert committer.as_listed(1) is not None
        monkeypatch.setattr(MemoryStore, "list_names", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            committer.latest()
        assert committer.as_listed(1) is None


def test_the_manifests_used_last_are_kept_and_long_ones_are_not() -> None:
    known = KnownManifests(capacity=2)
    for key in range(3):
        known.keep(key, pa.py_buffer(bytes([key])))
    assert [known.get(key) for key in range(3)] == [None, pa.py_buffer(b"\x01"), pa.py_buffer(b"\x02")]
    known.keep(9, pa.py_buffer(bytes(1 << 20)))
    assert known.get(9) is None


VERBS: dict[str, Callable[[str], object]] = {
    "restore": lambda uri: lance_ops.dataset(uri, version=1).restore(),
    "tag": lambda uri: lance_ops.dataset(uri).tags.create("first", 1),
}


@pytest.mark.parametrize("verb", VERBS)
def test_known_manifests_are_not_requested_and_only_a_tag_looks_for_its_version(
    verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    KNOWN_MANIFESTS.reset()
    with tagged_listings():
        written = lance_ops.write_dataset(ROWS, "memory://")
        written.insert(ROWS)
        made = requests_of(monkeypatch, lambda: VERBS[verb](written.uri))
    # A restore finds its version in the listing of its commit.
    assert (made["get"], made["exists"]) == (0, 0 if verb == "restore" else 1)
    assert lance_ops.dataset(written.uri).count_rows() == (3 if verb == "restore" else 6)
