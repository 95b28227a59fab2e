"""Fixtures for all tests: hypothesis profiles, dataset URIs, test servers, one Spark session per worker."""

from __future__ import annotations

import atexit
import gc
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pyarrow as pa
import pytest
import typer.main
import typer.testing
from hypothesis.internal.conjecture import providers

from lance_ops.core import lazy_import
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.schema import Schema
from lance_ops.file.alike_files import alike_files
from lance_ops.maintenance.compaction import live_rows
from lance_ops.reading import take
from lance_ops.reading.joined_fragments import read_fragments_together
from lance_ops.snapshot import Snapshot
from lance_ops.store.local import memory_map_cache
from lance_ops.table import Fragment, Manifest, decode_manifest
from lance_ops.table.manifest.manifest_cache import ManifestCache
from tests.groups import DAEMONS, OWN_SESSIONS
from tests.manifest_servers import ManifestServer, dynalite_server
from tests.memory_folder import make_memory_folder
from tests.residency import forget, resident_bytes
from tests.s3_server import S3Server, moto_server
from tests.servers.azure import AzureServer, azurite_server
from tests.servers.gcs import GcsServer, fake_gcs_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPOSITORY = Path(__file__).parent.parent

# For every JVM that a test starts, in this process or beneath it. Few of them live long enough to gain from the second
# compiler and from parallel collections of garbage: without these a short session takes two thirds of the time.
_JAVA_OPTIONS = "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
os.environ.setdefault(
    "PYSPARK_SUBMIT_ARGS",
    f"--conf 'spark.driver.extraJavaOptions={_JAVA_OPTIONS}' --conf 'spark.executor.extraJavaOptions={_JAVA_OPTIONS}'"
    " pyspark-shell",
)

# `ci` runs the same examples on every machine; `explore` searches for new ones. No machine is too slow for either.
_PATIENT = hypothesis.settings(deadline=None, print_blob=True, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("ci", _PATIENT, derandomize=True)
hypothesis.settings.register_profile("explore", _PATIENT, max_examples=2000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Put the files of tests into memory if the caller names no folder, and let no garbage be collected for a while.

    Let Hypothesis draw no constants of this project's modules: which ones are imported depends on earlier tests, and it
    looks for them after the collection of tests.
    """
    patch = pytest.MonkeyPatch()
    patch.setattr(providers, "is_local_module_file", lambda _: False)
    config.add_cleanup(patch.undo)
    if config.option.basetemp is None and (folder := make_memory_folder()) is not None:
        config.option.basetemp = folder / "pytest"
        patch.setenv("TMPDIR", str(folder))
        config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))
    gc.disable()  # until the tests are collected, which makes many objects and little garbage


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run tests that share a costly process on one xdist worker, and those of a long file on one that has its fixtures.

    A test that starts its own costly process declares another group. Tests of short files have no group.

    xdist hands the groups out in this order, with `--no-loadscope-reorder`: first those that last long and often wait,
    then the files, and last single tests, so all workers end at about the same time.
    """
    num_tests = Counter(item.path for item in items)
    for item in items:
        room = _room_of(item)
        if _group_of(item) is None and (room is not None or num_tests[item.path] >= _LONG_FILE):
            item.add_marker(pytest.mark.xdist_group(room or item.path.stem))
    if getattr(config.option, "loadgroup", False):
        items.sort(key=_turn_of)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse a pytest to which xdist cannot tell the groups: each worker would start the costly processes again.

    The collector then leaves alone what stays until the end: looking through the tests alone takes half a second.
    """
    if getattr(session.config.option, "loadgroup", False):
        lost = [
            item.nodeid for item in session.items if _group_of(item) and not item.nodeid.endswith(f"@{_group_of(item)}")
        ]
        if lost:
            raise pytest.UsageError(f"pytest-xdist does not group {len(lost)} tests, such as {lost[0]}")
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # nanobind reports what a frozen object keeps alive


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Collect garbage again, also in the process that hands out the tests."""
    gc.enable()


_LONG_FILE = 10
"""From how many tests on a file's tests are a group."""

_ROOMS = ("spark", "dagster", "server")
_FIRST = ["dagster", "spark", *DAEMONS.args, *OWN_SESSIONS.args, "server"]


def _room_of(item: pytest.Item) -> str | None:
    return next((room for room in _ROOMS if item.get_closest_marker(room)), None)


def _turn_of(item: pytest.Item) -> int:
    group = _group_of(item)
    if group in _FIRST:
        return _FIRST.index(group)
    return len(_FIRST) + (group is None)


def _group_of(item: pytest.Item) -> str | None:
    group = item.get_closest_marker("xdist_group")
    return None if group is None else group.args[0]


@pytest.fixture(scope="session", autouse=True)
def _a_manifest_is_known_as_its_file_says_it() -> Iterator[None]:
    """Compare every manifest that a test commits with what its bytes decode to."""
    add = ManifestCache.add

    def add_checked(self: ManifestCache, data: bytes, path: str, manifest: Manifest) -> None:
        add(self, data, path, manifest)
        assert self.decode(pa.py_buffer(data), path) == decode_manifest(data, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ManifestCache, "add", add_checked)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_file_is_known_by_its_age() -> Iterator[None]:
    """Let every handle decode its files anew, as it does with young files: no test depends on the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory_map_cache, "_longest_tick_ns", lambda status: 1 << 62)
        yield


@pytest.fixture(scope="session", autouse=True)
def _small_files_are_opened_together() -> Iterator[None]:
    """Open small files as a long process does: no test depends on whether an earlier one has loaded numba."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alike_files, "_ALONE_BYTES", 1 << 62)
        yield


@pytest.fixture(scope="session", autouse=True)
def _commands_are_built_once() -> Iterator[None]:
    """Build the tree of commands once: to build it takes longer than most commands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def nothing_frozen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the collector look at all objects, as in a process that has frozen none; in the end all are frozen."""
    gc.unfreeze()
    monkeypatch.setattr(lazy_import._PAUSE, "_has_seen_frozen", False)
    yield
    gc.freeze()


_NUMBERS = count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A test's own folder.

    This replaces pytest's fixture, which lists the folders of all earlier tests to find a free name.
    """
    is_on_disk = "on_disk" in request.fixturenames
    root: Path = request.getfixturevalue("on_disk") if is_on_disk else tmp_path_factory.getbasetemp()
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = root / "tests" / f"{name}{next(_NUMBERS)}"
    folder.mkdir(0o700, parents=True)
    return folder


@pytest.fixture(scope="session")
def on_disk() -> Iterator[Path]:
    """A folder on a disk; the `tmp_path` of a test that asks for it is there."""
    parent = REPOSITORY / ".cache"
    parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tests-", dir=parent) as folder:
        yield Path(folder)


@pytest.fixture
def dataset_uri(tmp_path: Path) -> str:
    """The URI of a dataset that does not exist yet."""
    return str(tmp_path / "data.lance")


@pytest.fixture(scope="session")
def historical() -> Path:
    """The folder of datasets written by real Lance releases; its README says which release wrote which."""
    return REPOSITORY / "tests" / "golden" / "historical"


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """One S3 server a worker; tests that use it are marked `server`."""
    with moto_server() as server:
        yield server


@pytest.fixture(scope="session")
def azure_server() -> Iterator[AzureServer]:
    """One server of Azure's blobs a worker; tests that use it are marked `server`."""
    with azurite_server() as server:
        yield server


@pytest.fixture(scope="session")
def gcs_server() -> Iterator[GcsServer]:
    """One server of Google's objects a worker; tests that use it are marked `server`."""
    with fake_gcs_server() as server:
        yield server


@pytest.fixture(scope="session")
def dynalite(s3_server: S3Server) -> Iterator[Callable[[], ManifestServer]]:
    """One DynamoDB a worker beside its S3; a call makes a table."""
    with dynalite_server(s3_server) as new_table:
        yield new_table


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local session for all tests of a worker: starting one costs more than most tests."""
    from lance_ops.spark import get_or_create

    # Spark's Python workers start from the JVM: they find this checkout by PYTHONPATH only.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["TZ"] = "UTC"
    scratch = tmp_path_factory.mktemp("spark")
    session = get_or_create(
        "lance-ops tests",
        master="local[2]",
        config={
            "spark.driver.memory": "1g",
            "spark.local.dir": str(scratch / "local"),
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.sql.shuffle.partitions": "2",
        },
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def evict(on_disk: Path) -> Callable[[Path], None]:
    """Return a function that evicts an unmapped file from the page cache, or skips the test if it cannot."""

    def forget_or_skip(path: Path) -> None:
        forget(path)
        if resident_bytes(path):
            pytest.skip("this file system keeps its files in memory")

    return forget_or_skip


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record how many fragments each joined read of a take or a compaction combines."""
    counts: list[int] = []

    def counting(
        snapshot: Snapshot, fragments: Sequence[Fragment], schema: Schema, offsets: Sequence[Uint64Array] | None = None
    ) -> pa.Table | None:
        table = read_fragments_together(snapshot, fragments, schema, offsets)
        if table is not None:
            counts.append(len(fragments))
        return table

    for user in (take, live_rows):
        monkeypatch.setattr(user, "read_fragments_together", counting)
    return counts
