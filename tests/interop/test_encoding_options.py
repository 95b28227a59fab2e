"""Encoding options in a field's metadata: the page follows them, and the reference reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file import FileReader, FileWriter
from lance_ops.store.local.local_store import LocalStore

pytestmark = pytest.mark.interop

N = 20_000
BOTH = ("2.1", "2.2")


def random() -> np.random.Generator:
    return np.random.default_rng(5)


def runs() -> pa.Array:
    return pa.array(np.repeat(np.arange(N // 20) * 1000, 20))


def walk() -> pa.Array:
    return pa.array(np.cumsum(random().random(N)))


def words() -> pa.Array:
    return pa.array([f"user-{i * 7919 % N:06d}@example.org" for i in range(N)])


def few_words() -> pa.Array:
    return pa.array([f"a colour of some length {i}" for i in random().integers(0, 400, N).tolist()])


def far_numbers() -> pa.Array:
    return pa.array(random().integers(0, 1000, N) << 40)


def pairs() -> pa.Array:
    return pa.StructArray.from_arrays([pa.array(np.arange(N)), pa.array(random().random(N))], ["x", "y"])


def documents() -> pa.Array:
    return pa.array([b"%d" % i * 300 for i in range(200)], pa.large_binary())


@dataclass(frozen=True)
class Asked:
    """A column, its options, and the words that its page's description contains only with these options."""

    column: Callable[[], pa.Array]
    options: dict[str, str]
    there: frozenset[str]
    gone: frozenset[str] = frozenset()
    versions: tuple[str, ...] = BOTH


def asked(
    column: Callable[[], pa.Array], options: str, there: str, gone: str = "", versions: tuple[str, ...] = BOTH
) -> Asked:
    pairs_of_options = (option.split("=") for option in options.split())
    return Asked(column, dict(pairs_of_options), frozenset(there.split()), frozenset(gone.split()), versions)


ALL_ASKED = {
    "no compression": asked(words, "compression=none", "variable", "fsst"),
    "lz4": asked(words, "compression=lz4", "general", "fsst"),
    "zstd": asked(words, "compression=zstd", "general", "fsst"),
    "fsst": asked(lambda: pa.array(["short", "shorter"] * 20), "compression=fsst", "fsst"),
    "a threshold that every column passes": asked(
        lambda: pa.array(np.repeat(np.arange(N // 2), 2)), "rle-threshold=1", "rle", "inline_bitpacking"
    ),
    "a threshold that no column passes": asked(runs, "rle-threshold=0", "inline_bitpacking", "rle", ("2.1",)),
    "a dictionary of more values than it has entries": asked(few_words, "dict-divisor=1000", "fsst", "dictionary"),
    "a dictionary not small enough": asked(few_words, "dict-size-ratio=0.01", "fsst", "dictionary"),
    "a dictionary of numbers not small enough": asked(
        far_numbers, "dict-size-ratio=0.01", "inline_bitpacking", "dictionary", ("2.2",)
    ),
    "bytes split before a codec": asked(walk, "compression=zstd bss=on", "byte_stream_split general", "flat"),
    "bytes not split": asked(walk, "compression=zstd bss=off", "", "byte_stream_split"),
    "a layout for large values": asked(words, "structural-encoding=fullzip", "full_zip", "mini_block"),
    "a layout for small values": asked(
        lambda: pa.array([bytes(300)[:i] for i in range(280)]),
        "structural-encoding=miniblock",
        "mini_block",
        "full_zip",
    ),
    "structs row by row": asked(pairs, "packed=true", "packed_struct", "inline_bitpacking"),
    "blobs outside of pages": asked(documents, "blob=true", "blob", "full_zip"),
}


def words_of(path: Path, table: pa.Table, version: str) -> set[str]:
    """Write a table of one page; return the words of that page's description over all columns."""
    store = LocalStore(str(path.parent))
    with FileWriter(store, path.name, Schema.from_arrow(table.schema), FileVersion(version)) as writer:
        writer.write_batch(table)
    described = FileReader(store, path.name).describe()
    return {word for column in described for page in column for word in page}


@pytest.mark.parametrize(
    ("name", "version"), [(name, version) for name, case in ALL_ASKED.items() for version in case.versions]
)
def test_a_page_follows_its_field_s_metadata_and_the_reference_reads_it(
    name: str, version: str, tmp_path: Path
) -> None:
    from lance.file import LanceFileReader

    case = ALL_ASKED[name]
    column = case.column()
    metadata = {f"lance-encoding:{key}": value for key, value in case.options.items()}
    plain = pa.table([column], pa.schema([pa.field("c", column.type)]))
    table = pa.table([column], pa.schema([pa.field("c", column.type, metadata=metadata)]))
    without, found = words_of(tmp_path / "plain", plain, version), words_of(tmp_path / "asked", table, version)
    assert case.there <= found
    assert not case.gone & found
    assert case.gone <= without or "bss" in case.options
    assert found != without or case.options.get("bss") == "off"
    if "blob" in case.options:  # the reference returns descriptors for these, and the bytes where they point
        rows = LanceFileReader(str(tmp_path / "asked")).read_all().to_table().num_rows
        assert rows == len(column)
        assert FileReader(LocalStore(str(tmp_path)), "asked").read().equals(plain)
        return
    read = LanceFileReader(str(tmp_path / "asked")).read_all().to_table()
    assert read.column(0).combine_chunks().cast(column.type).equals(column)


@pytest.mark.parametrize("version", BOTH)
def test_a_higher_level_compresses_more_and_is_recorded(version: str, tmp_path: Path) -> None:
    from lance.file import LanceFileReader

    sizes = {}
    for level in ("1", "19"):
        metadata = {"lance-encoding:compression": "zstd", "lance-encoding:compression-level": level}
        table = pa.table([words()], pa.schema([pa.field("c", pa.string(), metadata=metadata)]))
        assert "general" in words_of(tmp_path / level, table, version)
        sizes[level] = (tmp_path / level).stat().st_size
        assert LanceFileReader(str(tmp_path / level)).read_all().to_table().column(0).combine_chunks().equals(words())
    assert sizes["19"] < sizes["1"]


@pytest.mark.parametrize(("version", "largest"), [("2.1", 16 * 1024), ("2.2", 64 * 1024)])
def test_text_chunks_have_the_requested_size_and_the_reference_reads_them(
    version: str, largest: int, tmp_path: Path
) -> None:
    from lance.file import LanceFileReader

    counts = {}
    for size in (0, 1024, 4096, largest):
        metadata = {"lance-encoding:minichunk-size": str(size), "lance-encoding:compression": "none"}
        table = pa.table([words()], pa.schema([pa.field("c", pa.string(), metadata=metadata)]))
        words_of(tmp_path / "f", table, version)
        (page,) = FileReader(LocalStore(str(tmp_path)), "f").column(0).pages
        width = 2 if version == "2.1" else 4
        counts[size] = page.buffers[0].size // width
        assert page.buffers[1].size / counts[size] <= max(size, 1024) + 64
        reader = LanceFileReader(str(tmp_path / "f"))
        assert reader.read_all().to_table().column(0).combine_chunks().equals(words())
        offsets = [0, 7, len(words()) - 1]
        assert reader.take_rows(offsets).to_table().column(0).to_pylist() == [words()[at].as_py() for at in offsets]
    assert counts[0] == counts[1024] > 2 * counts[4096] > 4 * counts[largest]


def test_a_dictionary_is_compressed_at_the_requested_level(tmp_path: Path) -> None:
    from lance.file import LanceFileReader

    column = pa.array([f"{i % 900} a rather long entry of a dictionary {i % 900}" for i in range(4000)])
    sizes = {}
    for level in ("1", "19"):
        keys = {"dict-values-compression": "zstd", "dict-values-compression-level": level}
        metadata = {f"lance-encoding:{key}": value for key, value in keys.items()}
        table = pa.table([column], pa.schema([pa.field("c", pa.string(), metadata=metadata)]))
        assert {"dictionary", "dictionary:general"} <= words_of(tmp_path / level, table, "2.2")
        sizes[level] = (tmp_path / level).stat().st_size
        assert LanceFileReader(str(tmp_path / level)).read_all().to_table().column(0).combine_chunks().equals(column)
    assert sizes["19"] < sizes["1"]
