"""Kill every verb, or fail it, at each system call that changes the disk (with strace)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
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
from lance_ops.maintenance.cleanup.named_files import NamedFiles
from lance_ops.maintenance.health import index_coverage
from lance_ops.store import LocalStore
from tests.crash.verbs import BEFORE, BRANCH, MANIFEST_STORES, VERBS, ExitStatus, State, Workspace, table

pytestmark = [
    pytest.mark.usefixtures("on_disk"),
    pytest.mark.xdist_group("system calls"),  # one worker starts the process that runs verbs
]

REPOSITORY = Path(__file__).parents[2]
SYSTEM_CALLS = (
    "openat,write,pwrite64,writev,ftruncate,fallocate,fsync,fdatasync,sync_file_range,io_submit,io_getevents,"
    "link,linkat,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir"
)
_SYNC = re.compile(r"(?:fsync\(|aio_fildes=)\d+<([^>]+)>")
_NAMING = re.compile(r"link\(\"[^\"]+\", \"([^\"]+\.manifest)\"\)")
_CALL = re.compile(r"^(\d+) +([a-z0-9_]+)\(")


@dataclass(frozen=True)
class InjectedFault:
    """A kill or an error at the `number`-th call of one system call."""

    call: str
    number: int
    kill: bool

    @property
    def injection(self) -> str:
        """The fault as an option of strace."""
        return f"inject={self.call}:{'signal=SIGKILL' if self.kill else 'error=EIO'}:when={self.number}"


class VerbServer:
    """A process with everything imported; it forks a child for each verb."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._in: IO[str] = process.stdin
        self._out: IO[str] = process.stdout
        self._trace = folder / "trace"
        self.injected = False
        """Whether strace injected an error in the last run."""
        self.trace: list[str] = []
        """The lines that strace wrote in the last run; each descriptor has its path."""

    def run(
        self, workspace: Workspace, verb: str, fault: InjectedFault | None = None
    ) -> tuple[int | None, Counter[str]]:
        """Run a verb under strace; return its exit status, None if it was killed, and its system calls."""
        process = int(self._ask(json.dumps({**asdict(workspace), "verb": verb})))
        what = ["-e", f"trace={SYSTEM_CALLS}", *(["-e", fault.injection] if fault else [])]
        command = ["strace", "-f", "-qq", "-y", "-o", str(self._trace), *what, "-p", str(process)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL):
            _wait_until_traced(process)
            status = int(self._ask("go"))
        self.trace = self._trace.read_text().splitlines()
        self.injected = any("(INJECTED)" in line for line in self.trace)
        by_thread = Counter(found.groups() for line in self.trace if (found := _CALL.match(line)))
        calls: Counter[str] = Counter()
        for (_, call), times in by_thread.items():
            calls[call] = max(calls[call], times)  # strace counts the calls of each thread separately
        return (None if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)), calls

    def _ask(self, line: str) -> str:
        print(line, file=self._in, flush=True)
        return self._out.readline()


def _wait_until_traced(process: int) -> None:
    while True:
        status = Path(f"/proc/{process}/status").read_text()
        if not re.search(r"^TracerPid:\s+0$", status, re.MULTILINE):
            return
        time.sleep(0.001)  # strace starts sooner on a core of its own


@pytest.fixture(scope="module")
def verb_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VerbServer]:
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
        yield VerbServer(process, tmp_path_factory.mktemp("verb_server"))
    finally:
        process.communicate()


@pytest.fixture(scope="module")
def workspaces(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, tuple[Workspace, str]]:
    """A workspace without and one with a manifest store, each with a copy to restore it from."""
    made = {}
    for rows in MANIFEST_STORES:
        folder = tmp_path_factory.mktemp("workspace")
        workspace = Workspace(str(folder / "now"), rows)
        workspace.create()
        made[bool(rows)] = workspace, str(shutil.copytree(workspace.folder, folder / "saved"))
    return made


def _ids(dataset: lance_ops.LanceDataset) -> tuple[int, ...]:
    return tuple(sorted(dataset.to_table(columns=["id"]).column("id").to_pylist()))


def _state(workspace: Workspace) -> State:
    dataset = workspace.open()
    tags = tuple((name, tag["version"]) for name, tag in dataset.tags.list().items())
    for _, version in tags:
        dataset.checkout_version(version).validate()
    return State(
        _ids(dataset),
        tuple(dataset.schema.names),
        len(dataset.get_fragments()),
        tuple((index.name, index.num_indexed_fragments) for index in index_coverage(dataset.snapshot)),
        _ids(dataset.checkout_version((BRANCH, None))) if BRANCH in dataset.branches.list() else None,
        _other(workspace),
        tags,
    )


def _other(workspace: Workspace) -> tuple[int, ...] | None:
    try:
        return _ids(lance_ops.dataset(workspace.other, storage_options=workspace.options))
    except DatasetNotFound:
        return None


def _unnamed_files(workspace: Workspace, uri: str) -> list[str]:
    """Return the files under a dataset's root that no version names and that a full clean-up does not remove."""
    dataset = lance_ops.dataset(uri, storage_options=workspace.options)
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
    """Return the newest checkpoint of the batches of removed versions, which clean-up writes."""
    return max((info.path for info in store.list("_lance_ops/batches")), default=None)


def _check_the_branch_works(workspace: Workspace) -> None:
    """Write to the branch, created first if absent; delete it and check that no file of it is left."""
    dataset = workspace.open()
    if BRANCH not in dataset.branches.list():
        with suppress(ReferenceNotFound):  # a creation that was killed may have left a version
            dataset.branches.delete(BRANCH)
        dataset.create_branch(BRANCH)
    branch = dataset.checkout_version((BRANCH, None))
    branch.validate()
    before = _ids(branch)
    branch.insert(table(100, 101))
    assert _ids(dataset.checkout_version((BRANCH, None))) == (*before, 100)
    dataset.branches.delete(BRANCH)
    store = LocalStore(workspace.uri)
    assert [*store.list("tree"), *store.list_temporary("tree")] == []


def _check_the_other_works(workspace: Workspace, found: tuple[int, ...] | None) -> None:
    """Write to the other dataset, created first if absent, and check that it has no unnamed files."""
    made = workspace.write(table(100, 101), "create" if found is None else "append", workspace.other)
    made.validate()
    assert _other(workspace) == (*(found or ()), 100)
    assert _unnamed_files(workspace, workspace.other) == []


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
"""Verbs that cover every way in which a manifest store adds and removes versions."""

CASES = [
    *(pytest.param(verb, False, 16 if "branch" in verb else 8, id=f"{verb}-some calls") for verb in VERBS),
    *(pytest.param(verb, True, 24, id=f"{verb}-manifest store-some calls") for verb in WITH_MANIFEST_STORE),
    *(pytest.param(verb, False, 1, id=f"{verb}-each call", marks=pytest.mark.soak) for verb in VERBS),
    *(pytest.param(verb, True, 1, id=f"{verb}-manifest store-each call", marks=pytest.mark.soak) for verb in VERBS),
]


@pytest.mark.parametrize("kill", [True, False], ids=["killed", "EIO"])
@pytest.mark.parametrize(("verb", "manifest_store", "every"), CASES)
def test_a_verb_stopped_at_a_system_call_commits_all_or_nothing(
    verb: str,
    manifest_store: bool,
    kill: bool,
    every: int,
    verb_server: VerbServer,
    workspaces: dict[bool, tuple[Workspace, str]],
) -> None:
    states = (BEFORE, *VERBS[verb][1])
    workspace, saved = workspaces[manifest_store]
    workspace = workspace.restored_from(saved)
    ended, calls = verb_server.run(workspace, verb)
    assert ended == ExitStatus.DONE and _state(workspace) == states[-1]
    num_retained = len(workspace.open().versions())
    assert (num_retained < 4) == (verb == "clean up")
    assert calls["fsync"] + calls["io_submit"] > 0 or verb in ("clean up", "tags"), "the commit was not synced"
    faults = [InjectedFault(call, number + 1, kill) for call, times in calls.items() for number in range(times)]
    faults = faults[::every]
    injected = 0
    for fault in faults:
        workspace = workspace.restored_from(saved)
        ended, _ = verb_server.run(workspace, verb, fault)
        injected += ended is None or verb_server.injected

        found = _state(workspace)
        assert ended in (None, *ExitStatus), f"{fault}: ended with {ended}"
        if ended == ExitStatus.DONE:
            assert found == states[-1], fault
            assert len(workspace.open().versions()) == num_retained, fault
        elif ended == ExitStatus.FAILED:
            assert found in states[:-1], fault
        else:
            assert found in states, fault
        dataset = workspace.open()
        dataset.validate()
        num_versions = len(dataset.versions())
        workspace.write(table(100, 101))
        assert _state(workspace) == replace(found, ids=(*found.ids, 100), num_fragments=found.num_fragments + 1), fault
        assert len(workspace.open().versions()) == num_versions + 1
        if "branch" in verb:
            _check_the_branch_works(workspace)
        if verb in ("create", "clone"):
            _check_the_other_works(workspace, found.other)
        assert _unnamed_files(workspace, workspace.uri) == [], fault
        for _, version in found.tags:
            assert _ids(workspace.open().checkout_version(version)), fault
    # A run may make a call fewer than the run that was counted, so that its last call is never met.
    assert len(faults) - injected <= max(1, len(faults) // 5), "too many calls were not repeated"
    assert injected > 0


@pytest.mark.parametrize("verb", ["begin", "append", "delete", "compact"])
def test_files_that_a_version_names_are_synced_before_it_exists(
    verb: str, verb_server: VerbServer, workspaces: dict[bool, tuple[Workspace, str]]
) -> None:
    workspace, saved = workspaces[False]
    workspace = workspace.restored_from(saved)
    old = {workspace.folder, *(str(path) for path in Path(workspace.folder).rglob("*"))}
    workspace = Workspace(f"{workspace.folder}/new") if verb == "begin" else workspace
    verb_server.run(workspace, "append" if verb == "begin" else verb)

    so_far: set[str] = set()
    synced: dict[str, set[str]] = {}
    for line in verb_server.trace:
        so_far.update(_SYNC.findall(line))
        synced |= {manifest: set(so_far) for manifest in _NAMING.findall(line)}
    newest = workspace.open().snapshot
    manifest, fragments = newest.manifest, newest.manifest.fragments
    named = [path for one in fragments for path in one.data_paths()]
    named += [f"_transactions/{manifest.transaction_file}"] if newest.version == 1 else []
    named += [path for fragment in fragments if (path := fragment.deletion_path)]
    files = {f"{workspace.uri}/{path}" for path in named} - old
    folders = {os.path.dirname(file) for file in files}
    made = {
        above for file in files for above in Path(file).parents if above.is_relative_to(workspaces[False][0].folder)
    }
    leading = {str(folder.parent) for folder in made if str(folder) not in old}
    assert files
    assert files | folders | leading <= synced[newest.manifest_uri]
    assert f"{workspace.uri}/_versions" in so_far
