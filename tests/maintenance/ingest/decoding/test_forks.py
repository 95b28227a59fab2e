"""The fork server starts once, ends with its process, and leaves no decoder behind."""

from __future__ import annotations

import collections
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.errors import StoreError
from lance_ops.maintenance.ingest.decoding import fork_client
from lance_ops.maintenance.ingest.decoding.fork_client import ForkClient
from lance_ops.maintenance.ingest.raw_files import RawReader, RawReading
from tests.maintenance.ingest.decoding.raw_file_tables import MANY, raw, read, write, write_parquet


@pytest.fixture
def client() -> Iterator[ForkClient]:
    """A client with a fork server of its own."""
    made = ForkClient()
    yield made
    made.disconnect()


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


def id_of(client: ForkClient) -> int:
    assert client._server is not None
    return client._server.process.pid


def kill_server_of(reader: RawReader) -> bool:
    """Kill the fork server, and return whether the reader's decoder ends."""
    assert reader._process is not None and reader._process._decoder is not None
    process_id = reader._process._decoder.process_id
    os.kill(id_of(fork_client.FORK_CLIENT), signal.SIGKILL)
    return ends(process_id)


def test_threads_that_ask_at_once_share_one_server_and_have_a_process_each(client: ForkClient) -> None:
    together = Barrier(4)

    def fork() -> int:
        together.wait()
        decoder = client.fork()
        decoder.close()
        return decoder.process_id

    with ThreadPoolExecutor(4) as pool:
        forks = {each.result() for each in [pool.submit(fork) for _ in range(4)]}
    assert (client.num_servers, len(forks)) == (1, 4)


def test_a_closed_decoder_has_ended_and_a_server_that_nobody_is_connected_to_ends(client: ForkClient) -> None:
    decoder, other = client.fork(), client.fork()
    decoder.close()
    assert not is_running(decoder.process_id) and is_running(other.process_id)
    process_id = id_of(client)
    client.disconnect()
    assert is_running(process_id), "a decoder of it still runs"
    other.close()
    assert not is_running(other.process_id) and ends(process_id)


def test_a_decoder_that_ends_by_itself_says_how(client: ForkClient) -> None:
    decoder = client.fork()
    with pytest.raises(TimeoutError):
        decoder.wait(0.01)
    decoder.connection.close()
    assert decoder.wait(10) == 0
    decoder.close()


def test_an_idle_server_ends_and_the_next_reader_starts_another(
    client: ForkClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fork_client, "_IDLE_SECONDS", 0.2)
    first = client.fork()
    process_id = id_of(client)
    time.sleep(0.5)
    assert is_running(process_id), "it has a decoder"
    first.close()
    assert ends(process_id)
    client.fork().close()
    assert client.num_servers == 2


def test_another_environment_has_another_server(client: ForkClient, monkeypatch: pytest.MonkeyPatch) -> None:
    first = client.fork()
    monkeypatch.setenv("TZ", "America/Lima")
    second = client.fork()
    zones = [
        Path(f"/proc/{each.process_id}/environ").read_bytes().count(b"TZ=America/Lima") for each in (first, second)
    ]
    assert zones == [0, 1] and is_running(first.process_id)
    for each in (first, second):
        each.close()


def test_a_decoder_has_no_descriptor_of_another_reader_or_of_the_server(client: ForkClient) -> None:
    """A file that lets its decoder crash cannot keep another one's sockets open."""
    decoders = [client.fork() for _ in range(3)]
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
    process_id = id_of(fork_client.FORK_CLIENT)
    child = os.fork()
    if not child:
        status = 1
        try:
            assert fork_client.FORK_CLIENT._server is None
            assert read(csv, isolated=True).num_rows == MANY // 10
            fork_client.FORK_CLIENT.disconnect()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert id_of(fork_client.FORK_CLIENT) == process_id and is_running(process_id)
    assert read(csv, isolated=True).num_rows == MANY // 10


def test_a_fork_of_this_process_does_not_end_its_decoders(csv: Path) -> None:
    with RawReader({}, RawReading()) as reader:
        batches = reader.batches(raw(csv))
        begun = next(batches).num_rows
        child = os.fork()
        if not child:
            reader.__exit__(None, None, None)
            os._exit(0)
        os.waitpid(child, 0)
        assert begun + sum(batch.num_rows for batch in batches) == MANY // 10
        assert reader._process is not None and reader._process.num_started == 1


def test_a_fork_waits_until_no_thread_starts_a_server(client: ForkClient) -> None:
    """The child would keep the ends of its sockets open, and nobody would notice the end of the server."""
    client.before_fork()
    with ThreadPoolExecutor(1) as pool:
        forked = pool.submit(client.fork)
        with pytest.raises(TimeoutError):
            forked.result(0.1)
        client.after_fork_in_parent()
        forked.result(10).close()


def test_a_file_whose_fork_server_is_killed_once_is_read_on_from_there(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", pa.table({"a": np.arange(MANY)}))
    with RawReader({}, RawReading()) as reader:
        batches = reader.batches(raw(path))
        found = [next(batches)]
        assert kill_server_of(reader), "the system kills its decoders"
        found += batches
        assert pa.Table.from_batches(found)["a"].combine_chunks().equals(pa.array(np.arange(MANY)))


def test_a_fork_server_that_is_killed_twice_says_nothing_about_the_file(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", pa.table({"a": np.arange(MANY)}))
    with RawReader({}, RawReading()) as reader:
        killed = (kill_server_of(reader) for _ in reader.batches(raw(path)))
        with pytest.raises(StoreError, match="starts decoders has ended; try again"):
            collections.deque(killed, maxlen=0)
        assert sum(batch.num_rows for batch in reader.batches(raw(path))) == MANY


def test_a_server_that_cannot_fork_says_why_and_goes_on(client: ForkClient, monkeypatch: pytest.MonkeyPatch) -> None:
    fails_once = """
import os
fork = os.fork
def fail():
    os.fork = fork
    raise BlockingIOError(11, "no process is left")
os.fork = fail
"""
    program = fork_client._program()
    monkeypatch.setattr(fork_client, "_program", lambda: fails_once + program)
    with pytest.raises(BlockingIOError, match="Resource temporarily unavailable"):
        client.fork()
    client.fork().close()
    assert client.num_servers == 1


def test_a_program_with_a_default_timeout_for_sockets_reads_files(csv: Path) -> None:
    fork_client.FORK_CLIENT.disconnect()
    socket.setdefaulttimeout(5)
    try:
        assert read(csv, isolated=True).num_rows == MANY // 10
    finally:
        socket.setdefaulttimeout(None)


def test_a_decoder_stays_within_the_limits_that_it_inherited(csv: Path) -> None:
    program = f"""
import resource
resource.setrlimit(resource.RLIMIT_CPU, (900, 1000))
from lance_ops.maintenance.ingest.raw_files import RawReader, RawReading
from tests.maintenance.ingest.decoding.raw_file_tables import raw
from pathlib import Path
with RawReader({{}}, RawReading()) as reader:
    print(sum(batch.num_rows for batch in reader.batches(raw(Path({str(csv)!r})))))
    print(open(f"/proc/{{reader._process._decoder.process_id}}/limits").read())
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[0] == str(MANY // 10)
    assert re.search(r"Max cpu time +\d+ +1000 ", said)


def test_nothing_is_left_of_a_reader_that_is_killed(csv: Path) -> None:
    program = """
import time
from lance_ops.maintenance.ingest.decoding.fork_client import FORK_CLIENT
decoder = FORK_CLIENT.fork()
print(FORK_CLIENT._server.process.pid, decoder.process_id, flush=True)
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
from lance_ops.maintenance.ingest.decoding.fork_client import FORK_CLIENT
FORK_CLIENT.fork().close()
print(FORK_CLIENT._server.process.pid)
"""
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == "" and ends(int(done.stdout))
