from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import fsspec
import pytest

from lance_ops.core.errors import InvalidInput, MissingPackage, UnsafePath, UnsupportedFeature
from lance_ops.store import (
    FsspecStore,
    LocalStore,
    MemoryStore,
    is_local,
    is_well_known,
    open_store,
    path_beneath,
    with_short_timeouts,
)


def test_paths_of_every_spelling_are_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    here = str(tmp_path / "a b")
    spelled: list[str | Path] = [here, f"{here}/", f"/{here}", "a b", "./a b/", "~/a b", tmp_path / "a b"]
    uris = [
        f"{scheme}{here.replace(' ', space)}"
        for scheme in (
            "file:",
            "file://",
            "FILE://",
            "file://localhost",
            "file:///",
            "local://",
            "file-object-store://",
        )
        for space in (" ", "%20")
    ]

    assert {open_store(uri) for uri in spelled + uris} == {LocalStore(here)}
    assert {path_beneath(here, uri) for uri in uris} == {""}
    assert all(is_local(uri) and is_well_known(uri) for uri in uris)


@pytest.mark.parametrize("name", ["a%20b", "50%", "ü", "a?b#c", "a:b", "$HOME", "a\nb"])
def test_a_plain_path_means_itself_and_a_uri_is_decoded(tmp_path: Path, name: str) -> None:
    plain = f"{tmp_path}/{name}"
    assert open_store(plain) == open_store(f"file:{tmp_path}/{quote(name)}") == LocalStore(plain)
    assert open_store(plain).uri == plain
    assert path_beneath(str(tmp_path), plain) == name


def test_memory_without_a_name_begins_empty_and_a_name_is_shared() -> None:
    first, second = open_store("memory://"), open_store("memory://")
    first.put("a", b"1")
    assert not second.exists("a") and first.uri != second.uri
    assert open_store(first.uri).exists("a")
    assert open_store("memory://shared/x") == open_store("memory://shared/x/")


@pytest.mark.parametrize(
    ("uri", "opened"),
    [
        ("s3://bucket/a/b/", "s3://bucket/a/b"),
        ("s3a://bucket/a", "s3a://bucket/a"),
        ("S3://bucket", "s3://bucket"),
        ("gs://bucket/a", "gs://bucket/a"),
        ("az://container/a", "az://container/a"),
        ("abfss://container@account.dfs.core.windows.net/a", "abfss://container@account.dfs.core.windows.net/a"),
        ("hdfs://namenode:8020/a", "hdfs://namenode:8020/a"),
    ],
)
def test_other_schemes_go_through_fsspec_without_connecting(uri: str, opened: str) -> None:
    store = open_store(uri)
    assert isinstance(store, FsspecStore)
    assert store.uri == opened
    assert store.child("x/y").uri == f"{opened}/x/y"
    assert isinstance(open_store("memory://a"), MemoryStore)


@pytest.mark.parametrize("uri", ["", "file:", "file:a", "file:./a", "file://elsewhere/a", "s3:///a/b\0"])
def test_a_uri_that_names_no_location_is_refused(uri: str) -> None:
    with pytest.raises((InvalidInput, UnsafePath)):
        open_store(uri)


@pytest.mark.parametrize("uri", ["s3://bucket/../other", "s3://bucket/a//b", "gs://bucket/a/./b"])
def test_a_root_is_checked_as_a_path_is(uri: str) -> None:
    with pytest.raises(UnsafePath):
        open_store(uri)


def test_a_password_in_a_uri_is_refused_and_not_repeated() -> None:
    with pytest.raises(InvalidInput) as caught:
        open_store("s3://user:hunter2@bucket/a")
    assert "hunter2" not in str(caught.value)


def test_an_external_manifest_store_is_named_as_unsupported() -> None:
    with pytest.raises(UnsupportedFeature, match=r"s3\+ddb"):
        open_store("s3+ddb://bucket/a?ddbTableName=t")


def test_an_unknown_scheme_and_a_missing_package_say_so_at_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsupportedFeature, match="nonsense"):
        open_store("nonsense://a/b").exists("x")

    def fail(protocol: str) -> None:
        raise ImportError(f"no package for {protocol}")

    monkeypatch.setattr(fsspec, "get_filesystem_class", fail)
    with pytest.raises(MissingPackage, match="adlfs"):
        open_store("az://container/a", {"account_name": "a"}).exists("x")


@pytest.mark.parametrize(
    ("root", "place", "path"),
    [
        ("s3://b/t", "s3a://b/t/tree/x", "tree/x"),
        ("s3://b/t", "s3://b/t/", ""),
        ("s3://b/t", "s3://b/table", None),
        ("s3://b/t", "gs://b/t", None),
        ("az://c/t", "abfss://c@account.dfs.core.windows.net/t/x", "x"),
        ("memory://a", "memory://a/b", "b"),
        ("s3://b/t", "/t", None),
    ],
)
def test_a_location_is_beneath_another_in_any_spelling(root: str, place: str, path: str | None) -> None:
    assert path_beneath(root, place) == path


def test_a_link_to_a_directory_is_that_location(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert path_beneath(f"{tmp_path}/real", f"file://{tmp_path}/link/a%20b") == "a b"
    assert path_beneath(f"{tmp_path}/link", f"{tmp_path}/real/x") == "x"
    assert path_beneath(f"{tmp_path}/real", f"{tmp_path}/real2") is None


@pytest.mark.parametrize(
    ("uri", "known"),
    [
        ("/a", True),
        ("file:///a", True),
        ("memory://a", True),
        ("S3://b", True),
        ("gs://b", True),
        ("abfss://c@a/x", True),
        ("simplecache::s3://a", True),  # a path of this machine, however strange
        ("http://a/b", False),
        ("hdfs://a/b", False),
        ("ssh://a/b", False),
    ],
)
def test_is_well_known_for_each_scheme(uri: str, known: bool) -> None:
    assert is_well_known(uri) is known


def test_a_look_at_an_object_store_gives_up_within_a_minute_unless_its_options_say_otherwise() -> None:
    limits = with_short_timeouts("s3://bucket/t", {})
    assert limits.keys() == {"connect_timeout", "request_timeout", "client_retry_timeout", "download_retry_count"}
    assert with_short_timeouts("az://container/t", limits) == limits
    given = {"Timeout": "90s", "client_retry_timeout": "5m", "aws_region": "eu-central-1"}
    found = with_short_timeouts("s3://bucket/t", given)
    assert found.items() >= given.items() and "request_timeout" not in found
    for uri in ("/data/t", "file:///data/t", "memory://t", "hdfs://host/t", "elsewhere://host/t"):
        assert with_short_timeouts(uri, None) == {}
    FsspecStore("s3://bucket/t", found)
