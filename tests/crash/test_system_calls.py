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
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import IO

import pytest

import lance_ops
from lance_ops.errors import ReferenceNotFound
from lance_ops.maintenance.cleanup_plan import NamedFiles
from lance_ops.snapshot.pins import PINS_DIR
from lance_ops.store import LocalStore
from tests.crash.verbs import BEFORE, BRANCH, VERBS, Ending, State, table

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

    def run(self, uri: str, verb: str, strike: Strike | None = None) -> tuple[int | None, Counter[str]]:
        """Do a verb under strace; return how it ended, None if it was killed, and the system calls it made."""
        process = int(self._ask(json.dumps({"uri": uri, "verb": verb})))
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
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of three fragments and three versions."""
    uri = tmp_path_factory.mktemp("template") / "table"
    for at in range(3):
        lance_ops.write_dataset(table(at * 4, at * 4 + 4), str(uri), mode="append")
    return uri


def _ids(dataset: lance_ops.LanceDataset) -> tuple[int, ...]:
    return tuple(sorted(dataset.to_table(columns=["id"]).column("id").to_pylist()))


def _state(uri: str) -> State:
    dataset = lance_ops.dataset(uri)
    return State(
        _ids(dataset),
        tuple(dataset.schema.names),
        tuple(index.name for index in dataset.describe_indices()),
        _ids(dataset.checkout_version((BRANCH, None))) if BRANCH in dataset.branches.list() else None,
    )


def _stray(uri: str) -> list[str]:
    """Return the files that a clean-up of everything old leaves and no version names."""
    dataset = lance_ops.dataset(uri)
    dataset.cleanup_old_versions(timedelta(0), delete_unverified=True)
    named = NamedFiles(uri)
    for version in dataset.versions():
        named.add(dataset.checkout_version(version["version"]).snapshot.manifest)
    store = LocalStore(uri)
    folders = ("data", "_deletions", "_indices", "_transactions", PINS_DIR)
    files = [info.path for folder in folders for info in store.list(folder)]
    return [path for path in files if path not in named] + [info.path for info in store.list_temporary()]


def _check_the_branch_works(uri: str) -> None:
    """Write to the branch, or begin it where it is not there, and see that nothing is left when it goes."""
    dataset = lance_ops.dataset(uri)
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
    assert list(LocalStore(uri).list("tree")) == []


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.soak), 8], ids=["each call", "each eighth call"])
@pytest.mark.parametrize("kill", [True, False], ids=["killed", "EIO"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_is_stopped_at_a_system_call_leaves_all_or_nothing(
    verb: str, kill: bool, every: int, zygote: Zygote, template: Path, tmp_path: Path
) -> None:
    states = (BEFORE, *VERBS[verb][1])
    uri = str(tmp_path / "watched")
    shutil.copytree(template, uri)
    ended, calls = zygote.run(uri, verb)
    assert ended == Ending.DONE and _state(uri) == states[-1]
    assert calls["fsync"] + calls["io_submit"] > 0 or verb == "clean up", "the commit was not synced"
    strikes = [Strike(call, number + 1, kill) for call, times in calls.items() for number in range(times)]
    struck = 0
    for strike in strikes[::every]:
        uri = str(tmp_path / f"{strike.call}-{strike.number}")
        shutil.copytree(template, uri)
        ended, _ = zygote.run(uri, verb, strike)
        struck += ended is None or zygote.injected

        found = _state(uri)
        assert ended in (None, *Ending), f"{strike}: ended with {ended}"
        if ended == Ending.DONE:
            assert found == states[-1], strike
        elif ended == Ending.FAILED:
            assert found in states[:-1], strike
        else:
            assert found in states, strike
        dataset = lance_ops.dataset(uri)
        dataset.validate()
        num_versions = len(dataset.versions())
        lance_ops.write_dataset(table(100, 101), uri, mode="append")
        assert _state(uri) == replace(found, ids=(*found.ids, 100)), strike
        assert len(lance_ops.dataset(uri).versions()) == num_versions + 1
        if verb == "branch":
            _check_the_branch_works(uri)
        assert _stray(uri) == [], strike
        shutil.rmtree(uri)
    assert struck > 0.8 * len(strikes[::every]), "some calls were not made again, and nothing struck"


@pytest.mark.parametrize("verb", ["create", "append", "delete", "compact"])
def test_what_a_version_names_is_synced_before_it_has_its_name(
    verb: str, zygote: Zygote, template: Path, tmp_path: Path
) -> None:
    uri = str(tmp_path / "new" / "table")
    if verb != "create":
        shutil.copytree(template, uri)
    old = {str(tmp_path), *(str(path) for path in tmp_path.rglob("*"))}
    zygote.run(uri, "append" if verb == "create" else verb)

    so_far: set[str] = set()
    synced: dict[str, set[str]] = {}
    for line in zygote.trace:
        so_far.update(_SYNC.findall(line))
        synced |= {manifest: set(so_far) for manifest in _NAMING.findall(line)}
    newest = lance_ops.dataset(uri).snapshot
    manifest, fragments = newest.manifest, newest.manifest.fragments
    named = [path for one in fragments for path in one.data_paths()]
    named += [f"_transactions/{manifest.transaction_file}"] if newest.version == 1 else []
    named += [path for fragment in fragments if (path := fragment.deletion_path)]
    files = {f"{uri}/{path}" for path in named} - old
    folders = {os.path.dirname(file) for file in files}
    made = {above for file in files for above in Path(file).parents if above.is_relative_to(tmp_path)}
    leading = {str(folder.parent) for folder in made if str(folder) not in old}
    assert files
    assert files | folders | leading <= synced[newest.manifest_uri]
    assert f"{uri}/_versions" in so_far
