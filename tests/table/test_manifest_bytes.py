"""The file of a manifest: its layout, what a hostile one is answered with, what survives a rewrite."""

from __future__ import annotations

import pickle
import struct
from contextlib import suppress
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

import lance_ops
from lance_ops.core.errors import CorruptFile, UnsafePath, UnsupportedFeature
from lance_ops.pb import table_pb2
from lance_ops.table import (
    WRITER,
    BasePath,
    DataFormat,
    ExternalFile,
    FragmentList,
    Manifest,
    WriterVersion,
    decode_manifest,
    decode_summary,
    encode_manifest,
    inline_transaction,
)
from lance_ops.table.index_sections import IndexSection, encode_index_section
from lance_ops.wire import DIGEST_BLOCK_BYTES, frame
from tests.checksums import without_checksums
from tests.table.marked import marked, marks
from tests.table.samples import MANIFESTS, fragment, index, manifest

REFUSALS = (CorruptFile, UnsafePath, UnsupportedFeature)
FULL = manifest(fragment(0, deleted=3), fragment(1), indices=(index(1),))
ENCODED_SEGMENTS = encode_index_section(IndexSection(FULL.indices))


def framed(message: table_pb2.Manifest, *before: bytes) -> bytes:
    """Return a manifest's file around a message."""
    head = b"".join(before)
    return head + frame(message.SerializeToString()) + struct.pack("<QHH4s", len(head), 0, 2, b"LANC")


def whole(content: Manifest) -> table_pb2.Manifest:
    """Return the message with its fragments."""
    message = content.to_pb()
    message.fragments.extend(fragment.to_pb() for fragment in content.fragments)
    return message


@given(MANIFESTS, st.binary(max_size=30))
@example(manifest(), b"")
def test_what_is_encoded_is_decoded(content: Manifest, transaction: bytes) -> None:
    data = encode_manifest(content, transaction)

    assert decode_manifest(data, "m") == content
    assert decode_summary(data, "m") == content.summary
    assert inline_transaction(data, "m") == (transaction or None)
    assert pickle.loads(pickle.dumps(content)) == content


def test_sections_are_in_the_order_of_the_reference() -> None:
    data = encode_manifest(FULL, b"transaction")

    position, major, minor, magic = struct.unpack("<QHH4s", data[-16:])
    assert (major, minor, magic) == (0, 2, b"LANC")
    index_length = int.from_bytes(data[:4], "little")
    assert table_pb2.IndexSection.FromString(data[4 : 4 + index_length]).indices[0].name == "a_idx"
    at = 4 + index_length
    assert data[at : at + 15] == struct.pack("<I", 11) + b"transaction"
    assert position == at + 15 + DIGEST_BLOCK_BYTES
    message = table_pb2.Manifest.FromString(data[position + 4 : -16])
    assert (message.index_section, message.transaction_section) == (0, at)
    assert not message.HasField("transaction_section_deprecated")
    assert position + 4 + int.from_bytes(data[position : position + 4], "little") + 16 == len(data)


def test_versions_with_the_same_index_section_share_its_segments() -> None:
    later = replace(FULL, version=FULL.version + 1)
    one, other = (decode_manifest(encode_manifest(content, b""), "m") for content in (FULL, later))
    changed = decode_manifest(encode_manifest(replace(FULL, indices=(index(2),)), b""), "m")

    assert one.indices is other.indices
    assert one.indices == FULL.indices != changed.indices


def test_only_the_message_of_a_short_index_section_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def encoded_twice() -> tuple[bytes, bytes]:
        section = IndexSection((index(1), index(2)))
        return encode_index_section(section), encode_index_section(section)

    kept, again = encoded_twice()
    monkeypatch.setattr("lance_ops.table.index_sections._LONGEST_BYTES", len(kept) - 1)
    anew, other = encoded_twice()

    assert kept is again
    assert anew is not other
    assert kept == anew == other


def test_a_corrupt_index_section_names_the_file_each_time() -> None:
    message, section = whole(manifest(fragment(0))), table_pb2.IndexSection.FromString(ENCODED_SEGMENTS)
    section.indices[0].uuid.uuid = b"short"
    message.index_section = 0
    data = framed(message, frame(section.SerializeToString()))

    for path in ("one", "other"):
        with pytest.raises(CorruptFile, match=f"{path}: .*UUID of 5 bytes"):
            decode_manifest(data, path)


def test_the_writer_is_this_release() -> None:
    assert WriterVersion("lance_ops", lance_ops.__version__) == WRITER


def message_of(data: bytes) -> table_pb2.Manifest:
    """Return the message of a manifest's file that has no other section."""
    return table_pb2.Manifest.FromString(data[DIGEST_BLOCK_BYTES + 4 : -16])


def test_without_indices_and_transaction_the_manifest_is_first() -> None:
    data = encode_manifest(manifest(), b"")

    assert struct.unpack("<Q", data[-16:-8]) == (DIGEST_BLOCK_BYTES,)
    assert not message_of(data).HasField("index_section")
    assert inline_transaction(data, "m") is None


def test_a_root_field_has_the_parent_minus_one() -> None:
    message = message_of(encode_manifest(manifest(), b""))

    assert [(field.id, field.parent_id) for field in message.fields] == [(0, -1), (1, -1), (2, 1), (3, 1)]


def test_the_transaction_position_of_older_writers_is_read() -> None:
    message = manifest().to_pb()
    message.transaction_section_deprecated = 0

    assert inline_transaction(framed(message, frame(b"old")), "m") == b"old"


def test_unknown_fields_survive_a_rewrite_at_every_level() -> None:
    parts = FULL.fragments[1]
    elsewhere = parts.with_sequences(row_ids=ExternalFile("a", 1, 2), created_at_versions=ExternalFile("b", 3, 4))
    content = replace(
        FULL, fragments=FragmentList((FULL.fragments[0], elsewhere)), base_paths=(BasePath(1, "/elsewhere"),)
    )
    data = marked(encode_manifest(content, b"transaction"))
    places = marks(data) - {"manifest.writer_version"}  # that will be this release's
    assert {
        "manifest",
        "manifest.fields[2]",
        "manifest.data_format",
        "manifest.base_paths[0]",
        "manifest.fragments[0].files[0]",
        "manifest.fragments[0].deletion_file",
        "manifest.fragments[1].external_row_ids",
        "indices.indices[0].files[1]",
        "indices.indices[0]",
        "indices",
    } <= places

    again = decode_manifest(data, "m")
    decoded_anew = replace(again, fragments=FragmentList(tuple(again.fragments)))

    for rewritten in (again, decoded_anew):
        assert places <= marks(encode_manifest(rewritten, b"")), "a field of a newer writer was lost"
        assert decode_manifest(encode_manifest(rewritten, b""), "m") == again
    stripped = encode_manifest(content, b"")
    assert not marks(stripped)


def test_a_missing_data_format_is_derived_from_the_files() -> None:
    message = whole(manifest(fragment(0)))
    message.ClearField("data_format")
    assert decode_manifest(framed(message), "m").data_format == DataFormat("2.2")

    message.fragments[0].files[0].file_major_version, message.fragments[0].files[0].file_minor_version = 0, 3
    assert decode_manifest(framed(message), "m").data_format == DataFormat("2.0")

    message.fragments[0].files[0].file_minor_version = 0
    assert decode_manifest(framed(message), "m").data_format == DataFormat("0.1")

    del message.fragments[:]
    message.writer_feature_flags = 4
    assert decode_manifest(framed(message), "m").data_format == DataFormat("2.2")


def test_a_missing_max_fragment_id_is_derived_from_the_fragments() -> None:
    message = whole(manifest(fragment(3), fragment(5)))
    message.ClearField("max_fragment_id")

    assert decode_manifest(framed(message), "m").max_fragment_id == 5


def test_a_missing_max_fragment_id_is_not_below_a_fragment_that_an_index_covers() -> None:
    content = manifest(fragment(3), fragment(5), indices=(index(1, covers=(3, 8)),))
    message = whole(content)
    message.ClearField("max_fragment_id")
    message.index_section = 0

    data = framed(message, frame(encode_index_section(IndexSection(content.indices))))
    assert decode_manifest(data, "m").max_fragment_id == 8


@pytest.mark.parametrize("covers", [(), (3, 6)], ids=["fragment", "index"])
def test_a_fragment_above_max_fragment_id_is_corrupt(covers: tuple[int, ...]) -> None:
    fragments = (fragment(3),) if covers else (fragment(3), fragment(6))
    content = replace(manifest(*fragments, indices=(index(1, covers=covers),)), max_fragment_id=5)

    with pytest.raises(CorruptFile, match="m: max_fragment_id: it is 5, but .* reach up to 6"):
        decode_manifest(encode_manifest(content, b""), "m")


def test_a_fragment_tree_is_refused() -> None:
    message = manifest().to_pb()
    message.fragment_tree.SetInParent()

    for decode in (decode_manifest, decode_summary):
        with pytest.raises(UnsupportedFeature, match="fragment tree"):
            decode(framed(message), "m")


@pytest.mark.parametrize(
    "path", ["../secret.lance", "/etc/passwd", "s3://other/x.lance", "a/../../b", "", "a\0b", "a\\b"]
)
@pytest.mark.parametrize("where", ["data", "row_ids", "index"])
def test_a_path_that_leaves_the_table_is_refused(path: str, where: str) -> None:
    message, section = whole(manifest(fragment(0))), table_pb2.IndexSection.FromString(ENCODED_SEGMENTS)
    if where == "data":
        message.fragments[0].files[0].path = path
    elif where == "row_ids":
        message.fragments[0].external_row_ids.path = path
    else:
        section.indices[0].files[0].path = path
        message.index_section = 0

    with pytest.raises(UnsafePath):
        list(decode_manifest(framed(message, frame(section.SerializeToString())), "m").fragments)


def test_a_base_path_that_climbs_is_refused() -> None:
    message = manifest().to_pb()
    message.base_paths.add(id=1, path="/data/../etc")

    with pytest.raises(UnsafePath, match="base path 1"):
        decode_manifest(framed(message), "m")


@pytest.mark.parametrize("length", range(len(encode_manifest(FULL, b"transaction"))))
def test_a_truncated_file_is_corrupt_at_every_length(length: int) -> None:
    data = encode_manifest(FULL, b"transaction")

    with pytest.raises(CorruptFile, match="^some/path: "):
        decode_manifest(data[:length], "some/path")


def test_a_longer_file_is_corrupt() -> None:
    data = without_checksums(encode_manifest(FULL, b""))

    with pytest.raises(CorruptFile, match="do not end at the footer"):
        decode_manifest(data[:-16] + b"\0" + data[-16:], "m")


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 255)), min_size=1, max_size=4))
def test_flipped_bytes_are_read_or_refused(flips: list[tuple[int, int]]) -> None:
    data = bytearray(without_checksums(encode_manifest(FULL, b"transaction")))
    for at, mask in flips:
        data[at % len(data)] ^= mask

    for read in (decode_manifest, inline_transaction):
        with suppress(*REFUSALS):
            read(bytes(data), "m")


@given(st.binary(max_size=200))
def test_random_bytes_are_refused_by_name(junk: bytes) -> None:
    with pytest.raises(CorruptFile):
        decode_manifest(junk + struct.pack("<QHH4s", 0, 0, 2, b"LANC"), "m")


def test_an_impossible_time_is_corrupt() -> None:
    message = manifest().to_pb()
    message.timestamp.seconds = 2**62

    for decode in (decode_manifest, decode_summary):
        with pytest.raises(CorruptFile, match="timestamp"):
            decode(framed(message), "m")


def test_the_time_is_in_utc() -> None:
    content = decode_manifest(encode_manifest(FULL, b""), "m")

    assert content.timestamp is not None
    assert content.timestamp.isoformat() == "2023-11-14T22:13:20.123456+00:00"
