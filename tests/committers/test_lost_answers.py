"""Commits over a network that loses requests and answers, and by processes that are killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from lance_ops.committers import Committed, Conflict, PutIfAbsentCommitter, Unknown
from lance_ops.committers.create_retries import CreateRetries
from lance_ops.store import FsspecStore, LocalStore
from tests.lossy_proxy import Loss, LossyProxy, lossy_proxy
from tests.s3_server import S3Server
from tests.servers.obstore import through_obstore

OURS, THEIRS = b"ours" * 100, b"theirs" * 100


class Network:
    """A dataset seen directly, and through a proxy that can lose what is sent to `_versions`."""

    def __init__(self, server: S3Server, proxy: LossyProxy) -> None:
        uri = f"s3://{server.new_bucket()}/table"
        # The client tries once again by itself, as clients do (ten times and more by default).
        retries = {"client_max_retries": "1", "download_retry_count": "0"}
        through = {**server.storage_options, "aws_endpoint": proxy.endpoint, **retries}
        self.direct = PutIfAbsentCommitter(FsspecStore(uri, server.storage_options))
        self.ours = PutIfAbsentCommitter(FsspecStore(uri, through), retries=CreateRetries(3, 0.01))
        self.proxy = proxy
        assert isinstance(self.ours.commit(1, b"first"), Committed)  # with the probe, before anything is lost

    def lose(self, method: str, loss: Loss, times: int) -> None:
        left = [loss] * times

        def decide(asked: str, path: str) -> Loss | None:
            return left.pop() if asked == method and path.endswith(".manifest") and left else None

        self.proxy.lose = decide


@pytest.fixture(params=["fsspec", "obstore"])
def network(s3_server: S3Server, request: pytest.FixtureRequest) -> object:
    if request.param == "obstore":
        s3_server = through_obstore(s3_server)
    with lossy_proxy(s3_server.endpoint) as proxy:
        yield Network(s3_server, proxy)


@pytest.mark.server
@pytest.mark.parametrize("loss", ["request", "answer"])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_commit_whose_requests_or_answers_are_lost_is_made_once(network: Network, loss: Loss, times: int) -> None:
    network.lose("PUT", loss, times)

    outcome = network.ours.commit(2, OURS)

    assert isinstance(outcome, Committed)
    assert network.direct.versions() == [1, 2]
    assert network.direct.read(2).to_pybytes() == OURS


@pytest.mark.server
@pytest.mark.parametrize("loss", ["request", "answer"])
def test_a_lost_race_is_a_conflict_whatever_the_network_loses(network: Network, loss: Loss) -> None:
    network.direct.commit(2, THEIRS)
    network.lose("PUT", loss, 1)

    outcome = network.ours.commit(2, OURS)

    assert isinstance(outcome, Conflict)
    assert outcome.theirs.to_pybytes() == THEIRS
    assert network.direct.read(2).to_pybytes() == THEIRS


@pytest.mark.server
@pytest.mark.parametrize(("loss", "landed"), [("request", False), ("answer", True)])
def test_a_network_that_never_answers_leaves_the_outcome_unknown(network: Network, loss: Loss, landed: bool) -> None:
    network.proxy.lose = lambda method, path: loss if path.endswith(".manifest") else None

    assert isinstance(network.ours.commit(2, OURS), Unknown)

    assert network.direct.exists(2) is landed
    assert "DELETE" not in [method for method, path in network.proxy.seen if path.endswith(".manifest")]


def _commit_for_ever(root: str) -> None:
    committer = PutIfAbsentCommitter(LocalStore(root))
    while True:
        version = (committer.latest() or 0) + 1
        committer.commit(version, b"%d " % version * 5000)


def test_processes_killed_while_committing_leave_whole_versions_and_no_gap(tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lance_ops.store", "lance_ops.committers"])
    committer = PutIfAbsentCommitter(LocalStore(str(tmp_path)))
    for _ in range(3):
        before = committer.latest() or 0
        victims = [context.Process(target=_commit_for_ever, args=(str(tmp_path),)) for _ in range(3)]
        for victim in victims:
            victim.start()
        deadline = time.monotonic() + 60
        while (committer.latest() or 0) < before + 10 and time.monotonic() < deadline:
            time.sleep(0.01)
        for victim in victims:
            assert victim.pid is not None
            os.kill(victim.pid, signal.SIGKILL)
            victim.join()

        latest = committer.latest()
        assert latest is not None and latest >= before + 10
        assert committer.versions() == list(range(1, latest + 1))
        for version in range(before + 1, latest + 1):
            assert committer.read(version).to_pybytes() == b"%d " % version * 5000
        assert isinstance(committer.commit(latest + 1, b"%d " % (latest + 1) * 5000), Committed)
