"""Base paths are followed where the root is, and elsewhere only where the user allows it."""

from __future__ import annotations

import pytest

from lance_ops.committers import ALLOWED_BASES_OPTION, check_base_is_allowed, with_allowed_bases
from lance_ops.errors import UnsafePath


def allowed(*prefixes: str) -> dict[str, str]:
    return {ALLOWED_BASES_OPTION: ", ".join(prefixes)}


@pytest.mark.parametrize(
    ("root", "base"),
    [
        ("/lake/table", "/other/place"),
        ("file:///lake/table", "/other/place"),
        ("memory://table", "memory://other"),
        ("s3://bucket/table", "s3://bucket/other"),
        ("s3://bucket/table", "s3a://bucket/other"),
        ("gs://bucket/table", "gs://bucket"),
        ("az://container/table", "az://container/other"),
        ("abfss://c@account.dfs.core.windows.net/t", "abfss://c@account.dfs.core.windows.net/other"),
    ],
)
def test_a_base_in_the_root_s_own_store_and_bucket_is_followed(root: str, base: str) -> None:
    check_base_is_allowed(root, base, None)


@pytest.mark.parametrize(
    ("root", "base"),
    [
        ("s3://bucket/table", "s3://bucket-2/table"),
        ("s3://bucket/table", "gs://bucket/table"),
        ("/lake/table", "s3://bucket/table"),
        ("memory://table", "s3://bucket/table"),
        ("abfss://c@mine.dfs.core.windows.net/t", "abfss://c@theirs.dfs.core.windows.net/t"),
    ],
)
def test_a_base_in_another_bucket_is_followed_only_beneath_an_allowed_prefix(
    root: str, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnsafePath, match=ALLOWED_BASES_OPTION):
        check_base_is_allowed(root, base, {})
    with pytest.raises(UnsafePath, match="another store or bucket"):
        check_base_is_allowed(root, base, allowed(f"{base}/deeper", f"{base}-2"))
    check_base_is_allowed(root, base, allowed("s3://unrelated", base))
    monkeypatch.setenv("LANCE_OPS_ALLOWED_BASES", base.rpartition("/")[0])
    check_base_is_allowed(root, base, {})


@pytest.mark.parametrize("local", ["/etc", "file:///etc", "~", "relative", "memory://x"])
def test_a_remote_table_never_leads_to_a_local_path(local: str) -> None:
    with pytest.raises(UnsafePath, match="local path"):
        check_base_is_allowed("s3://bucket/table", local, allowed(local, "/", "s3://bucket"))


def test_bases_that_the_caller_names_are_allowed_on_the_handle() -> None:
    options = with_allowed_bases("s3://a/t", {"region": "x"} | allowed("s3://b"), ["s3://c/d", "s3://a/e", "/local"])
    assert options == {"region": "x", ALLOWED_BASES_OPTION: "s3://b,s3://c/d"}
    assert with_allowed_bases("s3://a/t", {"region": "x"}, ["s3://a/e", "/local"]) == {"region": "x"}
    assert with_allowed_bases("s3://a/t", None, []) is None
