"""Decoding raw files here, and in a process of their own. `tests/security` crashes it."""

from __future__ import annotations

import ast
import collections
import os
import pickle
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.json
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_ops.errors import RawFileRefused, RawFileTooLarge, StoreError
from lance_ops.maintenance.ingest.decoding import decoder, fork_client, json_bytes
from lance_ops.maintenance.ingest.decoding.decoding_process import DecodingProcess
from lance_ops.maintenance.ingest.decoding.fork_client import DECODING_MODULES, FORK_CLIENT
from lance_ops.maintenance.ingest.decoding.requests import (
    BLOCK_BYTES,
    DecodingRefused,
    RawLimits,
    RawRequest,
    RawSource,
)
from lance_ops.maintenance.ingest.raw_files import RawReader, RawReading
from tests.maintenance.ingest.decoding.raw_file_tables import (
    MANY,
    TABLE,
    deep_json,
    raw,
    read,
    write,
    write_ipc,
    write_parquet,
)
from tests.maintenance.ingest.decoding.text_files import BOTH


def decoder_of(reader: RawReader) -> int:
    """Return the id of the process that decodes for a reader."""
    assert reader._process is not None and reader._process._decoder is not None
    return reader._process._decoder.process_id


@BOTH
@pytest.mark.parametrize(("ending", "write_table"), [("parquet", write_parquet), ("arrow", write_ipc)])
def test_a_good_file_is_read_as_it_was_written(
    tmp_path: Path, isolated: bool, ending: str, write_table: Callable[[Path, pa.Table], Path]
) -> None:
    path = write_table(tmp_path / f"a.{ending}", TABLE)
    assert read(path, isolated).equals(TABLE)
    with RawReader({}, RawReading(isolated=isolated)) as reader:
        assert reader.schema(raw(path)) == TABLE.schema.remove_metadata()


@BOTH
def test_text_files_are_read_as_arrow_reads_them(tmp_path: Path, isolated: bool) -> None:
    rows = "".join(f'{{"a": {row}, "b": "x[{{\\\\\\"{row}", "c": [{{"d": null}}]}}\n' for row in range(40_000))
    assert len(rows) > 1024**2, "more than one block"
    path = write(tmp_path / "a.jsonl", rows.encode())
    assert read(path, isolated).equals(pa.json.read_json(path))
    csv = write(tmp_path / "a.csv", b"a,b\n" + b"".join(b'%d,"x,\n%d"\n' % (row, row) for row in range(1000)))
    assert read(csv, isolated).equals(pa.csv.read_csv(csv))


@BOTH
def test_an_empty_table_and_a_batch_without_rows_are_read(tmp_path: Path, isolated: bool) -> None:
    path = tmp_path / "a.arrow"
    with pa.ipc.new_file(path, TABLE.schema) as writer:
        writer.write_table(TABLE.slice(0, 10))
        writer.write_batch(TABLE.to_batches()[0].slice(0, 0))
        writer.write_table(TABLE.slice(10, 5))
    assert read(path, isolated).num_rows == 15
    assert read(write_parquet(tmp_path / "b.parquet", TABLE.slice(0, 0)), isolated).num_rows == 0


LATE_FIELDS = {
    "a column": ('{"a": 1, "late": 3}', '"late"'),
    "in a struct": ('{"a": 1, "s": {"k": "v", "late": 3}}', '"s.late"'),
    "in a list of structs": ('{"a": 1, "l": [{"x": 1}, {"x": 1, "late": 3}]}', '"l.late"'),
}


@pytest.mark.parametrize(("row", "name"), LATE_FIELDS.values(), ids=LATE_FIELDS)
def test_a_json_field_first_seen_after_the_schema_was_inferred_is_refused_by_name(
    row: str, name: str, tmp_path: Path
) -> None:
    """Arrow infers the schema from the first block. A later field once vanished without a word."""
    first = '{"a": 1, "s": {"k": "v"}, "l": [{"x": 1}]}\n'
    path = write(tmp_path / "late.jsonl", (first * 40_000 + row + "\n").encode())
    with pytest.raises(RawFileRefused, match=f"line 40001: the field {name} is in no earlier row"):
        read(path, isolated=False)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(["[", "]", "{", "}", '"', "\\", "a", "\n"]), max_size=30).map("".join), st.integers(1, 7)
)
def test_the_scan_of_json_counts_brackets_outside_texts(text: str, block_bytes: int) -> None:
    """Compared with a plain walk over the characters, with blocks that end anywhere."""
    text = "{" * 31 + text  # no text is outside of a row
    depth = deepest = 0
    in_text = escaped = False
    for character in text:
        was_escaped, escaped = escaped, character == "\\" and not escaped
        if was_escaped and character in '"\\':
            continue
        if character == '"':
            in_text = not in_text
        elif not in_text and character in "[]{}":
            depth += 1 if character in "[{" else -1
            deepest = max(deepest, depth)
    with tempfile.NamedTemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_bytes, "BLOCK_BYTES", block_bytes)
        file.write(text.encode())
        file.flush()
        source = RawSource(file.name, None, "utf-8", 1000)
        json_bytes.check_json(source, RawLimits(depth=deepest))
        with pytest.raises(DecodingRefused, match="deep"):
            json_bytes.check_json(source, RawLimits(depth=deepest - 1))


def test_a_refusal_travels_between_processes() -> None:
    error = pickle.loads(pickle.dumps(RawFileTooLarge("a.csv", "it has 2 rows", "rows", 1)))
    assert (error.path, error.limit, error.allowed) == ("a.csv", "rows", 1)
    assert str(error) == "raw file a.csv: it has 2 rows; raw.limits.rows is 1; raise it if the file is sound"
    assert str(pickle.loads(pickle.dumps(RawFileRefused("a.csv", "a link")))) == "raw file a.csv: a link"


def test_one_process_reads_the_files_of_a_reader_and_ends_with_it(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{number}.csv", b"a\n%d\n" % number) for number in range(3)]
    with RawReader({}, RawReading()) as reader:
        process = reader._process
        assert process is not None and process.num_started == 0
        for number, path in enumerate(paths):
            (batch,) = reader.batches(raw(path))
            assert batch["a"].to_pylist() == [number]
            assert process.num_started == 1
        process_id = decoder_of(reader)
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)


def test_a_reader_that_stops_early_starts_afresh(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", pa.table({"a": np.arange(MANY)}))
    with RawReader({}, RawReading()) as reader:
        batches = reader.batches(raw(path))
        next(batches)
        batches.close()  # type: ignore[attr-defined]  # a generator
        assert sum(batch.num_rows for batch in reader.batches(raw(path))) == MANY


def test_an_answer_that_nobody_awaits_any_more_is_not_taken_for_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = write(tmp_path / "first.csv", b"a\n1\n"), write(tmp_path / "second.csv", b"b\n2\n")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with RawReader({}, RawReading()) as reader:
        with monkeypatch.context() as patch:
            patch.setattr(DecodingProcess, "_check_answer", interrupted)
            with pytest.raises(KeyboardInterrupt):
                list(reader.batches(raw(first)))
        assert pa.Table.from_batches(reader.batches(raw(second))).to_pydict() == {"b": [2]}


def test_a_refused_file_leaves_the_process_for_the_next_one(tmp_path: Path) -> None:
    bad, good = write(tmp_path / "bad.parquet", b"no parquet"), write(tmp_path / "good.csv", b"a\n1\n")
    with RawReader({}, RawReading()) as reader:
        with pytest.raises(RawFileRefused, match=r"bad\.parquet: .*; repair or remove the file"):
            list(reader.batches(raw(bad)))
        assert sum(batch.num_rows for batch in reader.batches(raw(good))) == 1
        assert reader._process is not None and reader._process.num_started == 1


def test_the_process_knows_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FORK_CLIENT.disconnect()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    path = write(tmp_path / "a.csv", b"a\n1\n")
    with RawReader({"secret": "hunter2"}, RawReading()) as reader:
        list(reader.batches(raw(path)))
        pid = decoder_of(reader)
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
        assert b"PATH=" in environment and b"hunter2" not in environment + arguments


def test_the_decoders_may_have_more_bytes_than_an_argument_of_linux(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengthy = "#" + "x" * 2**17 + "\n" + fork_client._program()
    FORK_CLIENT.disconnect()
    monkeypatch.setattr(fork_client, "_program", lambda: lengthy)
    path = write(tmp_path / "a.csv", b"a\n1\n")
    assert read(path, isolated=True).num_rows == 1


def test_a_batch_reaches_the_parent_before_the_next_one_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parent counts the seconds since the last bytes that it received."""
    batch = pa.record_batch({"a": [1]})
    with open(tmp_path / "answers", "wb", BLOCK_BYTES) as answers, open(tmp_path / "answers", "rb") as received:
        sent = []

        def batches() -> Iterator[pa.RecordBatch]:
            for _ in range(3):
                sent.append(len(received.read()))
                yield batch

        monkeypatch.setattr(decoder, "decode", lambda *_: decoder.Decoded(batch.schema, batches()))
        decoder._answer(answers, 0, RawRequest("csv"), RawLimits(), only_schema=False)
    assert all(sent[1:]), "bytes came before each next batch"


def test_the_process_loads_no_pandas(tmp_path: Path) -> None:
    paths = [write(tmp_path / "a.json", b'{"a": 1}\n'), write(tmp_path / "a.csv", b"a\n1\n")]
    with RawReader({}, RawReading()) as reader:
        assert [batch.num_rows for path in paths for batch in reader.batches(raw(path))] == [1, 1]
        libraries = Path(f"/proc/{decoder_of(reader)}/maps").read_text()
    assert "/pyarrow/" in libraries and "/pandas/" not in libraries


@pytest.mark.parametrize("module", DECODING_MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_what_the_process_runs_imports_nothing_else_of_this_package(module: ModuleType) -> None:
    made_before = {each.__name__ for each in DECODING_MODULES[: DECODING_MODULES.index(module)]}
    nodes = list(ast.walk(ast.parse(Path(module.__file__ or "").read_text())))
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    others = {name.split(".")[0] for name in imported - made_before}
    assert others <= {*sys.stdlib_module_names, "numpy", "pyarrow"}


def send(reader: RawReader, sent: signal.Signals) -> int:
    """Send a signal to the process that decodes, and return its status when it has ended."""
    os.kill(decoder_of(reader), sent)
    assert reader._process is not None and reader._process._decoder is not None
    return reader._process._decoder.wait(10)


class TestCrashes:
    """What only a process of its own survives."""

    def test_a_crash_of_arrow_costs_the_file_alone(self, tmp_path: Path) -> None:
        """The parser of JSON recurses, so a depth that the limit would have refused ends the process."""
        bad, good = write(tmp_path / "bad.json", deep_json(200_000)), write(tmp_path / "good.csv", b"a\n1\n")
        with RawReader({}, RawReading(RawLimits(depth=10**7, columns=10**7))) as reader:
            with pytest.raises(RawFileRefused, match="ended its process by SIGSEGV"):
                list(reader.batches(raw(bad)))
            assert sum(batch.num_rows for batch in reader.batches(raw(good))) == 1
            assert reader._process is not None and reader._process.num_started == 2

    @pytest.mark.parametrize("inherited", [signal.SIG_DFL, signal.SIG_IGN])
    def test_a_process_that_the_system_ends_says_nothing_about_the_file(
        self, tmp_path: Path, inherited: signal.Handlers, request: pytest.FixtureRequest
    ) -> None:
        request.addfinalizer(partial(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, inherited)))
        FORK_CLIENT.disconnect()
        path = write_parquet(tmp_path / "a.parquet", pa.table({"a": np.arange(MANY)}))
        with RawReader({}, RawReading()) as reader:
            batches = reader.batches(raw(path))
            next(batches)
            send(reader, signal.SIGTERM)
            with pytest.raises(StoreError, match="whatever is in it: the system ended .* by SIGTERM; try again"):
                collections.deque(batches, maxlen=0)
            assert sum(batch.num_rows for batch in reader.batches(raw(path))) == MANY

    @pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.json"])
    def test_a_file_whose_process_is_killed_once_is_read_on_from_there(self, tmp_path: Path, name: str) -> None:
        path, numbers = tmp_path / name, np.arange(MANY if name == "a.parquet" else MANY // 10)
        if name == "a.parquet":
            write_parquet(path, pa.table({"a": numbers}))
        else:
            path.write_text(
                "a\n" * name.endswith("csv")
                + "".join(f"{number}\n" if name == "a.csv" else f'{{"a": {number}}}\n' for number in numbers)
            )
        with RawReader({}, RawReading()) as reader:
            batches = reader.batches(raw(path))
            found = [next(batches)]
            assert found[0].num_rows < len(numbers)
            send(reader, signal.SIGKILL)
            found += batches
            assert pa.Table.from_batches(found)["a"].combine_chunks().equals(pa.array(numbers))

    def test_a_file_whose_process_is_killed_twice_is_refused_and_the_next_one_is_read(self, tmp_path: Path) -> None:
        path = write_parquet(tmp_path / "a.parquet", pa.table({"a": np.arange(MANY)}))
        reason = "a.parquet: the system killed the process that decodes it twice.*: split the file"
        with RawReader({}, RawReading()) as reader:
            with pytest.raises(RawFileRefused, match=reason):
                collections.deque((send(reader, signal.SIGKILL) for _ in reader.batches(raw(path))), maxlen=0)
            assert reader._process is not None and reader._process.num_started == 2
            assert sum(batch.num_rows for batch in reader.batches(raw(path))) == MANY

    def test_memory_is_bounded(self, tmp_path: Path) -> None:
        path = tmp_path / "a.arrow"
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(path, pa.schema({"a": pa.int64()}), options=options) as writer:
            writer.write_batch(pa.record_batch({"a": np.zeros(25 * 1024**2, np.int64)}))
        assert path.stat().st_size < 100_000
        with pytest.raises(RawFileTooLarge) as caught:
            read(path, True, RawLimits(memory_bytes=100 * 1024**2))
        assert caught.value.limit == "memory_bytes"

    def test_a_file_that_takes_too_long_is_refused(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.csv", b"a\n1\n")
        with pytest.raises(RawFileTooLarge) as caught:
            read(path, True, RawLimits(seconds=0.001))  # shorter than any interpreter's start
        assert caught.value.limit == "seconds"
