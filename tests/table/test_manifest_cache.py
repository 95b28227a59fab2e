"""Manifests that are decoded once."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable

import pyarrow as pa
import pytest

from lance_ops.core.errors import CorruptFile
from lance_ops.table import FragmentList, decode_manifest, decode_with_transaction, encode_manifest
from lance_ops.table.manifest import manifest_cache
from lance_ops.table.manifest.manifest_cache import ManifestCache
from tests.table.samples import fragment, manifest

TABLE = manifest(fragment(0), fragment(1))
DATA = pa.py_buffer(encode_manifest(TABLE, b""))
OTHER = pa.py_buffer(encode_manifest(manifest(fragment(2)), b""))


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that were decoded."""
    paths: list[str] = []

    def noting(decode: Callable[[pa.Buffer, str], object]) -> Callable[[pa.Buffer, str], object]:
        def decode_noted(data: pa.Buffer, path: str) -> object:
            paths.append(path)
            return decode(data, path)

        return decode_noted

    monkeypatch.setattr(manifest_cache, "decode_manifest", noting(decode_manifest))
    monkeypatch.setattr(manifest_cache, "decode_with_transaction", noting(decode_with_transaction))
    return paths


def test_the_same_bytes_at_the_same_path_are_decoded_once(decoded: list[str]) -> None:
    known = ManifestCache(2)
    assert known.decode(DATA, "a") is known.decode(pa.py_buffer(DATA.to_pybytes()), "a")
    assert known.decode(DATA, "b") == known.decode(DATA, "a")
    assert decoded == ["a", "b"]


def test_other_bytes_at_the_same_path_are_decoded_again(decoded: list[str]) -> None:
    known = ManifestCache(2)
    assert known.decode(DATA, "a") != known.decode(OTHER, "a")
    assert known.decode(OTHER, "a") == decode_manifest(OTHER, "a")
    assert decoded == ["a", "a"]


def test_the_oldest_entry_is_evicted_first(decoded: list[str]) -> None:
    known = ManifestCache(2)
    for path in ("a", "b", "c", "c", "b", "a"):
        known.decode(DATA, path)
    assert decoded == ["a", "b", "c", "a"]


def test_a_manifest_read_in_passing_pushes_none_out(decoded: list[str]) -> None:
    known = ManifestCache(2)
    known.decode_with_transaction(DATA, "a", in_passing=True)
    known.decode(DATA, "b")
    for path in ("c", "d", "b", "a"):
        known.decode_with_transaction(DATA, path, in_passing=True)
    assert decoded == ["a", "b", "c", "d"]


def test_long_manifests_are_cached_up_to_a_number_of_bytes(decoded: list[str]) -> None:
    long = pa.py_buffer(encode_manifest(manifest(*map(fragment, range(4000))), b""))
    assert 128 << 10 < long.size < 512 << 10
    known = ManifestCache(16, max_bytes=2 * long.size + DATA.size)
    for path in ("a", "b", "c", "b", "c"):
        known.decode(long, path)
    assert decoded == ["a", "b", "c"]
    known.decode(DATA, "b")  # replaces a long one
    for path, data in (("d", long), ("c", long), ("b", DATA), ("d", long)):
        known.decode(data, path)
    assert decoded == ["a", "b", "c", "b", "d"]


def test_the_bytes_are_copied_because_they_may_be_those_of_a_mapped_file(decoded: list[str]) -> None:
    file = bytearray(DATA.to_pybytes())
    known = ManifestCache(2)
    known.decode(pa.py_buffer(file), "a")
    file[:] = bytes(len(file))
    with pytest.raises(CorruptFile):
        known.decode(pa.py_buffer(file), "a")
    known.decode(DATA, "a")
    assert decoded == ["a", "a"]


def test_a_written_manifest_is_cached_without_decoding(decoded: list[str]) -> None:
    known = ManifestCache(2)
    known.add(DATA.to_pybytes(), "a", TABLE)
    found = known.decode(DATA, "a")
    assert decoded == []
    assert found == decode_manifest(DATA, "a")
    # as those of a manifest that was read: the next version is held against them by their bytes
    assert found.fragments.changes_since(decode_manifest(DATA, "a").fragments) == ([], False, True)


def test_a_very_long_manifest_is_not_cached(decoded: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_cache, "_LONGEST_BYTES", 1000)
    known = ManifestCache(2)
    long = manifest(*map(fragment, range(50)))
    data = pa.py_buffer(encode_manifest(long, b""))
    known.add(data.to_pybytes(), "a", long)
    decoded.clear()
    for _ in range(2):
        assert known.decode(data, "a").fragments == FragmentList(long.fragments)
    assert decoded == ["a", "a"]


def test_corrupt_bytes_raise_each_time() -> None:
    known = ManifestCache(2)
    for _ in range(2):
        with pytest.raises(CorruptFile, match="footer"):
            known.decode(DATA[:-1], "a")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # forking beside threads is what is tested
def test_a_forked_child_does_not_wait_for_a_lock_of_its_parent() -> None:
    with manifest_cache.MANIFEST_CACHE._lock:
        child = multiprocessing.get_context("fork").Process(
            target=manifest_cache.MANIFEST_CACHE.decode, args=(DATA, "a")
        )
        child.start()
        child.join(60)
    assert child.exitcode == 0
