"""A batch is not ingested while a file of it, or a folder that may hold one, is set aside."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from lance_ops.dagster import batch_states
from lance_ops.dagster.declaration import RawFiles
from lance_ops.dagster.landing import landing as landing_module
from lance_ops.dagster.landing.landing import group_files, list_landing
from lance_ops.dagster.landing.landing_entries import LandedFile, Landing, SetAside
from lance_ops.dagster.ops import launch
from lance_ops.verbs import IngestFiles
from tests.dagster.deployment import Deploy, Deployment

pytestmark = pytest.mark.dagster

NOW = datetime(2024, 1, 2, tzinfo=UTC)
BY_DAY = r"day=(?P<key>\d+)"
BY_DATE = r"(?P<key>\d{4}-\d{2}-\d{2})"


def landed(path: str) -> LandedFile:
    return LandedFile(path, f"/in/{path}", 10, NOW - timedelta(hours=1))


def grouped(*entries: str | SetAside, **raw: str) -> Landing:
    files = [entry if isinstance(entry, SetAside) else landed(entry) for entry in entries]
    return group_files(RawFiles.model_validate({"uri": "/in", **raw}), files, NOW)


def ready(landing: Landing) -> list[str]:
    return sorted(batch.key for batch in landing.ready)


def test_a_batch_of_which_a_file_is_set_aside_waits_and_the_others_do_not() -> None:
    landing = grouped("day=1/a.csv", SetAside("day=1/b.csv", "a symbolic link"), "day=2/a.csv", key=BY_DAY)
    assert ready(landing) == ["2"]
    assert landing.lacking == {"1": "it lacks day=1/b.csv, which is set aside: a symbolic link"}


@pytest.mark.parametrize("path", ["day=1/_b.csv", "day=1/b.txt", "other/b.csv", "\udcff/day.csv"])
def test_what_can_be_no_file_of_a_batch_does_not_hold_it_up(path: str) -> None:
    assert ready(grouped("day=1/a.csv", SetAside(path, "a symbolic link"), key=BY_DAY, glob="**/*.csv")) == ["1"]


def test_a_name_that_is_not_utf_8_holds_up_its_batch() -> None:
    landing = grouped("day=1/a.csv", SetAside("day=1/\udcff.csv", "its name is not UTF-8"), key=BY_DAY)
    assert landing.lacking == {"1": "it lacks day=1/\\xff.csv, which is set aside: its name is not UTF-8"}


@pytest.mark.parametrize(
    ("folder", "raw", "paths", "expected"),
    [
        ("day=1/sub", {"key": BY_DAY}, ["day=1/a.csv", "day=2/a.csv"], ["2"]),
        ("eu", {"key": BY_DAY}, ["us/day=1/a.csv", "us/day=2/a.csv"], []),
        ("latest", {"key": BY_DAY}, ["day=1/a.csv", "day=2/a.csv"], ["1", "2"]),
        ("day=3", {"key": BY_DAY}, ["day=1/a.csv", "day=2/a.csv"], ["1", "2"]),
        ("eu", {"key": BY_DATE}, ["2024-01-01.csv"], []),
        ("eu", {"key": BY_DATE, "glob": "*.csv"}, ["2024-01-01.csv"], ["2024-01-01"]),
        ("eu", {}, ["a.csv", "us/b.csv"], ["a", "us-b"]),
        ("day1/sub", {"batch": "folder"}, ["day1/a.csv"], ["day1"]),
    ],
)
def test_a_folder_holds_up_the_batches_that_may_have_files_in_it(
    folder: str, raw: dict[str, str], paths: list[str], expected: list[str]
) -> None:
    landing = grouped(*paths, SetAside(folder, "cannot be listed: Permission denied", is_folder=True), **raw)
    found = [key if key.startswith(("a", "day", "2")) else key.rpartition("-")[0] or key for key in ready(landing)]
    assert found == expected
    assert all(f"files of it may be in {folder}, which" in reason for reason in landing.lacking.values())


def test_a_link_to_a_folder_that_is_listed_holds_up_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "day=1").mkdir(parents=True)
    (folder / "day=1" / "a-2024-01-01.csv").write_text("x\n1\n")
    (folder / "latest").symlink_to("day=1")
    raw, later = RawFiles(uri=str(folder), key=BY_DATE), datetime.now(UTC) + timedelta(hours=1)
    assert ready(list_landing(raw, later)) == ["2024-01-01"]
    (tmp_path / "elsewhere").mkdir()
    (folder / "outside").symlink_to("../elsewhere")
    assert ready(list_landing(raw, later)) == []


@pytest.mark.parametrize(
    ("files", "target", "expected"),
    [
        (["day=1/b-2024-01-02.csv"], "day=1", ["2024-01-01", "2024-01-02"]),
        (["day=1/b.txt"], "day=1", ["2024-01-01"]),
        (["day=1/sub/2024-01-01.csv"], "day=1/sub", ["2024-01-01"]),
        (["_staging/x/2024-01-01.csv"], "_staging/x", []),
        ([".data/2024-01-01.csv"], ".data", []),
        (["other/b.csv"], "other", ["2024-01-01"]),
        ([], ".", ["2024-01-01"]),
    ],
)
def test_a_link_to_a_folder_holds_up_batches_unless_its_files_are_in_batches(
    tmp_path: Path, files: list[str], target: str, expected: list[str]
) -> None:
    folder = tmp_path / "in"
    for file in ("day=1/a-2024-01-01.csv", *files):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("x\n1\n")
    (folder / "latest").symlink_to(target)
    raw, later = RawFiles(uri=str(folder), key=BY_DATE, glob="**/*.csv"), datetime.now(UTC) + timedelta(hours=1)
    assert ready(list_landing(raw, later)) == expected


def test_a_link_whose_name_gives_files_a_key_holds_up_its_batch(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for file in ("day=1/a.csv", "incoming/b.csv"):
        (folder / file).parent.mkdir(parents=True)
        (folder / file).write_text("x\n1\n")
    (folder / "day=1" / "more").symlink_to("../incoming")
    raw, later = RawFiles(uri=str(folder), key=BY_DAY, unmatched="ignore"), datetime.now(UTC) + timedelta(hours=1)
    assert ready(list_landing(raw, later)) == []


def test_a_link_to_a_folder_that_the_glob_leaves_out_holds_up_batches(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for file in ("a/2024-01-01.csv", "b/c/2024-01-01.csv"):
        (folder / file).parent.mkdir(parents=True)
        (folder / file).write_text("x\n1\n")
    (folder / "d").symlink_to("b/c")
    raw, later = RawFiles(uri=str(folder), key=BY_DATE, glob="*/*.csv"), datetime.now(UTC) + timedelta(hours=1)
    assert ready(list_landing(raw, later)) == []


@pytest.mark.parametrize(("target", "expected"), [("a.csv", ["1"]), ("../day=1/_b.csv", []), ("nowhere.csv", [])])
def test_a_link_to_a_file_holds_up_its_batch_unless_that_file_is_in_a_batch(
    tmp_path: Path, target: str, expected: list[str]
) -> None:
    folder = tmp_path / "in" / "day=1"
    folder.mkdir(parents=True)
    for name in ("a.csv", "_b.csv"):
        (folder / name).write_text("x\n1\n")
    (folder / "latest.csv").symlink_to(target)
    landing = list_landing(RawFiles(uri=str(folder.parent), key=BY_DAY), datetime.now(UTC) + timedelta(hours=1))
    assert ready(landing) == expected and [entry.name for entry in landing.set_aside] == ["day=1/latest.csv"]


@pytest.mark.parametrize(
    ("link", "target", "expected"),
    [
        ("day=2/a.csv", "../day=1/a.csv", ["1"]),
        ("day=2/part", "../day=1/part", ["1"]),
        ("day=2/yesterday", "../day=1", ["1"]),
        ("day=1/a-again.csv", "a.csv", ["1", "2"]),
        ("day=1/part-again", "part", ["1", "2"]),
        ("mirror", "day=1", ["1", "2"]),
        ("newest.csv", "day=2/b.csv", ["1", "2"]),
        ("all", ".", ["1", "2"]),
        ("day=2/none.csv", "../day=1/empty.csv", ["1", "2"]),
    ],
)
def test_a_link_to_files_of_another_batch_holds_up_its_own_batch(
    tmp_path: Path, link: str, target: str, expected: list[str]
) -> None:
    folder = tmp_path / "in"
    for file in ("day=1/a.csv", "day=1/part/c.csv", "day=2/b.csv"):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("x\n1\n")
    (folder / "day=1" / "empty.csv").touch()
    (folder / link).symlink_to(target)
    raw, later = RawFiles(uri=str(folder), key=BY_DAY, empty="ignore"), datetime.now(UTC) + timedelta(hours=1)
    assert ready(list_landing(raw, later)) == expected


def test_what_a_file_system_found_again_is_left_out() -> None:
    lost = SetAside("lost+found", "cannot be listed: Permission denied", is_folder=True)
    landing = grouped("2024-01-01.csv", "lost+found/2024-01-02.csv", lost, key=BY_DATE)
    assert ready(landing) == ["2024-01-01"] and landing.set_aside == ()
    inner = SetAside("eu/lost+found", "cannot be listed: Permission denied", is_folder=True)
    assert ready(grouped("2024-01-01.csv", inner, key=BY_DATE)) == []


@pytest.mark.parametrize(
    ("raw", "name"),
    [({"key": BY_DAY}, "part-{0:08x}.csv"), ({"key": BY_DATE}, "2024-01-{day:02}-{0:x}.csv"), ({}, "{0}.csv")],
)
def test_many_folders_beside_many_files_cost_little(
    monkeypatch: pytest.MonkeyPatch, raw: dict[str, str], name: str
) -> None:
    entries: list[str | SetAside] = [
        f"day={day}/{name.format(number * 7919 + day, day=day)}" for day in range(10, 30) for number in range(100)
    ]
    folders = [SetAside(f"day={day}", "cannot be listed", is_folder=True) for day in range(30, 80)]
    asked: list[int] = []
    find = landing_module._keys

    def counted(raw: RawFiles, paths: Sequence[str]) -> Sequence[str | None]:
        asked.append(len(paths))
        return find(raw, paths)

    monkeypatch.setattr(landing_module, "_keys", counted)
    landing = grouped(*entries, *folders, **raw)
    assert sum(asked) < 2 * len(entries)
    assert len(landing.lacking) == (20 if raw.get("key") == BY_DATE else 0)


@contextmanager
def unlistable(name: str) -> Iterator[None]:
    """Fail each listing of a folder of this name; root may list any folder, whatever its mode."""

    def scandir(path: str) -> object:
        if os.path.basename(path) == name:
            raise PermissionError(13, "Permission denied")
        return scan(path)

    scan = os.scandir
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "scandir", scandir)
        yield


@pytest.fixture
def by_day(deploy: Deploy) -> Deployment:
    """Day 1 has a file, and another one in a folder."""
    deployment = deploy(
        raw={"key": BY_DAY, "glob": "**/*.parquet", "changed": "replace"}, write={"batch_column": "batch"}
    )
    (deployment.landing / "day=1" / "sub").mkdir(parents=True)
    deployment.land("day=1/a", range(3))
    deployment.land("day=1/sub/b", range(3, 5))
    return deployment


def test_a_linked_file_is_ingested_with_its_batch_once_it_is_copied(by_day: Deployment) -> None:
    path = by_day.landing / "day=1" / "sub" / "b.parquet"
    path.rename(by_day.landing.parent / "b.parquet")
    path.symlink_to(by_day.landing.parent / "b.parquet")
    ticked = by_day.tick()
    assert ticked.runs == () and "1 lack a file that is set aside" in (ticked.skip_message or "")
    (batch,) = batch_states(by_day.config, by_day.instance).batches
    assert batch.state.value == "waiting" and "it lacks day=1/sub/b.parquet, which is set aside" in batch.reason
    path.unlink()
    (by_day.landing.parent / "b.parquet").rename(path)
    by_day.tick()
    assert by_day.data.count_rows() == 5


@pytest.mark.parametrize(
    ("raw", "write"),
    [({"schema_mode": "overwrite"}, {}), ({"changed": "replace"}, {"batch_column": "batch"})],
    ids=["overwrite", "replace"],
)
def test_a_daily_snapshot_that_links_to_an_unchanged_file_replaces_no_rows_by_fewer(
    deploy: Deploy, raw: dict[str, str], write: dict[str, str]
) -> None:
    deployment = deploy(raw={"key": BY_DAY, "glob": "**/*.parquet", **raw}, write=write)
    for day in "12":
        (deployment.landing / f"day={day}").mkdir()
    deployment.land("day=1/a", range(3))
    deployment.land("day=1/b", range(3, 5))
    if "changed" in raw:
        deployment.land("day=2/a", range(3))
        deployment.land("day=2/b", range(3, 5))
    deployment.tick()
    num_rows = deployment.data.count_rows()
    (deployment.landing / "day=2" / "a.parquet").unlink(missing_ok=True)
    (deployment.landing / "day=2" / "a.parquet").symlink_to("../day=1/a.parquet")
    deployment.land("day=2/b", range(3, 6))
    assert deployment.tick().runs == ()
    assert deployment.data.count_rows() == num_rows
    (batch,) = (batch for batch in batch_states(deployment.config, deployment.instance).batches if batch.key == "2")
    assert batch.state.value == "waiting" and "it lacks day=2/a.parquet, which is set aside" in batch.reason


def test_a_folder_that_cannot_be_listed_for_a_tick_replaces_no_rows_by_fewer(by_day: Deployment) -> None:
    by_day.tick()
    by_day.location.cursors.clear()
    with unlistable("sub"):
        assert by_day.tick().runs == ()
        (batch,) = batch_states(by_day.config, by_day.instance).batches
        assert batch.state.value == "waiting" and "cannot be listed: Permission denied" in batch.reason
    assert by_day.tick().runs == ()
    assert by_day.data.count_rows() == 5


@pytest.mark.usefixtures("without_pauses")
def test_a_run_that_cannot_list_a_folder_sets_the_batch_aside_and_it_is_asked_for_again(by_day: Deployment) -> None:
    by_day.instance.add_dynamic_partitions(by_day.names.of("batches"), ["1"])
    with unlistable("sub"), pytest.raises(dg.Failure, match="files of it may be in day=1/sub"):
        by_day.ingest("1")
    by_day.tick()
    assert by_day.data.count_rows() == 5


@pytest.mark.usefixtures("without_pauses")
def test_a_batch_that_a_run_left_is_asked_for_again_with_the_same_files(by_day: Deployment) -> None:
    by_day.instance.add_dynamic_partitions(by_day.names.of("batches"), ["1"])
    link = by_day.landing / "day=1" / "c.parquet"
    link.symlink_to("nowhere")
    with pytest.raises(dg.Failure, match="1 of 1 batches are not complete and wait"):
        by_day.ingest("1")
    (batch,) = batch_states(by_day.config, by_day.instance).batches
    assert (batch.state.value, batch.is_settled) == ("waiting", True)
    assert by_day.tick().runs == ()
    link.unlink()
    by_day.tick()
    assert by_day.data.count_rows() == 5


def test_a_run_that_cannot_list_a_folder_leaves_what_the_table_has(by_day: Deployment) -> None:
    by_day.tick()
    with unlistable("sub"), pytest.raises(dg.Failure, match="files of it may be in day=1/sub"):
        by_day.ingest("1")
    assert by_day.data.count_rows() == 5


def test_a_declaration_that_takes_all_batches_of_a_run_or_none_takes_none(deploy: Deploy) -> None:
    deployment = deploy(raw={"key": BY_DAY, "glob": "**/*.parquet", "bad": "refuse"})
    for day in "12":
        (deployment.landing / f"day={day}").mkdir()
        deployment.land(f"day={day}/a", range(1))
    (deployment.landing / "day=2" / "b.parquet").symlink_to("nowhere")
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), ["1", "2"])
    with pytest.raises(dg.Failure, match="no batch is ingested:\n.*it lacks day=2/b.parquet"):
        deployment.ingest("1", "2")
    with pytest.raises(Exception, match="only: batch 2 is not complete: it lacks day=2/b.parquet"):
        deployment.run("ingest_files", launch(IngestFiles(only=("2",)), dry_run=False))


def test_no_older_batch_becomes_the_whole_table_because_the_newest_is_not_complete(deploy: Deploy) -> None:
    deployment = deploy(raw={"key": BY_DAY, "glob": "**/*.parquet", "schema_mode": "overwrite"})
    for day in "12":
        (deployment.landing / f"day={day}").mkdir()
    deployment.land("day=2/a", range(5))
    deployment.tick()
    deployment.land("day=1/a", range(3))
    deployment.land("day=2/a", range(7))
    (deployment.landing / "day=2" / "b.parquet").symlink_to("nowhere")
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), ["1", "2"])
    with pytest.raises(dg.Failure, match="no batch is ingested:\n.*it lacks day=2/b.parquet"):
        deployment.ingest("2", "1")
    assert (deployment.data.version, deployment.data.count_rows()) == (1, 5)


@pytest.mark.parametrize("others", [(), ("2",)])
def test_a_run_says_that_other_batches_are_in_the_table_only_if_it_has_others(
    by_day: Deployment, others: tuple[str, ...]
) -> None:
    (by_day.landing / "day=1" / "c.parquet").symlink_to("nowhere")
    (by_day.landing / "day=2").mkdir()
    by_day.land("day=2/a", range(5, 7))
    by_day.instance.add_dynamic_partitions(by_day.names.of("batches"), ["1", "2"])
    with pytest.raises(dg.Failure) as failure:
        by_day.ingest("1", *others)
    assert ("All other batches are in the table." in str(failure.value.description)) == bool(others)
