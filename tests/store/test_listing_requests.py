"""How many requests a listing through obstore takes, counted on a client without a server."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from lance_ops.store.services.obstore.listing import list_in_order
from lance_ops.store.services.obstore.s3 import ObstoreS3

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


class Bucket:
    """Answers as a client of obstore does: pages of names ascending, and marks `name/` listed as `name`."""

    def __init__(self, sizes: Mapping[str, int], modified: datetime = LONG_AGO) -> None:
        self.names = sorted(sizes)
        self.sizes = sizes
        self.modified = modified
        self.config = {"endpoint": "http://nowhere", "bucket": uuid4().hex}
        self.requests: list[str] = []

    def list(self, prefix: str | None, offset: str | None, chunk_size: int) -> Iterator[list[dict[str, Any]]]:
        start = f"{prefix}/" if prefix else ""
        after = bisect_right(self.names, offset) if offset else 0
        names = [name for name in self.names[after:] if name.startswith(start)]
        for at in range(0, max(len(names), 1), chunk_size):
            self.requests.append(f"page of {start}")
            yield [self._listed(name) for name in names[at : at + chunk_size]]

    def list_with_delimiter(self, prefix: str | None) -> dict[str, Any]:
        self.requests.append("directories")
        start = f"{prefix}/" if prefix else ""
        inside = [name for name in self.names if name.startswith(start)]
        objects = [self._listed(name) for name in inside if "/" not in name.removeprefix(start)]
        directories = {
            start + name.removeprefix(start).partition("/")[0] for name in inside if "/" in name[len(start) :]
        }
        return {"objects": objects, "common_prefixes": sorted(directories)}

    def get(self, name: str) -> object:
        self.requests.append(f"get {name}")
        if name not in self.sizes:
            raise FileNotFoundError(name)
        return SimpleNamespace(attributes={})

    def _listed(self, name: str) -> dict[str, Any]:
        tag = f"{len(name)}"
        return {"path": name.rstrip("/"), "size": self.sizes[name], "last_modified": self.modified, "e_tag": tag}


@pytest.mark.parametrize("size", [1, 400])
def test_many_small_directories_behind_a_large_one_are_listed_page_by_page(size: int) -> None:
    archived = {f"in/archive/{number:05}": 1 for number in range(5000)}
    small = {f"in/b{number // size:05}/{number % size}": 1 for number in range(20_000)}
    bucket = Bucket({**archived, **small, "in/b00007!": 1, "in/z": 1})
    assert [each["path"] for each in list_in_order(bucket, "in")] == bucket.names
    pages, directories = 26, len({name.split("/")[1] for name in bucket.names})
    assert len(bucket.requests) <= (pages + 3 * 16 if size == 1 else directories + 10)
    assert all(each.startswith(("page of in/", "directories")) for each in bucket.requests)
    assert (bucket.requests[-1] == "page of in/") == (size == 1)


def test_of_each_directory_few_pages_are_held() -> None:
    bucket = Bucket(
        {f"in/{directory}/{number:06}": 1 for directory in "abc" for number in range(50_000)} | {"in/ab": 1}
    )
    listed = list_in_order(bucket, "in")
    found = [next(listed)["path"] for _ in range(1001)]
    asked = Counter(bucket.requests)
    assert (asked["page of in/a/"], asked["directories"]) == (20, 1)
    assert max(asked["page of in/b/"], asked["page of in/c/"]) <= 20
    assert [*found, *(each["path"] for each in listed)] == bucket.names
    assert Counter(bucket.requests)["page of in/c/"] == 50


def test_names_before_the_place_where_a_listing_should_begin_are_left_out() -> None:
    class Forgetful(Bucket):
        def list(self, prefix: str | None, offset: str | None, chunk_size: int) -> Iterator[list[dict[str, Any]]]:
            return super().list(prefix, None, chunk_size)

    bucket = Forgetful({f"in/{number // 1500}/{number:04}": 1 for number in range(4000)})
    assert [each["path"] for each in list_in_order(bucket, "in")] == bucket.names


def test_objects_beside_directories_and_empty_ones_before_the_first_page_s_end_are_listed_once() -> None:
    directories = {f"in/{name}/{number:04}": 1 for name in ("a", "a-b") for number in range(700)}
    bucket = Bucket({**directories, "in/#": 0, "in/a.csv": 1, "in/a/0800": 0, "in/b/": 0, "in/z": 0})
    names = [name for name in bucket.names if name != "in/b/"]
    assert [each["path"] for each in list_in_order(bucket, "in")] == names
    assert bucket.requests.count("get in/#") == 1


def test_a_directory_bucket_is_listed_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def walk(bucket: str) -> int:
        fs = Bucket({f"{name}/{number:04}": 1 for name in "ab" for number in range(1200)})
        assert len([*ObstoreS3().walk(fs, bucket)]) == 2400
        return fs.requests.count("directories")

    assert (walk("bucket"), walk("bucket--usw2-az1--x-s3")) == (1, 0)


def test_an_empty_object_is_asked_for_once_in_a_process() -> None:
    def landed(modified: datetime) -> Bucket:
        names = [f"in/{number}/{name}" for number in range(40) for name in ("_SUCCESS", "data.csv", "mark/")]
        return Bucket({name: 1 if name.endswith("csv") else 0 for name in names}, modified)

    def listed(bucket: Bucket) -> list[str]:
        bucket.requests.clear()
        return [each["path"] for each in list_in_order(bucket, "in")]

    settled, new = landed(LONG_AGO), landed(datetime.now(UTC) + timedelta(hours=1))
    expected = [name for name in settled.names if not name.endswith("/")]
    assert listed(settled) == listed(new) == expected
    assert len(settled.requests) == len(new.requests) == 1 + 2 * 40
    assert listed(settled) == listed(new) == expected
    assert len(settled.requests) == 1, "the answers are remembered"
    assert len(new.requests) == 1 + 2 * 40, "another object of the same second could take a new one's place"
    settled.modified += timedelta(seconds=1)
    assert listed(settled) == expected
    assert len(settled.requests) == 1 + 2 * 40, "these are other objects"


def test_a_mark_beside_an_object_is_none_when_the_object_is_gone() -> None:
    bucket = Bucket({"in/a": 1, "in/a/": 0, "in/b": 0, "in/b/": 0})
    assert {each["path"] for each in list_in_order(bucket, "in")} == {"in/a", "in/b"}
    bucket.names = ["in/a/", "in/b/"]
    bucket.sizes = dict.fromkeys(bucket.names, 0)
    assert list(list_in_order(bucket, "in")) == []
