"""Automatic clean-up after a commit, by the table's configuration."""

import logging
from collections.abc import Callable, Mapping

import pyarrow as pa
import pytest

import lance_ops
from lance_ops import LanceOperation
from lance_ops.errors import InvalidInput, StoreError
from lance_ops.maintenance import cleanup
from lance_ops.maintenance.cleanup.auto_cleanup import auto_cleanup_config, configured_options
from lance_ops.maintenance.cleanup.cleanup_options import DEFAULT_AGE, CleanupOptions

INTERVAL, OLDER_THAN = "lance.auto_cleanup.interval", "lance.auto_cleanup.older_than"
RETAIN = "lance.auto_cleanup.retain_versions"
AT_ONCE = {INTERVAL: "3", OLDER_THAN: "0s"}


def rows(value: int = 0) -> pa.Table:
    return pa.table({"id": range(value, value + 10)})


def versions(uri: str) -> list[int]:
    return [version["version"] for version in lance_ops.dataset(uri).versions()]


def configured(uri: str, config: Mapping[str, str]) -> lance_ops.LanceDataset:
    dataset = lance_ops.write_dataset(rows(), uri)
    dataset.update_config(dict(config))
    return dataset


def test_every_interval_versions_older_versions_are_removed(dataset_uri: str) -> None:
    configured(dataset_uri, AT_ONCE)
    seen = []
    for _ in range(5):
        lance_ops.write_dataset(rows(), dataset_uri, mode="append")
        seen.append(versions(dataset_uri))
    assert seen == [[2, 3], [2, 3, 4], [2, 3, 4, 5], [5, 6], [5, 6, 7]]


def test_an_age_beyond_all_time_keeps_every_version(dataset_uri: str) -> None:
    configured(dataset_uri, {**AT_ONCE, INTERVAL: "1", OLDER_THAN: "3000years"})
    lance_ops.write_dataset(rows(), dataset_uri, mode="append")
    assert versions(dataset_uri) == [1, 2, 3]


def test_every_verb_of_a_handle_cleans_up(dataset_uri: str) -> None:
    dataset = configured(dataset_uri, {**AT_ONCE, INTERVAL: "1"})
    verbs: list[Callable[[], object]] = [
        lambda: dataset.insert(rows(10)),
        lambda: dataset.delete("id = 3"),
        lambda: dataset.update({"id": "id + 100"}, "id = 4"),
        lambda: dataset.merge_insert("id").when_not_matched_insert_all().execute(rows(200)),
        lambda: dataset.add_columns({"x": "id"}),
        lambda: dataset.alter_columns({"path": "x", "name": "y"}),
        lambda: dataset.drop_columns(["y"]),
        lambda: dataset.create_scalar_index("id", "BTREE"),
        lambda: dataset.optimize.compact_files(num_threads=1),
        lambda: dataset.optimize.optimize_indices(index_names=["id_idx"]),
        dataset.restore,
        dataset.truncate_table,
        lambda: dataset.commit(dataset, LanceOperation.Append([]), dataset.version),
    ]
    for verb in verbs:
        before = lance_ops.dataset(dataset_uri).version
        verb()
        newest = lance_ops.dataset(dataset_uri).version
        assert versions(dataset_uri) == ([newest - 1, newest] if newest > before else [before - 1, before])
    lance_ops.dataset(dataset_uri).validate()


def test_a_verb_that_commits_twice_still_meets_the_interval(dataset_uri: str) -> None:
    dataset = configured(dataset_uri, {**AT_ONCE, INTERVAL: "4"})
    dataset.insert(rows(10))
    assert dataset.version == 3
    dataset.optimize.compact_files()  # reserves fragment ids in version 4 and rewrites in 5
    assert versions(dataset_uri) == [4, 5]


def test_a_verb_without_a_commit_removes_nothing(dataset_uri: str) -> None:
    dataset = lance_ops.write_dataset(rows(), dataset_uri)
    dataset.insert(rows(10))
    dataset.insert(rows(20))
    lance_ops.dataset(dataset_uri).update_config({INTERVAL: "5", OLDER_THAN: "0s"})
    dataset = lance_ops.dataset(dataset_uri)
    assert dataset.delete("id = -1") == {"num_deleted_rows": 0}
    assert versions(dataset_uri) == [1, 2, 3, 4]


def test_automatic_clean_up_keeps_tagged_branched_and_recent_versions(dataset_uri: str) -> None:
    dataset = configured(dataset_uri, {INTERVAL: "1", OLDER_THAN: "0s"})
    dataset.tags.create("kept", 2)
    dataset.create_branch("dev", 2)
    dataset.truncate_table()  # the newest version has no data file of version 2
    for _ in range(2):
        dataset.insert(rows(50))
    assert versions(dataset_uri) == [2, 4, 5]
    dataset.update_config({OLDER_THAN: "1h"})
    dataset.insert(rows())
    assert versions(dataset_uri) == [2, 4, 5, 6, 7]
    for kept in ("kept", ("dev", None)):
        assert dataset.checkout_version(kept).to_table() == rows()


@pytest.mark.parametrize(
    ("config", "options"),
    [
        ({OLDER_THAN: "1h"}, {"older_than": 3600, "retain": 2}),
        ({RETAIN: "7"}, {"older_than": None, "retain": 7}),
        ({RETAIN: "1", OLDER_THAN: "1day"}, {"older_than": 86_400, "retain": 2}),
        ({}, {"older_than": DEFAULT_AGE.total_seconds(), "retain": 2}),
    ],
)
def test_configuration_is_read_as_clean_up_options(config: dict[str, str], options: dict[str, float | None]) -> None:
    found = configured_options(config)
    age = None if found.older_than is None else found.older_than.total_seconds()
    assert {"older_than": age, "retain": found.retain_versions} == options
    assert not found.error_if_tagged_old_versions and not found.delete_unverified


def test_rate_and_concurrency_of_deletions_are_configured() -> None:
    found = configured_options(
        {"lance.auto_cleanup.delete_rate_limit": "5", "lance.auto_cleanup.delete_concurrency": "2"}
    )
    assert (found.delete_rate_limit, found.delete_concurrency) == (5, 2)
    with pytest.raises(InvalidInput, match="delete_concurrency must be at least 1"):
        CleanupOptions(delete_concurrency=0)


@pytest.mark.parametrize(
    ("key", "value"),
    [(INTERVAL, "x"), (INTERVAL, "-1"), (OLDER_THAN, "soon"), (RETAIN, "0"), (RETAIN, "many")],
)
def test_a_wrong_configuration_is_logged_and_removes_nothing(
    dataset_uri: str, key: str, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    dataset = configured(dataset_uri, {**AT_ONCE, INTERVAL: "1", key: value})
    with caplog.at_level(logging.WARNING):
        dataset.insert(rows())
    assert dataset.version == 3 and versions(dataset_uri) == [1, 2, 3]
    assert f"version 3: the automatic clean-up failed: {key}" in caplog.text


@pytest.mark.parametrize("error", [StoreError("the store is down"), RuntimeError("the store is down")])
def test_a_failed_automatic_clean_up_does_not_fail_the_commit(
    dataset_uri: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    def fails(*_: object) -> None:
        raise error

    dataset = configured(dataset_uri, AT_ONCE)
    monkeypatch.setattr(cleanup, "cleanup_old_versions", fails)
    with caplog.at_level(logging.WARNING):
        dataset.insert(rows(10))
    assert dataset.count_rows() == 20 and "the store is down" in caplog.text


def test_a_handle_is_on_the_version_that_it_committed_after_an_interrupted_clean_up(
    dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    dataset = configured(dataset_uri, AT_ONCE)
    monkeypatch.setattr(cleanup, "cleanup_old_versions", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dataset.insert(rows(10))
    assert dataset.version == 3 and dataset.count_rows() == 20


def test_auto_cleanup_options_configure_a_new_table(dataset_uri: str) -> None:
    dataset = lance_ops.write_dataset(
        rows(), dataset_uri, auto_cleanup_options={"interval": 5, "older_than_seconds": 3600}
    )
    assert dataset.config() == {INTERVAL: "5", OLDER_THAN: "1h"}
    assert auto_cleanup_config() == {INTERVAL: "20", OLDER_THAN: "14days"}
    again = lance_ops.write_dataset(rows(), dataset_uri, mode="append", auto_cleanup_options={"interval": 2})
    assert again.config() == dataset.config()
    for options in ({"interval": -1}, {"older_than_seconds": -1}):
        with pytest.raises(InvalidInput, match="negative"):
            auto_cleanup_config(**options)


def test_a_handle_whose_version_was_cleaned_up_changes_the_configuration(dataset_uri: str) -> None:
    stale = [lance_ops.write_dataset(rows(), dataset_uri)]
    stale[0].optimize.enable_auto_cleanup({"interval": 1, "older_than_seconds": 0})
    stale += [lance_ops.dataset(dataset_uri) for _ in range(4)]
    for _ in range(3):
        lance_ops.write_dataset(rows(), dataset_uri, mode="append")
    assert min(versions(dataset_uri)) > stale[0].version
    stale[0].optimize.disable_auto_cleanup()
    stale[1].update_config({"a": "1"})
    stale[2].update_metadata({"b": "2"})
    stale[3].update_schema_metadata({"c": "3"})
    stale[4].update_field_metadata({"id": {"d": "4"}})
    newest = lance_ops.dataset(dataset_uri)
    assert newest.config() == {"a": "1"}
    assert newest.metadata == {"b": "2"}
    assert newest.schema_metadata == {"c": "3"}
    assert newest.schema.field("id").metadata == {b"d": b"4"}
    assert all(each.count_rows() == 40 for each in stale)
