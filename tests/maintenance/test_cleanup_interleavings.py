"""Interleave clean-ups with callers that tag or restore old versions: each store call is a turn, in random order."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

import pytest

import lance_ops
from lance_ops.api.lance_dataset.tags import Tags
from lance_ops.changing.restoration import restore
from lance_ops.committers import PutIfAbsentCommitter
from lance_ops.errors import LanceOpsError, VersionNotFound
from lance_ops.maintenance.cleanup.cleanup import cleanup_old_versions
from lance_ops.maintenance.cleanup.cleanup_options import CleanupOptions
from lance_ops.maintenance.cleanup.named_files import NamedFiles
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.store import MemoryStore
from lance_ops.transactions import read_manifest
from tests.maintenance.conftest import rows

WANTED = 2
"""The old version that clean-ups remove and other actors tag or restore."""

NEWEST_ONLY = CleanupOptions(timedelta(0), error_if_tagged_old_versions=False, delete_concurrency=1)
SEEDS = 60
CALLS = {"get", "put", "put_hint", "put_if_absent", "delete", "exists", "list", "list_names"}


class Actor(MemoryStore):
    """The store of one actor: each call waits until the test gives the actor its turn."""

    def __init__(self, root: str, work: Callable[[Snapshot], object]) -> None:
        super().__init__(root)
        self.outcome: object = None
        self.is_done = False
        self.next_call = ""
        self._work = work
        self._may_go, self._waits = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in CALLS or threading.current_thread() is not self._thread:
            return found

        def call(path: str, *arguments: Any, **options: Any) -> Any:
            self.next_call = f"{name} {path}"
            self._wait()
            return found(path, *arguments, **options)

        return call

    def begin(self) -> None:
        self._thread.start()
        assert self._waits.acquire(timeout=120)

    def step(self) -> None:
        """Let the actor make one call and run up to its next one."""
        self._may_go.release()
        assert self._waits.acquire(timeout=120)

    def until(self, call: str) -> None:
        """Step until the actor's next call starts with `call`."""
        while not self.next_call.startswith(call):
            assert not self.is_done, self.outcome
            self.step()

    def finish(self) -> None:
        while not self.is_done:
            self.step()

    def _wait(self) -> None:
        self._waits.release()
        self._may_go.acquire()

    def _run(self) -> None:
        try:
            committer = PutIfAbsentCommitter(self)
            newest = read_manifest(self, committer, committer.latest() or 0)
            self.outcome = self._work(Snapshot(self, committer, newest))
        except LanceOpsError as error:
            self.outcome = error
        self.is_done = True
        self._waits.release()


def tag(snapshot: Snapshot) -> None:
    Tags(snapshot.at(WANTED)).create("wanted")


def move_tag(snapshot: Snapshot) -> None:
    Tags(snapshot.at(WANTED)).update("moving")


def bring_back(snapshot: Snapshot) -> None:
    restore(snapshot.at(WANTED))


def clean_up(snapshot: Snapshot) -> None:
    cleanup_old_versions(snapshot, NEWEST_ONLY)


@pytest.fixture(scope="module")
def original() -> lance_ops.LanceDataset:
    """Three old versions, each with a file that only it names, and the newest, which is tagged."""
    uri = f"memory://{uuid.uuid4().hex}"
    for number in range(4):
        dataset = lance_ops.write_dataset(rows(number, number + 1), uri, mode="overwrite")
    dataset.tags.create("moving")
    return dataset


def actors_on_a_copy(original: lance_ops.LanceDataset, *works: Callable[[Snapshot], object]) -> list[Actor]:
    root = uuid.uuid4().hex
    copy = MemoryStore(root)
    for info in original.snapshot.store.list():
        copy.put(info.path, original.snapshot.store.get(info.path))
    actors = [Actor(root, work) for work in works]
    for actor in actors:
        actor.begin()
    return actors


def take_turns(original: lance_ops.LanceDataset, random: Random, *works: Callable[[Snapshot], object]) -> list[Actor]:
    """Run all actors: choose one at random and let it make a random number of calls, until all are done."""
    actors = actors_on_a_copy(original, *works)
    while at_work := [actor for actor in actors if not actor.is_done]:
        actor = random.choice(at_work)
        for _ in range(random.choice((1, 1, 2, 3, 5, 10, 20, 40, 1000))):
            if not actor.is_done:
                actor.step()
    return actors


@pytest.mark.parametrize("hold", [tag, move_tag, bring_back])
@pytest.mark.parametrize("num_clean_ups", [1, 2, 3])
def test_a_caller_that_holds_an_old_version_has_all_its_files(
    original: lance_ops.LanceDataset, hold: Callable[[Snapshot], object], num_clean_ups: int
) -> None:
    outcomes: Counter[bool] = Counter()
    for seed in range(SEEDS):
        actors = take_turns(original, Random(seed), hold, *[clean_up] * num_clean_ups)
        try:
            outcomes[judge(actors)] += 1
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise
    assert min(outcomes[True], outcomes[False]) > SEEDS / 20  # else the seeds do not cover both outcomes


def judge(actors: list[Actor]) -> bool:
    """Return whether the first actor succeeded; no other may fail, and every version must have all its files."""
    holder, *others = actors
    assert [other.outcome for other in others] == [None] * len(others)
    assert holder.outcome is None or isinstance(holder.outcome, VersionNotFound)
    dataset = lance_ops.dataset(holder.uri)
    tags = {name: tag["version"] for name, tag in dataset.tags.list().items()}
    for version in [version["version"] for version in dataset.versions()]:
        manifest = dataset.checkout_version(version).snapshot.manifest
        named = NamedFiles(holder.uri)
        named.add(manifest)
        assert named.paths <= {info.path for info in MemoryStore(holder.uri.removeprefix("memory://")).list()}, version
    was_given = holder.outcome is None
    if "wanted" in tags or not was_given:
        assert was_given is (WANTED in tags.values()), tags
    for version in tags.values():
        dataset.checkout_version(version)
    return was_given


def test_a_tag_between_two_clean_ups_is_refused(original: lance_ops.LanceDataset) -> None:
    """One clean-up reads tags before the tag is written; the other has removed the version and reads tags after it."""
    tagger, one, other = actors_on_a_copy(original, tag, clean_up, clean_up)
    tagger.until("put_if_absent _refs")
    one.until("delete _versions")  # after its plan
    for _ in range(WANTED):
        other.until("delete _versions")
        other.step()
    one.until("delete data")  # it found the version missing and read the tags
    tagger.step()
    other.finish()
    tagger.finish()
    one.finish()
    assert not judge([tagger, one, other])
