"""Commits on Ceph, a server of S3's protocol that honours the conditional create."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.store import PutOutcome, Store, prove_conditional_create
from tests.conformance.races import NUM_RACERS, race_in_threads
from tests.s3_server import S3Server
from tests.servers.ceph import ceph_server

pytestmark = [pytest.mark.soak, pytest.mark.server]


@pytest.fixture(scope="module")
def ceph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with ceph_server(tmp_path_factory.mktemp("ceph")) as server:
        yield server


def _create(store: Store, name: str, racer: int) -> PutOutcome:
    return store.put_if_absent(name, b"%d" % racer * 1000)


def test_ceph_honours_the_condition_and_one_of_racing_threads_creates(ceph: S3Server) -> None:
    store = ceph.new_store()
    prove_conditional_create(store)
    assert list(store.list()) == list(store.list_temporary()) == []
    for a_round in range(10):
        outcomes = race_in_threads(partial(_create, store, f"v/{a_round}"))
        assert sorted(outcome.value for outcome in outcomes) == ["created"] + ["exists"] * (NUM_RACERS - 1)
        assert store.get(f"v/{a_round}").to_pybytes() == b"%d" % outcomes.index(PutOutcome.CREATED) * 1000


def test_a_large_conditional_create_is_one_request(ceph: S3Server) -> None:
    store, data = ceph.new_store(), b"x" * (101 << 20)
    assert store.put_if_absent("large", data) is PutOutcome.CREATED
    assert store.put_if_absent("large", data[:10]) is PutOutcome.EXISTS
    assert store.size("large") == len(data)


@pytest.mark.interop
@pytest.mark.parametrize("manifest_store", ["none", "sqlite"])
def test_both_libraries_share_a_table_on_ceph(ceph: S3Server, manifest_store: str, tmp_path: Path) -> None:
    import lance

    uri, options = ceph.new_uri("table.lance"), ceph.storage_options
    ours = options if manifest_store == "none" else {**options, "manifest_store": f"sqlite:///{tmp_path}/rows.sqlite"}
    table = pa.table({"a": list(range(1000))})
    lance_ops.write_dataset(table, uri, storage_options=ours)
    if manifest_store == "none":
        lance.write_dataset(table, uri, mode="append", storage_options=options)
    else:
        lance_ops.write_dataset(table, uri, mode="append", storage_options=ours)
    lance_ops.dataset(uri, storage_options=ours).delete("a < 10")

    read = [library.dataset(uri, storage_options=them) for library, them in ((lance_ops, ours), (lance, options))]
    assert [dataset.version for dataset in read] == [3, 3]
    assert [dataset.count_rows() for dataset in read] == [1980, 1980]
