"""Datasets of an object store by a pattern, and how many requests finding them takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pyarrow as pa
import pytest

from lance_ops.api import dataset, write_dataset
from lance_ops.api.namespaces import open_namespace
from lance_ops.core.errors import DatasetNotFound, InvalidInput
from lance_ops.store import open_store
from tests.lossy_proxy import lossy_proxy, request_name
from tests.s3_server import S3Server
from tests.servers.obstore import through_fsspec, through_obstore

Making = Callable[[str], str]


@pytest.fixture
def make(request: pytest.FixtureRequest) -> Making:
    """Make a dataset of one row in a bucket of this process's memory, and return its URI."""
    bucket = f"memory://lake-{abs(hash(request.node.nodeid))}"

    def made(path: str) -> str:
        if path:
            write_dataset(pa.table({"x": [1]}), f"{bucket}/{path}")
        return f"{bucket}/{path}".rstrip("/")

    return made


def test_each_part_of_a_pattern_matches_one_folder(make: Making) -> None:
    flights = make("lake/air/tables/flights.lance")
    make("lake/sea/tables/tides.lance")
    make("lake/sea/notes/boats.lance")
    make("lake/.hidden/tables/cats.lance")
    make("other/air/tables/dogs.lance")
    open_store(make("")).put("lake/air/tables/begun.lance/data/1.lance", b"")
    namespace = open_namespace(make("") + "/lake/*/tables/*.lance")
    assert namespace.list_tables() == ["flights", "tides"]
    assert namespace.describe_table("flights").location == flights
    assert [*namespace.tables_like("FLIGHTS")] == ["flights"]
    for name in ("boats", "cats", "dogs", "begun", "FLIGHTS", "flights.lance", "", "tables/flights", ".."):
        assert not namespace.table_exists(name)
    with pytest.raises(DatasetNotFound, match=r"no table 'boats'.*flights, tides"):
        namespace.describe_table("boats")
    with pytest.raises(InvalidInput, match="no place for a new table"):
        namespace.declare_table("boats")


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("lake/*", ["b", "tides"]),
        ("lake/*/tides.lance", ["tides"]),
        ("lake/?ides.lance", ["tides"]),
        ("lake/[!t]*", ["b"]),
        ("lake/x/*/*.lance", ["cats"]),
        ("**/cats.lance", ["cats"]),
        ("**/x/**/*.lance", ["cats"]),
        ("lake/x/**", ["cats", "dogs"]),
        ("nothing/*/*.lance", []),
    ],
)
def test_wildcards_are_those_of_glob(make: Making, pattern: str, names: list[str]) -> None:
    for path in ("lake/tides.lance", "lake/b", "lake/x/y/cats.lance", "lake/x/dogs"):
        make(path)
    if pattern.endswith("/tides.lance"):
        make("lake/z/tides.lance")
    namespace = open_namespace(f"{make('')}/{pattern}")
    assert namespace.list_tables() == names
    assert all(namespace.table_exists(name) for name in names)


def test_two_datasets_of_one_name_are_told_where_the_name_is_used(make: Making) -> None:
    for path in ("a/flights.lance", "b/flights.lance", "b/tides.lance"):
        make(path)
    namespace = open_namespace(f"{make('')}/*/*.lance")
    assert namespace.table_exists("tides")
    for ask in (namespace.list_tables, lambda: namespace.describe_table("flights")):
        with pytest.raises(InvalidInput, match=r"a/flights.lance and .*b/flights.lance are both named 'flights'"):
            ask()


def test_a_bucket_is_named_in_full() -> None:
    with pytest.raises(InvalidInput, match=r"s3://lake-\*/\*\.lance: name the bucket in full"):
        open_namespace("s3://lake-*/*.lance")


@pytest.mark.server
@pytest.mark.parametrize("through", [through_obstore, through_fsspec])
def test_only_the_levels_with_wildcards_are_listed(
    s3_server: S3Server, through: Callable[[S3Server], S3Server]
) -> None:
    server = through(s3_server)
    bucket, options = f"s3://{server.new_bucket()}", server.storage_options
    for path in ("air/tables/flights", "air/tables/planes", "sea/tables/tides"):
        write_dataset(pa.table({"x": [1]}), f"{bucket}/lake/{path}.lance", storage_options=options)
    with lossy_proxy(server.endpoint) as proxy:
        options["aws_endpoint"] = proxy.endpoint

        def count(ask: Callable[[], object]) -> Counter[str]:
            proxy.seen.clear()
            ask()
            return Counter(request_name(*asked) for asked in proxy.seen)

        namespace = open_namespace(f"{bucket}/lake/*/tables/*.lance", options)
        # The folders of lake, and the versions that tides.lance has in each of them.
        assert count(lambda: namespace.table_exists("tides")) == {"LIST": 3}
        # The folders of lake, those of the two folders of tables, and the versions in each table.
        assert count(namespace.list_tables) == {"LIST": 1 + 2 + 3}
        assert count(lambda: namespace.tables_like("TIDES")) == {"LIST": 1 + 2 + 1}
        assert count(lambda: open_namespace(f"{bucket}/lake/sea/tables", options).list_tables()) == {"LIST": 2}
        assert namespace.list_tables() == ["flights", "planes", "tides"]
        # No listing has what is beneath a folder, but that of a table's versions.
        assert all("delimiter=%2F" in path or "_versions%2F" in path for _, path in proxy.seen)
        place = namespace.describe_table("tides")
        assert dataset(place.location, storage_options=place.storage_options).count_rows() == 1
