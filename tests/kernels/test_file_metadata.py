"""The kernels that parse the metadata of many files find what the readers of a single file find."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_ops import kernels
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file.container import Footer, decode_column, decode_extents
from lance_ops.file.writer import FileWriter
from lance_ops.kernels.read_only_arrays import read_only
from lance_ops.pb import file_pb2
from lance_ops.store import MemoryStore


def _file(rows: int, version: FileVersion) -> bytes:
    table = pa.table({"n": np.arange(rows) * 7, "s": [f"text {row}" for row in range(rows)], "f": [True] * rows})
    store, schema = MemoryStore(), Schema.from_arrow(table.schema)
    with FileWriter(store, "f", schema, version) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
    return bytes(store.get("f").to_pybytes())


@pytest.mark.parametrize("version", [FileVersion.V2_1, FileVersion.V2_2], ids=lambda version: version.value)
def test_files_and_pages_are_those_of_the_plain_readers(version: FileVersion) -> None:
    files = [_file(rows, version) for rows in (5, 1000, 37)]
    data = np.frombuffer(b"?".join(files), np.uint8)
    sizes = np.array([*map(len, files)])
    starts = np.cumsum(sizes + 1) - sizes - 1
    facts = np.zeros((len(files), kernels.FILE_FACTS), np.int64)
    places = read_only(data), read_only(starts), read_only(sizes)
    skipped = read_only(np.zeros(len(files), np.int64))
    assert kernels.read_file_ends(*places, skipped, facts.reshape(-1)) == len(files)
    columns = [2, 0]
    pages = np.zeros((len(columns), len(files), kernels.PAGE_FACTS), np.int64)
    arguments = *places, read_only(facts.reshape(-1)), read_only(np.array(columns))
    assert kernels.read_single_pages(*arguments, pages.reshape(-1)) == len(files)
    for at, (file, start) in enumerate(zip(files, starts.tolist(), strict=True)):
        footer = Footer.decode(file, len(file), "f")
        tables = [file[extent.position : extent.end] for extent in (footer.global_extent, footer.column_extent)]
        (description, *_), found = (decode_extents(table, len(file), "f", "table") for table in tables)
        message = file_pb2.FileDescriptor.FromString(file[description.position : description.end])
        assert facts[at, :4].tolist() == [*version.footer, 3, start + footer.column_table]
        schema_start, schema_size, num_rows = facts[at, 4:7].tolist()
        assert file_pb2.Schema.FromString(data[schema_start : schema_start + schema_size].tobytes()) == message.schema
        assert num_rows == message.length
        assert facts[at, 8] == 1
        for number, column in enumerate(columns):
            extent = found[column]
            (page,) = decode_column(file[extent.position : extent.end], len(file), "f", "column").pages
            page_facts = pages[number, at].tolist()
            assert page_facts[0] == page.length
            assert page_facts[3] == len(page.buffers)
            assert page_facts[6 : 6 + 2 * len(page.buffers)] == [number for buffer in page.buffers for number in buffer]
            encoding = data[page_facts[1] : page_facts[1] + page_facts[2]].tobytes()
            assert page.type_url.encode() in encoding and page.encoding in encoding


@pytest.mark.parametrize("damaged", [0, 1, 2])
def test_parsing_ends_before_the_first_file_of_another_form(damaged: int) -> None:
    files = [bytearray(_file(rows, FileVersion.V2_2)) for rows in (5, 6, 7)]
    files[damaged][-1] ^= 1
    sizes = np.array([*map(len, files)])
    facts = np.zeros(len(files) * kernels.FILE_FACTS, np.int64)
    starts = np.cumsum(sizes) - sizes
    places = read_only(np.frombuffer(b"".join(files), np.uint8)), read_only(starts), read_only(sizes)
    assert kernels.read_file_ends(*places, read_only(np.zeros(len(files), np.int64)), facts) == damaged


def test_random_bytes_are_never_read_beyond_their_file() -> None:
    """Under NUMBA_BOUNDSCHECK=1 an access beyond the array fails; otherwise the numbers must stay in the files."""
    rng = np.random.default_rng(5)
    file = _file(40, FileVersion.V2_2)
    parsed = 0
    for _ in range(3000):
        changed = bytearray(file)
        changed[-41] ^= 0xFF  # no checksums
        for at in rng.integers(1, 700, 2).tolist():
            changed[-at] = int(rng.integers(256))
        data, size = np.frombuffer(bytes(changed), np.uint8), np.array([len(changed)])
        places = read_only(data), read_only(np.zeros(1, np.int64)), read_only(size)
        facts = np.zeros(kernels.FILE_FACTS, np.int64)
        if kernels.read_file_ends(*places, read_only(np.zeros(1, np.int64)), facts) != 1 or facts[2] != 3:
            continue
        assert facts[4] >= 0 and facts[4] + facts[5] <= len(changed)
        pages = np.zeros((3, kernels.PAGE_FACTS), np.int64)
        if kernels.read_single_pages(*places, read_only(facts), read_only(np.arange(3)), pages.reshape(-1)) == 1:
            parsed += 1
            for page in pages.tolist():
                assert page[1] >= 0 and page[1] + page[2] <= len(changed)
                ends = [page[6 + 2 * buffer] + page[7 + 2 * buffer] for buffer in range(page[3])]
                assert max(ends, default=0) <= len(changed) and min(page[6:], default=0) >= 0
    assert parsed > 100
