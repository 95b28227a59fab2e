"""A version that this release can read, and not write, may name files in ways that this release does not know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import UnsupportedFeature
from lance_ops.maintenance.cleanup import cleanup_old_versions
from lance_ops.maintenance.erasure import removal
from tests.maintenance.conftest import forbid_writes


def write(uri: str, *names: str) -> lance_ops.LanceDataset:
    return lance_ops.write_dataset(pa.table({"name": names}), uri, mode="append")


def test_an_erasure_is_refused_before_any_change_if_such_a_version_stays(dataset_uri: str) -> None:
    branch = write(dataset_uri, "Bob").create_branch("audit")
    made = write(dataset_uri, "Ada")
    made.tags.create("release", made.version)
    forbid_writes(branch.snapshot)
    before = {*Path(dataset_uri).rglob("*")}
    with pytest.raises(UnsupportedFeature, match=r"tree/audit at version 1: .*bit 40.*and erase again"):
        made.erase("name = 'Ada'", reason="request 12", remove_tags=True)
    assert {*Path(dataset_uri).rglob("*")} == before


def test_an_older_version_of_that_kind_that_holds_the_rows_goes(dataset_uri: str) -> None:
    write(dataset_uri, "Ada")
    made = write(dataset_uri, "Bob")
    forbid_writes(made.checkout_version(1).snapshot)
    report = made.erase("name = 'Ada'", reason="request 12")
    assert report.is_proven, report.unproven
    assert "main/1" in report.removed_versions


def test_such_a_version_that_comes_up_later_leaves_the_erasure_unproven(
    dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = write(dataset_uri, "Ada", "Bob")

    def remove_then_forbid(*arguments: Any) -> Any:
        stats = cleanup_old_versions(*arguments)
        forbid_writes(lance_ops.dataset(dataset_uri).snapshot)
        return stats

    monkeypatch.setattr(removal, "cleanup_old_versions", remove_then_forbid)
    report = made.erase("name = 'Ada'", reason="request 12")
    assert report.erased_rows == 1
    assert any("bit 40" in each for each in report.unproven), report.unproven
