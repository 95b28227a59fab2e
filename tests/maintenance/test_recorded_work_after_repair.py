"""Setting a damaged manifest aside loses no batch and no token of the version before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import CorruptFile
from lance_ops.maintenance.batch_ledger import batch_properties, ingested_batches
from lance_ops.transactions import Delete, find_token


def append(uri: str, start: int, properties: dict[str, str] | None = None) -> None:
    table = pa.table({"x": range(start, start + 10)})
    lance_ops.write_dataset(table, uri, mode="append", transaction_properties=properties)


def damage(uri: str, version: int, *, hides_transaction: bool = False) -> None:
    """Cut the manifest's end off; a manifest of zeros does not tell the transaction's name either."""
    [path] = Path(uri).glob(f"_versions/{2**64 - 1 - version:020}.manifest")
    data = path.read_bytes()
    path.write_bytes(bytes(len(data)) if hides_transaction else data[:-20])


def set_aside(uri: str) -> lance_ops.LanceDataset:
    opened = lance_ops.dataset(uri)
    plan = opened.plan_repair()
    assert ([action.name for action in plan.actions], plan.refusals) == (["set unreadable manifests aside"], ())
    assert opened.repair(plan).failed == ()
    return opened


def batches(uri: str) -> dict[str, int]:
    return {key: batch.version for key, batch in ingested_batches(lance_ops.dataset(uri).snapshot).items()}


def token_version(uri: str, token: str) -> int | None:
    snapshot = lance_ops.dataset(uri).snapshot
    return find_token(snapshot.store, snapshot.committer, token)


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def uri(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    uri = str(tmp_path / "table.lance")
    lance_ops.write_dataset(pa.table({"x": range(10)}), uri, enable_stable_row_ids=request.param)
    return uri


@pytest.fixture
def compacted(uri: str) -> str:
    """Version 2 adds batch `a` with a token; 3 reserves fragments, and 4 rewrites the fragment of version 2."""
    append(uri, 10, {**batch_properties({"a": "1"}), "lance_ops.token": "t"})
    lance_ops.dataset(uri).optimize.compact_files()
    assert lance_ops.dataset(uri).version == 4
    return uri


def test_a_batch_and_a_token_stay_known_when_the_next_manifest_is_set_aside(compacted: str) -> None:
    damage(compacted, 3)
    set_aside(compacted)
    assert batches(compacted) == {"a": 2}
    assert token_version(compacted, "t") == 2


def test_a_clean_up_after_the_repair_loses_neither(compacted: str) -> None:
    damage(compacted, 3)
    opened = set_aside(compacted)
    assert opened.cleanup_old_versions(retain_versions=1).old_versions == 2
    assert batches(compacted) == {"a": 2}
    assert token_version(compacted, "t") == 2


def test_a_restore_before_a_damaged_version_still_takes_a_batch_back(uri: str) -> None:
    append(uri, 10, batch_properties({"a": "1"}))
    append(uri, 20)
    append(uri, 30, batch_properties({"b": "1"}))
    lance_ops.dataset(uri, version=3).restore()
    lance_ops.dataset(uri).delete("x = 0")
    lance_ops.dataset(uri).delete("x = 1")
    damage(uri, 6)
    set_aside(uri)
    assert batches(uri) == {"a": 2}
    lance_ops.dataset(uri).cleanup_old_versions(retain_versions=1)
    assert batches(uri) == {"a": 2}


@pytest.mark.parametrize("properties", [batch_properties({"a": "1"}), {"lance_ops.token": "t"}], ids=["batch", "token"])
def test_a_manifest_stays_if_nothing_else_shows_that_the_work_before_it_counts(
    uri: str, properties: dict[str, str]
) -> None:
    append(uri, 10, properties)
    lance_ops.dataset(uri).optimize.compact_files()
    lance_ops.dataset(uri, version=2).restore()  # so that versions 3 and 4 count for nothing
    lance_ops.dataset(uri).optimize.compact_files()
    damage(uri, 3, hides_transaction=True)
    plan = lance_ops.dataset(uri).plan_repair()
    assert plan.actions == ()
    [refusal] = plan.refusals
    assert refusal.damage.version == 3
    assert "only this version shows that the batch or the token of the version before it counts" in refusal.reason


def test_no_checkpoint_hides_a_damaged_version_that_may_have_recorded_a_batch(compacted: str) -> None:
    damage(compacted, 1, hides_transaction=True)
    damage(compacted, 3)
    plan = lance_ops.dataset(compacted).plan_repair()
    assert plan.actions == ()
    assert [refusal.damage.version for refusal in plan.refusals] == [1, 3]


def test_several_damaged_manifests_in_a_row_are_replayed(compacted: str) -> None:
    append(compacted, 30)
    lance_ops.dataset(compacted).delete("x = 0")
    for version in (3, 4, 5):
        damage(compacted, version)
    set_aside(compacted)
    assert batches(compacted) == {"a": 2}
    assert token_version(compacted, "t") == 2


def test_going_back_keeps_the_batch_and_the_token_of_the_version_that_it_restores(uri: str) -> None:
    append(uri, 10)
    properties = {**batch_properties({"a": "1"}), "lance_ops.token": "t"}
    lance_ops.dataset(uri).update({"x": "x + 0"}, "x >= 10", transaction_properties=properties)
    lance_ops.dataset(uri).optimize.compact_files()
    for version in (4, 5):
        damage(uri, version)
    opened = lance_ops.dataset(uri, version=3)
    assert opened.repair(opened.plan_repair(restore_older_version=True)).failed == ()
    assert (opened.version, batches(uri), token_version(uri, "t")) == (6, {"a": 3}, 3)
    opened.optimize.compact_files()
    assert opened.cleanup_old_versions(retain_versions=1).old_versions > 2
    assert (batches(uri), token_version(uri, "t")) == ({"a": 3}, 3)


def test_a_damaged_operation_after_recorded_work_does_not_end_the_planning(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(uri, 10, {**batch_properties({"a": "1"}), "lance_ops.token": "t"})
    for value in range(3):
        lance_ops.dataset(uri).delete(f"x = {value}")
    damage(uri, 4)
    opened = lance_ops.dataset(uri)
    decode = Delete.from_pb

    def damaged(message: Any, path: str) -> Delete:
        if message.predicate == "x = 0":  # version 3
            raise CorruptFile(path, "delete", "damaged")
        return decode(message, path)

    monkeypatch.setattr(Delete, "from_pb", damaged)
    plan = opened.plan_repair()
    assert [action.name for action in plan.actions] == ["set unreadable manifests aside"]
