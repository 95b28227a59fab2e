"""Every verb, killed or failed at the system calls by which it changes the disk (with strace)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import IO

import pytest

import lance_ops
from lance_ops.committers.version_hint import VERSION_HINT_PATH
from lance_ops.errors import DatasetNotFound, ReferenceNotFound
from lance_ops.maintenance.cleanup.cleanup_plan import NamedFiles
from lance_ops.store import LocalStore
from tests.crash.verbs import BEFORE, BRANCH, ROWS_OR_NONE, VERBS, Ending, State, World, table

REPOSITORY = Path(__file__).parents[2]
SYSTEM_CALLS = (
    "openat,write,pwrite64,writev,ftruncate,fallocate,fsync,fdatasync,sync_file_range,io_submit,io_getevents,"
    "link,linkat,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir"
)
_SYNC = re.compile(r"(?:fsync\(|aio_fildes=)\d+<([^>]+)>")
_NAMING = re.compile(r"link\(\"[^\"]+\", \"([^\"]+\.manifest)\"\)")
_CALL = re.compile(r"^(\d+) +([a-z0-9_]+)\(")


@dataclass(frozen=True)
class Strike:
    """A fault at the `number`-th call of one kind."""

    call: str
    number: int
    kill: bool

    @property
    def injection(self) -> str:
        """The fault in strace's words."""
        return f"inject={self.call}:{'signal=SIGKILL' if self.kill else 'error=EIO'}:when={self.number}"


class Zygote:
    """A process with everything imported, whose children do one verb each."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._in: IO[str] = process.stdin
        self._out: IO[str] = process.stdout
        self._trace = folder / "trace"
        self.injected = False
        """Whether an error was put in the place of a call in the last run."""
        self.trace: list[str] = []
        """What strace wrote of the last run, each descriptor with its path."""

    def run(self, world: World, verb: str, strike: Strike | None = None) -> tuple[int | None, Counter[str]]:
        """Do a verb under strace; return how it ended, None if it was killed, and the system calls it made."""
        process = int(self._ask(json.dumps({**asdict(world), "verb": verb})))
        what = ["-e", f"trace={SYSTEM_CALLS}", *(["-e", strike.injection] if strike else [])]
        command = ["strace", "-f", "-qq", "-y", "-o", str(self._trace), *what, "-p", str(process)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL):
            _wait_until_traced(process)
            status = int(self._ask("go"))
        self.trace = self._trace.read_text().splitlines()
        self.injected = any("(INJECTED)" in line for line in self.trace)
        by_thread = Counter(found.groups() for line in self.trace if (found := _CALL.match(line)))
        calls: Counter[str] = Counter()
        for (_, call), times in by_thread.items():
            calls[call] = max(calls[call], times)  # strace counts for each thread by itself
        return (None if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)), calls

    def _ask(self, line: str) -> str:
        print(line, file=self._in, flush=True)
        return self._out.readline()


def _wait_until_traced(process: int) -> None:
    while True:
        status = Path(f"/proc/{process}/status").read_text()
        if not re.search(r"^TracerPid:\s+0$", status, re.MULTILINE):
            return


@pytest.fixture(scope="module")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-m", "tests.crash.verbs"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    try:
        yield Zygote(process, tmp_path_factory.mktemp("zygote"))
    finally:
        process.communicate()


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, tuple[World, str]]:
    """A world without a manifest store and one with, each with a copy; a manifest store knows a table by its URI."""
    made = {}
    for rows in ROWS_OR_NONE:
        folder = tmp_path_factory.mktemp("world")
        world = World(str(folder / "now"), rows)
        world.begin()
        made[bool(rows)] = world, str(shutil.copytree(world.folder, folder / "saved"))
    return made


def _ids(dataset: lance_ops.LanceDataset) -> tuple[int, ...]:
    return tuple(sorted(dataset.to_table(columns=["id"]).column("id").to_pylist()))


def _state(world: World) -> State:
    dataset = world.open()
    tags = tuple((name, tag["version"]) for name, tag in dataset.tags.list().items())
    for _, version in tags:
        dataset.checkout_version(version).validate()
    return State(
        _ids(dataset),
        tuple(dataset.schema.names),
        tuple(index.name for index in dataset.describe_indices()),
        _ids(dataset.checkout_version((BRANCH, None))) if BRANCH in dataset.branches.list() else None,
        _other(world),
        tags,
    )


def _other(world: World) -> tuple[int, ...] | None:
    try:
        return _ids(lance_ops.dataset(world.other, storage_options=world.options))
    except DatasetNotFound:
        return None


def _stray(world: World, uri: str) -> list[str]:
    """Return the files beneath a dataset's root that a clean-up of everything old leaves and nothing names."""
    dataset = lance_ops.dataset(uri, storage_options=world.options)
    dataset.cleanup_old_versions(timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False)
    named = NamedFiles(uri)
    known = {VERSION_HINT_PATH, *(f"_refs/tags/{tag}.json" for tag in dataset.tags.list())}
    for version in dataset.versions():
        snapshot = dataset.checkout_version(version["version"]).snapshot
        named.add(snapshot.manifest)
        known.add(snapshot.committer.location(snapshot.version))
    store = LocalStore(uri)
    files = [info.path for info in (*store.list(), *store.list_temporary())]
    return [path for path in files if path not in named and path not in known and path != _checkpoint(store)]


def _checkpoint(store: LocalStore) -> str | None:
    """Return the newest of what clean-up writes down of the batches in versions that it removes."""
    return max((info.path for info in store.list("_lance_ops/batches")), default=None)


def _check_the_branch_works(world: World) -> None:
    """Write to the branch, or begin it where it is not there, and see that nothing is left when it goes."""
    dataset = world.open()
    if BRANCH not in dataset.branches.list():
        with suppress(ReferenceNotFound):  # of one that died in its creation there may be a version
            dataset.branches.delete(BRANCH)
        dataset.create_branch(BRANCH)
    branch = dataset.checkout_version((BRANCH, None))
    branch.validate()
    before = _ids(branch)
    branch.insert(table(100, 101))
    assert _ids(dataset.checkout_version((BRANCH, None))) == (*before, 100)
    dataset.branches.delete(BRANCH)
    store = LocalStore(world.uri)
    assert [*store.list("tree"), *store.list_temporary("tree")] == []


def _check_the_other_works(world: World, found: tuple[int, ...] | None) -> None:
    """Write to the other dataset, or begin it where it is not there, and see that nothing but it is left."""
    made = world.write(table(100, 101), "create" if found is None else "append", world.other)
    made.validate()
    assert _other(world) == (*(found or ()), 100)
    assert _stray(world, world.other) == []


WITH_MANIFEST_STORE = (
    "create",
    "append",
    "restore",
    "branch",
    "drop branch",
    "clone",
    "compact with index",
    "clean up",
)
"""The verbs whose versions come, and go, in each of the ways there are."""

CASES = [
    *(pytest.param(verb, False, 16 if "branch" in verb else 8, id=f"{verb}-some calls") for verb in VERBS),
    *(pytest.param(verb, True, 24, id=f"{verb}-manifest store-some calls") for verb in WITH_MANIFEST_STORE),
    *(pytest.param(verb, False, 1, id=f"{verb}-each call", marks=pytest.mark.soak) for verb in VERBS),
    *(pytest.param(verb, True, 1, id=f"{verb}-manifest store-each call", marks=pytest.mark.soak) for verb in VERBS),
]


@pytest.mark.parametrize("kill", [True, False], ids=["killed", "EIO"])
@pytest.mark.parametrize(("verb", "manifest_store", "every"), CASES)
def test_a_verb_that_is_stopped_at_a_system_call_leaves_all_or_nothing(
    verb: str, manifest_store: bool, kill: bool, every: int, zygote: Zygote, worlds: dict[bool, tuple[World, str]]
) -> None:
    states = (BEFORE, *VERBS[verb][1])
    world, saved = worlds[manifest_store]
    world = world.put_back(saved)
    ended, calls = zygote.run(world, verb)
    assert ended == Ending.DONE and _state(world) == states[-1]
    assert calls["fsync"] + calls["io_submit"] > 0 or verb in ("clean up", "tags"), "the commit was not synced"
    strikes = [Strike(call, number + 1, kill) for call, times in calls.items() for number in range(times)]
    struck = 0
    for strike in strikes[::every]:
        world = world.put_back(saved)
        ended, _ = zygote.run(world, verb, strike)
        struck += ended is None or zygote.injected

        found = _state(world)
        assert ended in (None, *Ending), f"{strike}: ended with {ended}"
        if ended == Ending.DONE:
            assert found == states[-1], strike
        elif ended == Ending.FAILED:
            assert found in states[:-1], strike
        else:
            assert found in states, strike
        dataset = world.open()
        dataset.validate()
        num_versions = len(dataset.versions())
        world.write(table(100, 101))
        assert _state(world) == replace(found, ids=(*found.ids, 100)), strike
        assert len(world.open().versions()) == num_versions + 1
        if "branch" in verb:
            _check_the_branch_works(world)
        if verb in ("create", "clone"):
            _check_the_other_works(world, found.other)
        assert _stray(world, world.uri) == [], strike
    assert struck > 0.8 * len(strikes[::every]), "some calls were not made again, and nothing struck"


@pytest.mark.parametrize("verb", ["begin", "append", "delete", "compact"])
def test_what_a_version_names_is_synced_before_it_has_its_name(
    verb: str, zygote: Zygote, worlds: dict[bool, tuple[World, str]]
) -> None:
    world, saved = worlds[False]
    world = world.put_back(saved)
    old = {world.folder, *(str(path) for path in Path(world.folder).rglob("*"))}
    world = World(f"{world.folder}/new") if verb == "begin" else world
    zygote.run(world, "append" if verb == "begin" else verb)

    so_far: set[str] = set()
    synced: dict[str, set[str]] = {}
    for line in zygote.trace:
        so_far.update(_SYNC.findall(line))
        synced |= {manifest: set(so_far) for manifest in _NAMING.findall(line)}
    newest = world.open().snapshot
    manifest, fragments = newest.manifest, newest.manifest.fragments
    named = [path for one in fragments for path in one.data_paths()]
    named += [f"_transactions/{manifest.transaction_file}"] if newest.version == 1 else []
    named += [path for fragment in fragments if (path := fragment.deletion_path)]
    files = {f"{world.uri}/{path}" for path in named} - old
    folders = {os.path.dirname(file) for file in files}
    made = {above for file in files for above in Path(file).parents if above.is_relative_to(worlds[False][0].folder)}
    leading = {str(folder.parent) for folder in made if str(folder) not in old}
    assert files
    assert files | folders | leading <= synced[newest.manifest_uri]
    assert f"{world.uri}/_versions" in so_far
