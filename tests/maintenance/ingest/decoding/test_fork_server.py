"""The fork server starts once, ends with its process, and leaves no decoder behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from lance_ops.errors import StoreError
from lance_ops.maintenance.ingest.decoding import fork_server
from lance_ops.maintenance.ingest.decoding.fork_server import ForkServer
from lance_ops.maintenance.ingest.raw_files import RawReader, RawReading
from tests.maintenance.ingest.decoding.raw_file_tables import MANY, raw, read, write


@pytest.fixture
def server() -> Iterator[ForkServer]:
    """A fork server of its own."""
    made = ForkServer()
    yield made
    made.let_go()


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    return write(tmp_path / "a.csv", b"a\n" + b"".join(b"%d\n" % number for number in range(MANY // 10)))


def is_running(process_id: int) -> bool:
    """Return whether a process runs; one that has ended and was not awaited does not."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends(process_id: int) -> bool:
    """Return whether a process ends within ten seconds."""
    deadline = time.monotonic() + 10
    while is_running(process_id) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_running(process_id)


def id_of(server: ForkServer) -> int:
    assert server._server is not None
    return server._server.process.pid


def test_threads_that_ask_at_once_share_one_server_and_have_a_process_each(server: ForkServer) -> None:
    together = Barrier(4)

    def fork() -> int:
        together.wait()
        decoder = server.fork()
        decoder.close()
        return decoder.process_id

    with ThreadPoolExecutor(4) as pool:
        forks = {each.result() for each in [pool.submit(fork) for _ in range(4)]}
    assert (server.num_started, len(forks)) == (1, 4)


def test_a_closed_decoder_has_ended_and_a_server_that_is_let_go_ends(server: ForkServer) -> None:
    decoder, other = server.fork(), server.fork()
    decoder.close()
    assert not is_running(decoder.process_id) and is_running(other.process_id)
    process_id = id_of(server)
    server.let_go()
    assert is_running(process_id), "a decoder of it still runs"
    other.close()
    assert not is_running(other.process_id) and ends(process_id)


def test_a_decoder_that_ends_by_itself_says_how(server: ForkServer) -> None:
    decoder = server.fork()
    with pytest.raises(TimeoutError):
        decoder.wait(0.01)
    decoder.connection.close()
    assert decoder.wait(10) == 0
    decoder.close()


def test_an_idle_server_ends_and_the_next_reader_starts_another(
    server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fork_server, "_IDLE_SECONDS", 0.2)
    first = server.fork()
    process_id = id_of(server)
    time.sleep(0.5)
    assert is_running(process_id), "it has a decoder"
    first.close()
    assert ends(process_id)
    server.fork().close()
    assert server.num_started == 2


def test_another_environment_has_another_server(server: ForkServer, monkeypatch: pytest.MonkeyPatch) -> None:
    first = server.fork()
    monkeypatch.setenv("TZ", "America/Lima")
    second = server.fork()
    zones = [
        Path(f"/proc/{each.process_id}/environ").read_bytes().count(b"TZ=America/Lima") for each in (first, second)
    ]
    assert zones == [0, 1] and is_running(first.process_id)
    for each in (first, second):
        each.close()


def test_a_decoder_has_no_descriptor_of_another_reader_or_of_the_server(server: ForkServer) -> None:
    """A file that lets its decoder crash cannot keep another one's sockets open."""
    decoders = [server.fork() for _ in range(3)]
    for decoder in decoders:
        decoder.connection.send(b"x")  # it has begun to wait for the rest of the line when it has read this
    deadline = time.monotonic() + 10
    counts = [0]
    while counts != [4] * 3 and time.monotonic() < deadline:  # the first three lead nowhere
        counts = [len(os.listdir(f"/proc/{decoder.process_id}/fd")) for decoder in decoders]
    assert counts == [4] * 3
    for decoder in decoders:
        decoder.close()


def test_a_fork_of_this_process_starts_a_server_of_its_own(csv: Path) -> None:
    assert read(csv, isolated=True).num_rows == MANY // 10
    process_id = id_of(fork_server.FORK_SERVER)
    child = os.fork()
    if not child:
        status = 1
        try:
            assert fork_server.FORK_SERVER._server is None
            assert read(csv, isolated=True).num_rows == MANY // 10
            fork_server.FORK_SERVER.let_go()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert id_of(fork_server.FORK_SERVER) == process_id and is_running(process_id)
    assert read(csv, isolated=True).num_rows == MANY // 10


def test_a_server_that_the_system_kills_says_nothing_about_the_file(csv: Path) -> None:
    with RawReader({}, RawReading()) as reader:
        batches = reader.batches(raw(csv))
        next(batches)
        assert reader._process is not None and reader._process._decoder is not None
        os.kill(id_of(fork_server.FORK_SERVER), signal.SIGKILL)
        os.kill(reader._process._decoder.process_id, signal.SIGKILL)
        with pytest.raises(StoreError, match="the process that starts decoders has ended; try again"):
            list(batches)
        assert sum(batch.num_rows for batch in reader.batches(raw(csv))) == MANY // 10


def test_nothing_is_left_of_a_reader_that_is_killed(csv: Path) -> None:
    program = """
import time
from lance_ops.maintenance.ingest.decoding.fork_server import FORK_SERVER
decoder = FORK_SERVER.fork()
print(FORK_SERVER._server.process.pid, decoder.process_id, flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        ids = [int(number) for number in reader.stdout.readline().split()]
        assert all(map(is_running, ids))
        reader.kill()
    assert all(map(ends, ids))


def test_a_process_that_ends_leaves_no_server_and_no_warning() -> None:
    program = """
from lance_ops.maintenance.ingest.decoding.fork_server import FORK_SERVER
FORK_SERVER.fork().close()
print(FORK_SERVER._server.process.pid)
"""
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == "" and ends(int(done.stdout))
