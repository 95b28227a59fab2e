import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from lance_ops.errors import CorruptFile, InvalidInput, ReferenceNotFound
from lance_ops.refs import tags
from lance_ops.refs.tags import Tag, create_tag, delete_tag, list_tags, read_tag, replace_tag_metadata, update_tag
from lance_ops.store import MemoryStore, Store


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Store:
    return MemoryStore(request.node.name)


def test_a_tag_is_created_once_updated_and_deleted(store: Store) -> None:
    create_tag(store, "v1", 3, 100)
    with pytest.raises(InvalidInput, match="'v1' exists"):
        create_tag(store, "v1", 4, 100)
    moved = update_tag(store, "v1", 5, 120)
    assert (moved.version, moved.manifest_size) == (5, 120)
    assert list_tags(store) == {"v1": moved}
    assert moved.created_at is not None and moved.updated_at is not None
    assert moved.created_at < moved.updated_at
    delete_tag(store, "v1")
    assert list_tags(store) == {}


def test_replacing_metadata_keeps_the_times_of_a_tag(store: Store) -> None:
    tag = create_tag(store, "v1", 3, 100)
    replace_tag_metadata(store, "v1", {"a": "1", "b": "2"})
    assert dict(replace_tag_metadata(store, "v1", {"c": "3"}).metadata) == {"c": "3"}
    assert read_tag(store, "v1") == replace(tag, metadata={"c": "3"})
    with pytest.raises(InvalidInput, match="map strings to strings"):
        replace_tag_metadata(store, "v1", {"c": 3})  # type: ignore[dict-item]  # what a caller may pass


@pytest.mark.parametrize(
    "verb",
    [
        read_tag,
        delete_tag,
        lambda store, name: update_tag(store, name, 1, 1),
        lambda store, name: replace_tag_metadata(store, name, {}),
    ],
)
def test_an_unknown_tag_is_named_in_the_error(store: Store, verb: Callable[[Store, str], object]) -> None:
    with pytest.raises(ReferenceNotFound, match="'gone'"):
        verb(store, "gone")


def test_a_tag_name_that_leaves_the_tags_folder_is_refused(store: Store) -> None:
    with pytest.raises(InvalidInput, match="tag name"):
        create_tag(store, "../evil", 1, 1)


def test_a_tag_file_of_the_reference_with_nanoseconds_is_read() -> None:
    content = {
        "branch": None,
        "version": 2,
        "createdAt": "2026-01-02T03:04:05.123456789Z",
        "updatedAt": "2026-01-02T03:04:05Z",
        "manifestSize": 7,
        "metadata": {"k": "v"},
    }
    tag = Tag.decode(json.dumps(content).encode(), "t.json")
    assert tag.created_at is not None and tag.created_at.microsecond == 123456
    assert (tag.version, dict(tag.metadata)) == (2, {"k": "v"})
    assert Tag.decode(tag.encode(), "t.json") == tag


def test_a_tag_file_of_an_older_writer_is_read() -> None:
    assert Tag.decode(b'{"version": 2, "manifestSize": 5}', "t.json") == Tag(2, 5)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"version": "x"}',
        b"\xff",
        b'{"version": 1, "createdAt": "x"}',
        b'{"version": 1, "branch": "../x"}',
        b'{"version": 1, "branch": 7}',
        b'{"version": 1e999}',
        b"[" * 100_000,
    ],
)
def test_a_corrupt_tag_file_is_named_in_the_error(data: bytes) -> None:
    with pytest.raises(CorruptFile, match=r"t\.json"):
        Tag.decode(data, "t.json")


@pytest.mark.parametrize("replaces_at_once", [True, False])
def test_a_tag_removed_during_a_listing_is_left_out(monkeypatch: pytest.MonkeyPatch, replaces_at_once: bool) -> None:
    """In a store where a file is absent for a moment while it is replaced, the missing tag is an error."""
    store = MemoryStore()
    for name in ("a", "b"):
        create_tag(store, name, 1, 0)
    monkeypatch.setattr(MemoryStore, "replaces_at_once", replaces_at_once)
    monkeypatch.setattr(tags, "list_stems", lambda *_: ["a", "b", "gone"])
    if replaces_at_once:
        assert list(list_tags(store)) == ["a", "b"]
    else:
        with pytest.raises(ReferenceNotFound, match="gone"):
            list_tags(store)
