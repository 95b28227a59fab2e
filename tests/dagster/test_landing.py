from __future__ import annotations

import gc
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import fsspec
import pytest

from lance_ops.dagster.declaration import RawFiles, StoreLocation, safe_key
from lance_ops.dagster.landing.batch_state import BatchState, Evidence, judge_batches
from lance_ops.dagster.landing.landing import group_files, list_files, list_landing
from lance_ops.dagster.landing.landing_entries import LandedFile
from lance_ops.errors import ConfigError, InvalidInput, RawFileRefused
from lance_ops.maintenance.ingest import RawReader, found_file

pytestmark = pytest.mark.dagster

NOW = datetime(2024, 1, 2, tzinfo=UTC)


def landed(path: str, age_seconds: float = 3600, size_bytes: int = 10, etag: str | None = None) -> LandedFile:
    return LandedFile(path, f"/in/{path}", size_bytes, NOW - timedelta(seconds=age_seconds), etag)


def test_each_file_is_a_batch_named_by_its_path() -> None:
    landing = group_files(RawFiles(uri="/in"), [landed("b.parquet", 10_000), landed("x/a.csv.gz", 5_000)], NOW)
    assert landing.ready[0].key == "b"
    assert landing.ready[1].key.startswith("x-a-")


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("events.2024-01-01.json", "events.2024-01-01"),
        ("events.2024-01-02.json.gz", "events.2024-01-02"),
        ("part-0.c000.snappy.parquet", "part-0.c000"),
        ("A.CSV", "A"),
        ("notes.dat", "notes.dat"),
        ("csv", "csv"),
    ],
)
def test_a_key_lacks_only_the_endings_of_formats_and_compressions(path: str, key: str) -> None:
    (batch,) = group_files(RawFiles(uri="/in"), [landed(path)], NOW).ready
    assert batch.key == safe_key(key)


def test_files_of_two_days_are_two_batches() -> None:
    files = [landed("events.2024-01-01.json"), landed("events.2024-01-02.json")]
    assert len(group_files(RawFiles(uri="/in"), files, NOW).ready) == 2


def test_a_file_with_a_future_time_settles_since_it_came() -> None:
    ahead = replace(landed("a.csv", -3600), moved=NOW - timedelta(seconds=59))
    raw = RawFiles(uri="/in")
    assert [batch.key for batch in group_files(raw, [ahead], NOW).waiting] == ["a"]
    ahead = replace(ahead, moved=NOW - timedelta(seconds=60))
    assert [batch.key for batch in group_files(raw, [ahead], NOW).ready] == ["a"]


@pytest.mark.parametrize(("age", "is_named"), [(-3600, True), (-30, False)])
def test_a_file_with_a_future_time_and_no_other_one_is_named(age: float, is_named: bool) -> None:
    raw = RawFiles(uri="/in", settle_seconds=10)
    landing = group_files(raw, [landed("a.csv", age)], NOW)
    (status,) = judge_batches(raw, landing, Evidence(), NOW).batches
    assert status.state is BatchState.WAITING and status.is_settled is not is_named
    assert ("the time of a.csv is in the future, 2024-01-02 01:00 UTC" in status.reason) is is_named


def test_hidden_files_other_files_and_the_marker_do_not_count() -> None:
    raw = RawFiles(uri="/in", glob="*.parquet")
    files = [landed(p) for p in ("a.parquet", "_a.parquet", ".b.parquet", "c.csv", "_tmp/d.parquet", "e/f.parquet")]
    assert [batch.key for batch in group_files(raw, files, NOW).ready] == ["a"]


def test_the_files_of_tables_beneath_the_folder_are_no_raw_files() -> None:
    of_tables = [
        "t.lance/_versions/1.manifest",
        "t.lance/data/a.lance",
        "t.lance/data/blobs/b.parquet",
        "deep/new.lance/data/b.lance",
        "deep/new.lance/data/c.csv",
    ]
    landing = group_files(RawFiles(uri="/in"), [landed(path) for path in (*of_tables, "day.csv", "data/day.csv")], NOW)
    assert [file.path for batch in landing.ready for file in batch.files] == ["data/day.csv", "day.csv"]
    assert landing.outside.num_files == 0


def test_a_landing_folder_that_is_a_table_is_refused() -> None:
    for of_the_table in ("_versions/1.manifest", "data/a.lance"):
        with pytest.raises(ConfigError, match="raw.uri: this folder is a Lance table"):
            group_files(RawFiles(uri="/in"), [landed(of_the_table)], NOW)


def test_a_file_that_is_named_has_the_token_of_its_landing(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    (listed,) = list_files(StoreLocation(str(tmp_path), {}))
    assert isinstance(listed, LandedFile)
    assert found_file(str(tmp_path / "a.csv"), {}).token == listed.token


def test_a_file_of_a_store_that_is_replaced_after_its_listing_is_refused(tmp_path: Path) -> None:
    memory, path = fsspec.filesystem("memory"), f"/{tmp_path.name}/in/a.csv"
    memory.pipe(path, b"x\n1\n")
    (listed,) = list_files(StoreLocation(f"memory:/{path.removesuffix('/a.csv')}", {}))
    assert isinstance(listed, LandedFile)
    with RawReader({}) as reader:
        assert [batch.num_rows for batch in reader.batches(listed.to_ingest())] == [1]
        memory.pipe(path, b"x\n2\n")
        with pytest.raises(RawFileRefused, match="a.csv: it changed after it was listed"):
            list(reader.batches(listed.to_ingest()))


def test_a_young_or_empty_file_waits() -> None:
    raw = RawFiles(uri="/in", settle_seconds=60)
    landing = group_files(raw, [landed("young", 59), landed("empty", size_bytes=0), landed("old", 60)], NOW)
    assert [batch.key for batch in landing.ready] == ["old"]
    assert {batch.key for batch in landing.waiting} == {"young", "empty"}


def test_a_folder_waits_for_its_marker_however_old_its_files() -> None:
    raw = RawFiles(uri="/in", batch="folder", marker="_SUCCESS")
    files = [landed("d1/a.parquet", 5), landed("d1/_SUCCESS", 5), landed("d2/a.parquet"), landed("d1/b.parquet", 5)]
    landing = group_files(raw, files, NOW)
    assert [(batch.key, len(batch.files)) for batch in landing.ready] == [("d1", 2)]
    assert [batch.key for batch in landing.waiting] == ["d2"]


def test_files_with_the_same_key_are_one_batch_and_files_without_a_key_are_set_aside() -> None:
    raw = RawFiles(uri="/in", key=r"(?P<key>\d{4}-\d{2}-\d{2})")
    files = [landed("a-2024-01-01"), landed("b-2024-01-01", 59), landed("readme")]
    landing = group_files(raw, files, NOW)
    assert [batch.key for batch in landing.waiting] == ["2024-01-01"]
    (sentence,) = (file.sentence for file in landing.set_aside)
    assert sentence.startswith("readme: set aside: raw.key is not found in its path; rename it")
    assert group_files(raw.model_copy(update={"unmatched": "ignore"}), files, NOW).set_aside == ()


def test_a_file_without_a_key_is_set_aside_once_it_is_complete() -> None:
    def set_aside(*files: LandedFile, **declared: str) -> list[str]:
        raw = RawFiles.model_validate({"uri": "/in", "key": r"(?P<key>\d{4})", **declared})
        return [file.path for file in group_files(raw, files, NOW).set_aside]

    assert set_aside(landed("trips.csv.part", 59)) == []
    assert set_aside(landed("trips.csv.part", 60)) == ["trips.csv.part"]
    assert set_aside(landed("empty.csv", size_bytes=0)) == [], "it may still be written"
    assert set_aside(landed("empty.csv", size_bytes=0), empty="refuse") == ["empty.csv"]
    assert set_aside(landed("d1/readme"), landed("d2/DONE"), marker="DONE") == []
    assert set_aside(landed("d1/readme"), landed("d1/DONE"), marker="DONE") == ["d1/readme"]


def test_batches_stand_in_the_order_of_their_newest_file() -> None:
    raw = RawFiles(uri="/in", batch="folder", settle_seconds=0)
    files = [landed("a/1", 10), landed("a/2", 500), landed("b/1", 100), landed("c/1", 100)]
    assert [batch.key for batch in group_files(raw, files, NOW).ready] == ["b", "c", "a"]


def test_the_token_follows_content_and_prefers_the_etag() -> None:
    raw = RawFiles(uri="/in")

    def token(file: LandedFile) -> str:
        return group_files(raw, [file], NOW).ready[0].token

    assert token(landed("a", 100)) == token(landed("a", 100))
    assert token(landed("a", 100)) != token(landed("a", 101))
    assert token(landed("a", 100)) != token(landed("a", 100, size_bytes=11))
    assert token(landed("a", 100, etag="e")) == token(landed("a", 101, etag="e"))


def test_known_keys_are_found_again_and_a_changed_batch_has_its_own() -> None:
    landing = group_files(RawFiles(uri="/in"), [landed("a"), landed("b", 0)], NOW)
    changed = landing.ready[0].as_changed()
    found, missing = landing.find(["b", changed.key, "nothing", "a=000000000000"])
    assert set(found) == {"b", changed.key}
    assert found[changed.key].files == landing.ready[0].files
    assert missing == ("nothing", "a=000000000000")


def test_a_local_folder_is_listed_with_times_and_sizes(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.csv").write_text("x\n1\n")
    os.utime(tmp_path / "sub" / "a.csv", (1_700_000_000, 1_700_000_000))
    (file,) = list_files(StoreLocation(str(tmp_path)))
    assert file == LandedFile(
        "sub/a.csv", str(tmp_path / "sub" / "a.csv"), 4, datetime.fromtimestamp(1_700_000_000, UTC)
    )


def test_a_copy_with_an_old_time_has_arrived_just_now(tmp_path: Path) -> None:
    before = datetime.now(UTC) - timedelta(seconds=5)
    (tmp_path / "a.csv").write_text("x\n1\n")
    os.utime(tmp_path / "a.csv", (1_700_000_000, 1_700_000_000))
    (batch,) = list_landing(RawFiles(uri=str(tmp_path)), datetime.now(UTC)).ready
    assert batch.modified.timestamp() == 1_700_000_000
    assert batch.arrived > before


def test_a_missing_landing_folder_is_empty(tmp_path: Path) -> None:
    landing = list_landing(RawFiles(uri=str(tmp_path / "nothing")), NOW)
    assert landing.ready == landing.waiting == ()


@pytest.mark.usefixtures("nothing_frozen")
def test_no_collection_looks_at_the_objects_of_a_listing(tmp_path: Path) -> None:
    num_files = 2 * gc.get_threshold()[0]
    for number in range(num_files):
        (tmp_path / f"{number}.csv").touch()
    raw = RawFiles(uri=str(tmp_path), empty="refuse", settle_seconds=0)
    gc.collect()  # so that no collection is due
    before = sum(each["collections"] for each in gc.get_stats())
    landing = list_landing(raw, datetime.now(UTC) + timedelta(hours=1))
    assert sum(each["collections"] for each in gc.get_stats()) == before
    assert (len(landing.ready), landing.waiting) == (num_files, ())
    assert gc.isenabled()


def test_the_collector_runs_while_a_store_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    filesystem = fsspec.filesystem("memory")
    find = type(filesystem).find
    ran: list[bool] = []

    def asked(*arguments: object, **options: object) -> object:
        ran.append(gc.isenabled())
        return find(*arguments, **options)

    monkeypatch.setattr(type(filesystem), "find", asked)
    list_landing(RawFiles(uri="memory://test-collector/in"), NOW)
    assert ran == [True]


def test_another_file_system_is_listed_with_full_uris() -> None:
    filesystem = fsspec.filesystem("memory")
    filesystem.pipe("/test-landing/in/a.csv", b"x\n1\n")
    try:
        (file,) = list_files(StoreLocation("memory://test-landing/in"))
        assert isinstance(file, LandedFile)
        assert (file.path, file.size_bytes) == ("a.csv", 4)
        assert file.uri.startswith("memory://")
        assert file.modified.tzinfo is not None
    finally:
        filesystem.rm("/test-landing", recursive=True)


def test_a_file_system_without_times_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    filesystem = fsspec.filesystem("memory")
    monkeypatch.setattr(type(filesystem), "find", lambda *args, **kwargs: {"/t/a.csv": {"size": 1}})
    with pytest.raises(InvalidInput, match="/t/a.csv"):
        list(list_files(StoreLocation("memory://t")))
