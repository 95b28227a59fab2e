"""How often an object store is asked: what a commit and a scan cost, counted by a proxy before a server.

The names of the counts are those of S3's requests; see `request_name`.

A process keeps small manifests by the tags that listings state. So each count says what the process knows beforehand:
`KNOWN_MANIFESTS.reset()` stands for a new process, or for versions that other processes have made.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.committers import recently_empty
from lance_ops.committers.known_manifests import KNOWN_MANIFESTS
from tests.lossy_proxy import LossyProxy, lossy_proxy, request_name
from tests.manifest_servers import ManifestServer
from tests.s3_server import S3Server
from tests.store.conftest import ObjectServer

pytestmark = pytest.mark.server

TABLE = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})

MEETING_SECONDS = 60
"""Requests that are made side by side meet within this time, also on a busy machine."""


class Counted:
    """A table of some fragments, and the requests that doing something to it takes."""

    def __init__(self, uri: str, options: dict[str, str], proxy: LossyProxy) -> None:
        self.uri = uri
        self.options = options
        self._proxy = proxy
        for _ in range(4):
            self.append()

    def append(self) -> None:
        lance_ops.write_dataset(TABLE, self.uri, mode="append", storage_options=self.options)

    def open(self, version: int | None = None) -> lance_ops.LanceDataset:
        return lance_ops.dataset(self.uri, version, storage_options=self.options)

    def requests(self, act: Callable[[], object]) -> Counter[str]:
        before = len(self._proxy.seen)
        act()
        return Counter(request_name(method, path) for method, path in self._proxy.seen[before:])


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget the manifests of earlier tests, and leave none to later ones; let no slow machine outlast a look."""
    monkeypatch.setattr(recently_empty, "_SECONDS", 600.0)
    KNOWN_MANIFESTS.reset()
    yield
    KNOWN_MANIFESTS.reset()


@pytest.fixture
def requests_for_what_was_written(object_server: ObjectServer) -> dict[str, int]:
    """The requests that read a manifest which this process wrote and has not read.

    There are none if the tag in the listing is the digest of the bytes, as only S3's is.
    """
    return {} if isinstance(object_server, S3Server) else {"GET": 1}


@pytest.fixture
def counted(object_server: ObjectServer) -> Iterator[Counted]:
    with lossy_proxy(object_server.endpoint) as proxy:
        options = replace(object_server, endpoint=proxy.endpoint).storage_options
        yield Counted(object_server.new_uri("table.lance"), options, proxy)


@pytest.fixture
def counted_with_rows(s3_server: S3Server, dynalite: Callable[[], ManifestServer]) -> Iterator[Counted]:
    """A table that DynamoDB has the rows of; requests to its bucket are counted."""
    rows = dynalite()
    uri = f"s3+ddb://{s3_server.new_bucket()}/table.lance?ddbTableName={rows.url.removeprefix('dynamodb://')}"
    with lossy_proxy(s3_server.endpoint) as proxy:
        yield Counted(uri, {**rows.storage_options, "aws_endpoint": proxy.endpoint}, proxy)


def test_opening_a_new_version_takes_a_list_and_a_manifest_and_a_known_one_the_list(counted: Counted) -> None:
    KNOWN_MANIFESTS.reset()
    assert counted.requests(counted.open) == {"LIST": 1, "GET": 1}
    assert counted.requests(counted.open) == {"LIST": 1}


def test_a_version_that_the_process_wrote_is_known_if_its_tag_is_a_digest(
    counted: Counted, requests_for_what_was_written: dict[str, int]
) -> None:
    assert counted.requests(counted.open) == {"LIST": 1, **requests_for_what_was_written}


def test_an_append_writes_three_objects_and_lists_before_and_after_it(
    counted: Counted, requests_for_what_was_written: dict[str, int]
) -> None:
    # The file, the transaction and the manifest. Versions are listed to open the table, before the commit and after it.
    # The last two listings state the tag of the version that was read, so they show that the dataset is still the same.
    listed = {"LIST": 3, "PUT": 3}
    KNOWN_MANIFESTS.reset()
    assert counted.requests(counted.append) == {**listed, "GET": 1}
    assert counted.requests(counted.append) == {**listed, **requests_for_what_was_written}
    counted.open()
    assert counted.requests(counted.append) == listed


def test_a_commit_on_a_forgotten_version_looks_for_the_dataset_before_and_after_it(counted: Counted) -> None:
    # The listings cannot tell whether the dataset is the one that was read, so its transaction's file is looked for.
    dataset = counted.open()
    KNOWN_MANIFESTS.reset()
    # Versions are listed as in any append.
    assert counted.requests(lambda: dataset.insert(TABLE)) == {"LIST": 3, "PUT": 3, "HEAD": 2}


def test_a_commit_makes_requests_beside_its_listings(s3_server: S3Server) -> None:
    # The second HEAD looks for the dataset after the commit; the first one comes alone, before it.
    pairs = (("LIST 1", "transaction 1"), ("LIST 2", "HEAD 2"))
    assert requests_that_meet(s3_server, pairs) == {*pairs[0], *pairs[1]}


def test_a_rebased_commit_writes_its_transaction_beside_the_look_for_the_dataset(s3_server: S3Server) -> None:
    # Another delete changed the same fragments, so the transaction is written a second time. The first HEAD looks for
    # the version that was read.
    pairs = (("LIST 1", "transaction 1"), ("HEAD 2", "transaction 2"))
    assert requests_that_meet(s3_server, pairs, lambda table: table.open().delete("a = 1")) == {*pairs[0], *pairs[1]}


def test_a_scan_takes_one_request_a_small_file_and_the_next_scan_none(counted: Counted) -> None:
    dataset = counted.open()
    assert counted.requests(dataset.to_table) == {"GET": 4}
    assert counted.requests(lambda: dataset.to_table(filter="a = 2", columns=["b"])) == {}
    assert counted.requests(lambda: dataset.take([0, 5, 11])) == {}


def test_a_take_from_a_new_handle_asks_once_for_each_small_file_that_holds_rows(counted: Counted) -> None:
    # Three files, and the manifest if the process does not know it.
    KNOWN_MANIFESTS.reset()
    assert counted.requests(lambda: counted.open().take([0, 5, 11])) == {"LIST": 1, "GET": 4}
    assert counted.requests(lambda: counted.open().take([0, 5, 11])) == {"LIST": 1, "GET": 3}


def test_a_first_write_proves_the_bucket_by_its_transaction_and_a_second_one_needs_no_proof(
    object_server: ObjectServer,
) -> None:
    with lossy_proxy(object_server.endpoint) as proxy:
        options = replace(object_server, endpoint=proxy.endpoint).storage_options
        bucket = object_server.new_uri("")

        def written(mode: str, name: str) -> Counter[str]:
            proxy.seen.clear()
            lance_ops.write_dataset(TABLE, f"{bucket}{name}", mode=mode, storage_options=options)
            return Counter(request_name(*seen) for seen in proxy.seen)

        # One listing finds no object where the table will be, and one the versions after the commit. Three objects are
        # written. The proof creates the transaction's file once more, in vain.
        assert written("create", "first.lance") == {"LIST": 2, "PUT": 4}
        assert written("create", "second.lance") == {"LIST": 2, "PUT": 3}
        # The manifest of the oldest tables is looked for where no version is found.
        assert written("overwrite", "third.lance") == {"LIST": 2, "PUT": 3, "GET": 1}


def test_a_delete_reads_each_small_file_once(counted: Counted) -> None:
    # Four deletion files, the transaction and the manifest; and versions are listed before the commit and after it.
    dataset = counted.open()
    assert counted.requests(lambda: dataset.delete("a = 2")) == {"GET": 4, "LIST": 2, "PUT": 6}


def test_a_delete_that_other_processes_were_faster_than_reads_what_they_made_without_another_look(
    counted: Counted,
) -> None:
    for _ in range(3):
        counted.append()
    KNOWN_MANIFESTS.reset()
    dataset = counted.open(version=4)
    # The four files and three manifests. Those were requested after the listing, so the dataset is looked for by the
    # transaction of the version that was read; else as when nothing had landed.
    assert counted.requests(lambda: dataset.delete("a = 2")) == {"GET": 7, "LIST": 2, "PUT": 6, "HEAD": 1}


def test_a_delete_that_others_were_faster_than_looks_for_a_version_that_was_forgotten(counted: Counted) -> None:
    dataset = counted.open()
    for _ in range(3):
        counted.append()
    KNOWN_MANIFESTS.reset()
    # The version that was read is looked for too, by its manifest: the listing does not tell that it is the same one.
    assert counted.requests(lambda: dataset.delete("a = 2")) == {"GET": 7, "LIST": 2, "PUT": 6, "HEAD": 2}


def test_a_delete_reads_no_manifest_that_the_process_wrote_itself_and_knows(counted: Counted) -> None:
    dataset = counted.open()
    for _ in range(3):
        counted.append()
    counted.open()  # also where tags are not digests
    assert counted.requests(lambda: dataset.delete("a = 2")) == {"GET": 4, "LIST": 2, "PUT": 6}


def test_a_merge_of_many_keys_into_a_short_table_reads_the_index_and_the_files_that_change(s3_server: S3Server) -> None:
    with lossy_proxy(s3_server.endpoint) as proxy:
        options = replace(s3_server, endpoint=proxy.endpoint).storage_options
        rows = pa.table({"a": range(40), "b": range(40)})
        table = lance_ops.write_dataset(rows, s3_server.new_uri("t"), max_rows_per_file=5, storage_options=options)
        table.create_scalar_index("a", "BTREE")
        table = lance_ops.dataset(table.uri, storage_options=options)
        proxy.seen.clear()
        changed = pa.table({"a": [*range(10, 15), *range(100, 120)], "b": [0] * 25})
        table.merge_insert("a").when_matched_update_all().execute(changed)
        gets = [path for method, path in proxy.seen if request_name(method, path) == "GET"]
        # The two files of the index, and of eight fragments the one that holds keys of the source.
        assert sorted("_indices" in path for path in gets) == [False, True, True]
        assert table.to_table(filter="b = 0")["a"].to_pylist() == [0, *range(10, 15)]


def test_a_restore_pins_its_version_beside_what_it_looks_for(s3_server: S3Server) -> None:
    together, met, lock = threading.Barrier(3, timeout=120), list[str](), threading.Lock()
    with lossy_proxy(s3_server.endpoint) as proxy:
        options = replace(s3_server, endpoint=proxy.endpoint).storage_options
        table = Counted(s3_server.new_uri("table.lance"), options, proxy)
        old = table.open(version=2)

        def wait_for_the_others(method: str, path: str) -> None:
            kind = next((each for each in ("pins", "erasures", "_versions") if each in path), None)
            with lock:
                is_the_first = kind and method != "POST" and kind not in met
                met.extend([kind] if kind and is_the_first else [])
            if is_the_first:
                together.wait()

        proxy.lose = wait_for_the_others
        # Three listings look for erasures, announced removals and the newest version; two are those of any commit. They
        # show the restored version too, so nothing else looks for it. The POST deletes the pin.
        assert table.requests(old.restore) == {"LIST": 5, "PUT": 3, "POST": 1}
        assert table.open().count_rows() == 6


def test_a_row_in_a_manifest_store_spares_the_listings(counted_with_rows: Counted) -> None:
    assert counted_with_rows.requests(counted_with_rows.open) == {"GET": 1}
    # What is staged is copied and deleted, and once it is looked whether the version is there without a row.
    assert counted_with_rows.requests(counted_with_rows.append) == {"GET": 2, "PUT": 4, "HEAD": 2, "POST": 1}


def test_files_of_one_write_are_sent_side_by_side(s3_server: S3Server) -> None:
    together, met = threading.Barrier(4, timeout=120), list[str]()

    def wait_for_the_others(method: str, path: str) -> None:
        if method == "PUT" and "/data/" in path:
            with suppress(threading.BrokenBarrierError):
                together.wait()
                met.append(path)

    with lossy_proxy(s3_server.endpoint) as proxy:
        options = replace(s3_server, endpoint=proxy.endpoint).storage_options
        uri = s3_server.new_uri("table.lance")
        proxy.lose = wait_for_the_others
        written = lance_ops.write_dataset(
            pa.table({"a": range(40)}), uri, max_rows_per_file=10, storage_options=options
        )
    assert len(met) == 4
    assert [fragment.physical_rows for fragment in written.get_fragments()] == [10] * 4


def test_the_two_files_of_an_index_are_sent_side_by_side(s3_server: S3Server) -> None:
    together, met = threading.Barrier(2, timeout=120), list[str]()

    def wait_for_the_other(method: str, path: str) -> None:
        if method == "PUT" and "/_indices/" in path:
            with suppress(threading.BrokenBarrierError):
                together.wait()
                met.append(path.rpartition("/")[2])

    with lossy_proxy(s3_server.endpoint) as proxy:
        options = replace(s3_server, endpoint=proxy.endpoint).storage_options
        uri = s3_server.new_uri("table.lance")
        table = lance_ops.write_dataset(TABLE, uri, max_rows_per_file=2, storage_options=options)
        proxy.lose = wait_for_the_other
        table.create_scalar_index("a", "BTREE")
        assert sorted(met) == ["page_data.lance", "page_lookup.lance"]
        # A compaction writes them again with other addresses.
        met.clear()
        proxy.seen.clear()
        assert table.optimize.compact_files().fragments_removed == 2
        gets = [path.rpartition("/")[2] for method, path in proxy.seen if method == "GET" and "/_indices/" in path]
        assert gets.count("page_lookup.lance") == 1  # it is opened and copied
        assert sorted(met) == ["page_data.lance", "page_lookup.lance"]
        assert table.to_table(filter="a = 2")["b"].to_pylist() == ["y"]


@pytest.mark.parametrize("known", [False, True], ids=["unknown versions", "known versions"])
def test_a_clean_up_reads_a_version_once_to_plan_and_once_to_remove_it(s3_server: S3Server, known: bool) -> None:
    with lossy_proxy(s3_server.endpoint) as proxy:
        options = replace(s3_server, endpoint=proxy.endpoint).storage_options
        table = Counted(s3_server.new_uri("table.lance"), options, proxy)
        table.open().update({"a": "a + 1"})
        stats = []
        if not known:
            KNOWN_MANIFESTS.reset()
        requests = table.requests(lambda: stats.append(table.open().cleanup_old_versions(retain_versions=1)))
        # The plan reads all five versions unless they are known. The removal reads the four old ones in any case, so
        # that it can put them back. One HEAD asks for the store's time, the other one for the transaction's file, which
        # shows that the dataset is the same. The PUT announces the removal; no batch was ingested, so there is no
        # checkpoint to write. The first POST deletes all files, the second one deletes the manifests of the old
        # versions, and the third one deletes the announcement: obstore deletes a single object by a POST, too.
        read = {"GET": 4 if known else 9}
        assert requests == {"LIST": 27, **read, "HEAD": 2, "PUT": 1, "POST": 3}
    assert (stats[0].old_versions, stats[0].data_files_removed, stats[0].failed_deletes) == (4, 4, 0)
    assert table.open().to_table()["a"].to_pylist() == [2, 3, 4] * 4


def test_a_clean_up_reads_the_manifests_that_it_removes_side_by_side(s3_server: S3Server) -> None:
    together, met = threading.Barrier(12, timeout=120), list[str]()

    def wait_for_the_others(method: str, path: str) -> None:
        if method == "GET" and path.endswith(".manifest"):
            with suppress(threading.BrokenBarrierError):
                together.wait()
                met.append(path)

    with lossy_proxy(s3_server.endpoint) as proxy:
        options = replace(s3_server, endpoint=proxy.endpoint).storage_options
        table = Counted(s3_server.new_uri("table.lance"), options, proxy)
        for _ in range(9):
            table.append()
        proxy.lose = wait_for_the_others
        # The plan reads no manifest, because the process wrote all of them.
        assert table.open().cleanup_old_versions(retain_versions=1).old_versions == 12
    assert len(set(met)) == len(met) == 12


def test_versions_are_read_side_by_side(s3_server: S3Server) -> None:
    with lossy_proxy(s3_server.endpoint) as proxy:
        options = replace(s3_server, endpoint=proxy.endpoint).storage_options
        table = Counted(s3_server.new_uri("table.lance"), options, proxy)
        dataset, together, met = table.open(), threading.Barrier(4, timeout=MEETING_SECONDS), list[str]()
        KNOWN_MANIFESTS.reset()

        def wait_for_the_others(method: str, path: str) -> None:
            if path.endswith(".manifest"):
                with suppress(threading.BrokenBarrierError):  # a broken barrier lets all others go at once
                    together.wait()
                    met.append(path)

        proxy.lose = wait_for_the_others
        assert len(dataset.versions()) == 4
        assert not together.broken, f"4 requests did not meet within {MEETING_SECONDS} s"
        assert len(set(met)) == len(met) == 4
        proxy.lose = lambda method, path: None
        # Known versions need no requests but the listings, of the newest version and of all.
        assert table.requests(dataset.versions) == {"LIST": 2}


def requests_that_meet(
    server: S3Server, pairs: Sequence[tuple[str, str]], before: Callable[[Counted], object] = lambda table: None
) -> set[str]:
    """Return the requests of a delete that met the other one of their pair: each waits at the proxy for it.

    A request is stated by its kind and its number among those of its kind. The process runs `before` between the
    opening and the delete, and then forgets every manifest.
    """
    barriers = [threading.Barrier(2, timeout=MEETING_SECONDS) for _ in pairs]
    waits = {request: barrier for pair, barrier in zip(pairs, barriers, strict=True) for request in pair}
    seen, met = list[str](), list[str]()

    def wait_for_the_other(method: str, path: str) -> None:
        kind = "transaction" if method == "PUT" and "_transactions" in path else request_name(method, path)
        seen.append(kind)  # no two requests of one kind that is waited for are made at once
        request = f"{kind} {seen.count(kind)}"
        if request in waits:
            with suppress(threading.BrokenBarrierError):
                waits[request].wait()
                met.append(request)

    with lossy_proxy(server.endpoint) as proxy:
        options = replace(server, endpoint=proxy.endpoint).storage_options
        table = Counted(server.new_uri("table.lance"), options, proxy)
        dataset = table.open()
        before(table)
        KNOWN_MANIFESTS.reset()
        proxy.lose = wait_for_the_other
        dataset.delete("a = 2")
    # A client repeats a request that waits for too long, and then others could meet it.
    assert (seen.count("LIST"), seen.count("HEAD")) == (2, 2), seen
    return set(met)
