"""Digests of manifests and deletion files: a changed byte is never read as something else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pyarrow as pa
import pytest
from pyroaring import BitMap

from lance_ops.core.errors import ChecksumMismatch, CorruptFile, UnsupportedFeature
from lance_ops.table import (
    DeletionFile,
    DeletionFileType,
    decode_deletion_vector,
    decode_manifest,
    deletion_checksum_report,
    encode_deletion_vector,
    encode_manifest,
    inline_transaction,
    manifest_checksum_report,
)
from lance_ops.table.rows import encode_bitmap
from lance_ops.wire import ChecksumReport
from tests.checksums import flipped_bits, without_checksums
from tests.table.samples import (
    DICTIONARIES,
    DICTIONARY_SCHEMA,
    fragment,
    index,
    legacy_manifest,
    manifest,
    with_values,
)

PATH = "some.file"
FEW, SOME, MANY = BitMap([3, 9, 70_000]), BitMap(range(0, 4000, 3)), BitMap(range(0, 60_000, 7))
TRANSACTION = b"\x08\x01"


def deletions(vector: BitMap) -> tuple[bytes, Callable[[bytes], object], Callable[[bytes], ChecksumReport]]:
    described, data = encode_deletion_vector(vector, 3, 4)
    unstated = DeletionFile(3, 4, described.file_type, 0)  # an old writer does not state how many rows are deleted
    return (
        data,
        lambda changed: decode_deletion_vector(unstated, pa.py_buffer(changed), 0, PATH),
        lambda changed: deletion_checksum_report(described.file_type, pa.py_buffer(changed)),
    )


def manifests(made: bytes) -> tuple[bytes, Callable[[bytes], object], Callable[[bytes], ChecksumReport]]:
    def read(changed: bytes) -> object:
        found = decode_manifest(pa.py_buffer(changed), PATH)  # as a store returns the bytes
        return found, list(found.fragments), inline_transaction(changed, PATH)

    return made, read, manifest_checksum_report


FILES = {
    "arrow": deletions(FEW),
    "compressed arrow": deletions(SOME),
    "bin": deletions(MANY),
    "manifest": manifests(
        encode_manifest(manifest(fragment(0), fragment(1, deleted=3), indices=(index(1),)), TRANSACTION)
    ),
    "manifest of 0.1": manifests(
        encode_manifest(legacy_manifest(with_values(DICTIONARY_SCHEMA, DICTIONARIES)), TRANSACTION)
    ),
}
each_file = pytest.mark.parametrize("kind", FILES)


def survey(kind: str, count: int) -> Counter[str]:
    data, read, report = FILES[kind]
    expected = read(data)
    outcomes: Counter[str] = Counter()
    for at, changed in flipped_bits(data, count, seed=5):
        try:
            outcomes["right" if read(changed) == expected else "silent"] += 1
        except (CorruptFile, UnsupportedFeature) as error:
            outcomes["error" if PATH in str(error) else "error without a name"] += 1
        found = report(changed)
        assert found.damaged or not found.has_checksums, at
    return outcomes


@each_file
def test_a_flipped_bit_gives_the_right_answer_or_a_typed_error(kind: str) -> None:
    outcomes = survey(kind, 60)
    assert set(outcomes) <= {"right", "error"}
    assert outcomes["error"] > 30


@pytest.mark.soak
@each_file
def test_many_flipped_bits_give_the_right_answer_or_a_typed_error(kind: str) -> None:
    assert set(survey(kind, 400)) <= {"right", "error"}


@each_file
def test_a_file_without_a_digest_is_unverified_and_reads_as_before(kind: str) -> None:
    data, read, report = FILES[kind]
    assert report(data) == ChecksumReport(has_checksums=True, num_blocks=1)
    if kind == "bin":  # nothing but our digest may follow the bitmap
        stripped = encode_bitmap(MANY)
        with pytest.raises(CorruptFile, match="Roaring"):
            read(without_checksums(data))
    else:
        stripped = without_checksums(data)
    assert read(stripped) == read(data)
    assert report(stripped) == ChecksumReport(has_checksums=False)


@each_file
def test_a_damaged_file_names_itself_and_what_to_do(kind: str) -> None:
    data, read, report = FILES[kind]
    changed = bytearray(data)
    changed[20] ^= 1
    with pytest.raises(ChecksumMismatch, match=rf"some\.file: bytes 0 to {len(data)}: .*lance-ops verify"):
        read(bytes(changed))
    assert report(bytes(changed)).damaged == ((0, len(data)),)


@each_file
def test_bytes_of_any_length_have_a_report(kind: str) -> None:
    data, _, report = FILES[kind]
    for length in range(min(len(data), 400)):
        report(data[:length])
        report(data[-length:])


def test_the_arrow_file_is_one_for_arrow_itself() -> None:
    for vector in (FEW, SOME):
        described, data = encode_deletion_vector(vector, 3, 4)
        assert described.file_type is DeletionFileType.ARROW_ARRAY
        assert pa.ipc.open_file(pa.py_buffer(data)).read_all().column(0).to_pylist() == list(vector)


def test_the_digest_is_not_carried_into_the_next_version() -> None:
    made = manifest(fragment(0))
    first = encode_manifest(made, TRANSACTION)
    again = encode_manifest(decode_manifest(first, PATH), TRANSACTION)
    assert again == first
    assert manifest_checksum_report(encode_manifest(decode_manifest(first, PATH), b"\x08\x02")).damaged == ()
