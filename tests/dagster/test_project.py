"""What `lance-ops init` proposes and writes."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import jsonschema
import pyarrow as pa
import pytest
import yaml
from dagster_cloud_cli.config.models import load_dagster_cloud_yaml
from dotenv import dotenv_values

import lance_ops
from lance_ops.dagster.declaration import RawFiles, StoreLocation, safe_key
from lance_ops.dagster.landing.landing import list_landing
from lance_ops.dagster.project import defs_schema
from lance_ops.dagster.project.landing_survey import LandingSurvey, survey_landing
from lance_ops.dagster.project.project_files import NewProject
from lance_ops.dagster.project.start import start_project
from lance_ops.dagster.project.table_survey import survey_tables
from lance_ops.errors import ConfigError
from lance_ops.maintenance.ingest import RawFile, RawReader, RawReading
from lance_ops.maintenance.ingest.decoding.requests import RawRequest

pytestmark = pytest.mark.dagster

OLD = (datetime.now(UTC) - timedelta(hours=1)).timestamp()


def land(folder: Path, *paths: str, header: str = "id,name") -> None:
    """Write CSV files of one row, old enough to count as settled."""
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"{header}\n1,a\n" if path.endswith((".csv", ".txt")) else "")
        os.utime(folder / path, (OLD, OLD))


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    return tmp_path / "landing"


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decode files here, because a process for each survey would take most of the time of these tests."""
    reading = partial(RawReading, isolated=False)
    monkeypatch.setattr("lance_ops.dagster.project.landing_survey.RawReading", reading)


@pytest.fixture
def survey(landing: Path) -> Callable[..., LandingSurvey]:
    """Land files and look at them."""

    def make(*paths: str) -> LandingSurvey:
        land(landing, *paths)
        return survey_landing(StoreLocation(str(landing)))

    return make


def batches(landing: Path, raw: Mapping[str, Any]) -> list[str]:
    """Return the keys of the batches that a declaration makes of the landed files."""
    declared = RawFiles.model_validate(dict(raw))
    found = list_landing(declared, datetime.now(UTC), {"LANCE_OPS_LANDING": str(landing)})
    assert (found.waiting, found.set_aside) == ((), ())
    return sorted(batch.key for batch in found.ready)


DAY = r"(?P<key>\d{4}-\d{2}-\d{2})"


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["orders/2024-01-01.csv", "orders/2024-01-02.csv"], {"orders": ("*.csv", DAY, ["2024-01-01", "2024-01-02"])}),
        (
            ["orders_2024-01-01.csv", "orders_2024-01-02.csv", "orders_late_2024-01-02.csv"],
            {
                "orders": ("orders_[0-9]*.csv", DAY, ["2024-01-01", "2024-01-02"]),
                "orders_late": ("orders_late_[0-9]*.csv", DAY, ["2024-01-02"]),
            },
        ),
        (["2024-01-01.csv"], {"landing": ("*.csv", DAY, ["2024-01-01"])}),
        # One day has files of its own hours, or parts: a key of the day would see its batch change.
        (
            ["orders/2024-01-01_a.csv", "orders/2024-01-01_b.csv", "orders/2024-01-02_a.csv"],
            {
                "orders/a": ("[0-9]*_a.csv", DAY, ["2024-01-01", "2024-01-02"]),
                "orders/b": ("[0-9]*_b.csv", DAY, ["2024-01-01"]),
            },
        ),
        (
            ["orders/2024-01-01-7.csv", "orders/2024-01-01-8.csv"],
            {"orders": ("*.csv", None, ["2024-01-01-7", "2024-01-01-8"])},
        ),
        (
            ["orders/2024-01-01T0000.csv", "orders/2024-01-01T0100.csv"],
            {
                "orders": (
                    "*.csv",
                    r"(?P<key>\d{4}-\d{2}-\d{2}[T_-]\d{2}[-:_]?\d{2}(?:[-:_]?\d{2})?)",
                    ["2024-01-01T0000", "2024-01-01T0100"],
                )
            },
        ),
        (["cities/bern.csv", "cities/basel.csv"], {"cities": ("*.csv", None, ["basel", "bern"])}),
        (
            ["a/day=2024-01-01/p.csv", "a/day=2024-01-02/p.csv"],
            {"a": ("day=*/*.csv", DAY, ["2024-01-01", "2024-01-02"])},
        ),
        (
            ["a/day=1/0.csv", "a/day=1/1.csv", "a/day=1/_SUCCESS"],
            {"a": ("day=*/*.csv", None, ["day=1"])},
        ),
        (["crm/x.1.csv", "crm/x.2.csv"], {"crm": ("*.csv", r"^(?P<key>.+)\.csv$", ["x.1", "x.2"])}),
        (["Größe & Co/1.csv"], {"gr_e_co": ("*.csv", None, ["1"])}),
        (["a_b/1.csv", "a/b/1.csv"], {"a/b": ("*.csv", None, ["1"]), "a_b_2": ("*.csv", None, ["1"])}),
        (["a[1]/x[1].csv"], {"a_1": ("*.csv", None, [safe_key("x[1]")])}),
    ],
)
def test_a_landing_folder_becomes_datasets_that_find_every_file_once(
    landing: Path,
    survey: Callable[..., LandingSurvey],
    paths: list[str],
    expected: Mapping[str, tuple[str, str | None, list[str]]],
) -> None:
    found = {each.name: each.raw or {} for each in survey(*paths).proposals}
    assert {name: (raw["glob"], raw.get("key")) for name, raw in found.items()} == {
        name: (glob, key) for name, (glob, key, _) in expected.items()
    }
    for name, raw in found.items():
        assert batches(landing, raw) == expected[name][2]


def test_a_survey_says_what_it_saw_and_what_it_leaves_alone(
    landing: Path, survey: Callable[..., LandingSurvey]
) -> None:
    land(landing, "a/1.csv", header="id,name")
    land(landing, "a/2.csv", header="id,title")
    os.utime(landing / "a/2.csv", (OLD + 60, OLD + 60))
    found = survey("notes.txt", "b/{{ env.SECRET }}.csv", "b/${SECRET}.csv", "empty/1.parquet", "h/day=1/1.csv")
    by_name = {each.name: each.comments for each in found.proposals}
    assert by_name["a"] == (
        "Seen: 2 files of 25 bytes, such as 2.csv",
        "Columns: id int64, title string",
        "The oldest file has other columns: name, title",
    )
    (unread,) = (doubt for each in found.proposals for doubt in each.doubts)
    assert unread.startswith("Its columns were not read: ") and unread.endswith("1.parquet is empty")
    assert "folders' values of day do not become columns" in by_name["h"][2]
    assert "b" not in by_name
    assert found.ignored == (
        "2 files with a template in the path are not declared",
        "1 file with .txt is not read: write Parquet, CSV or JSON",
    )


def test_an_older_file_tells_the_columns_if_the_newest_cannot_be_read(landing: Path) -> None:
    land(landing, "orders/2024-01-01.csv", "orders/2024-01-02.csv")
    (landing / "orders" / "2024-01-03.csv").touch()
    (proposal,) = survey_landing(StoreLocation(str(landing))).proposals
    seen, unread, columns = proposal.comments
    assert seen.endswith("2024-01-03.csv") and "2024-01-03.csv is empty" in unread
    read = "orders/2024-01-02.csv, the newest file that can be read"
    assert columns == f"Columns of {read}: id int64, name string"


def test_a_newest_file_that_only_the_joint_reading_reads_tells_the_columns(landing: Path) -> None:
    landing.mkdir()
    for day, text in ((1, "Sales\n\na,b\n1,2\n"), (2, "Sales\n\na,c\n1,2\n"), (3, "Sales\n\na,d\n")):
        (landing / f"2024-01-0{day}.csv").write_text(text)
        os.utime(landing / f"2024-01-0{day}.csv", (OLD + day, OLD + day))
    (proposal,) = survey_landing(StoreLocation(str(landing))).proposals
    assert proposal.raw and proposal.raw["text"] == {"skip_lines": 2}
    assert proposal.comments[1:] == ("Columns: a null, d null", "The oldest file has other columns: b, d")


def test_a_newest_file_that_the_declared_reading_refuses_is_named(landing: Path) -> None:
    landing.mkdir()
    for day, text in ((1, "a;b\n1;2\n"), (2, "a\n1\n2;\n")):
        (landing / f"2024-01-0{day}.csv").write_text(text)
        os.utime(landing / f"2024-01-0{day}.csv", (OLD + day, OLD + day))
    (proposal,) = survey_landing(StoreLocation(str(landing))).proposals
    assert proposal.raw and proposal.raw["text"] == {"delimiter": ";"}
    assert "The newest file was not read: " in proposal.comments[1]
    assert "2024-01-02.csv: line 3: it has 2 cells, and the header has 1" in proposal.comments[1]


def test_a_landing_folder_without_files_is_an_error_that_names_it(landing: Path) -> None:
    with pytest.raises(ConfigError, match="landing: there is no file"):
        survey_landing(StoreLocation(str(landing)))


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A lake with two tables, of which one has indices, and one that cannot be opened."""
    lake = tmp_path / "lake"
    for name in ("trips.lance", "crm/People.lance"):
        lance_ops.write_dataset(pa.table({"id": [1, 2], "city": ["a", "b"]}), str(lake / name))
    trips = lance_ops.dataset(str(lake / "trips.lance"))
    trips.create_scalar_index("id", "BTREE", name="by_id")
    trips.create_scalar_index("city", "ZONEMAP")
    (lake / "broken" / "_versions").mkdir(parents=True)
    return lake


def test_tables_become_datasets_with_the_indices_they_have(tables: Path) -> None:
    found = survey_tables(StoreLocation(str(tables)))
    people, trips = found.proposals
    assert people.attributes == {"name": "crm/people", "uri": "${LANCE_OPS_LAKE}/crm/People.lance"}
    assert trips.attributes["indices"] == [
        {"column": "id", "type": "BTREE", "name": "by_id"},
        {"column": "city", "type": "ZONEMAP", "name": "city_idx"},
    ]
    assert trips.comments == ("Seen: version 3, 2 rows, 1 fragments", "Columns: id int64, city string")
    assert [note.partition(":")[0] for note in found.refused] == ["broken"]


def test_a_table_whose_newest_version_is_damaged_is_declared_with_the_damage(tables: Path) -> None:
    newest = min((tables / "trips.lance" / "_versions").glob("*.manifest"))
    newest.write_bytes(newest.read_bytes()[:40])
    (only,) = (tables / "crm" / "People.lance" / "_versions").glob("*.manifest")
    only.write_bytes(b"garbage")
    people, trips = survey_tables(StoreLocation(str(tables))).proposals
    assert trips.comments[0].startswith("Seen: version 2, 2 rows")
    assert [index["name"] for index in trips.attributes["indices"]] == ["by_id"]
    assert people.attributes == {"name": "crm/people", "uri": "${LANCE_OPS_LAKE}/crm/People.lance"}
    for damaged, manifest in ((trips, newest), (people, only)):
        (doubt,) = damaged.doubts
        assert manifest.name in doubt and "lance-ops repair" in doubt


def test_a_table_given_as_the_folder_of_tables_is_an_error(tables: Path) -> None:
    with pytest.raises(ConfigError, match="give the folder above"):
        survey_tables(StoreLocation(str(tables / "trips.lance")))


def test_tables_are_found_in_a_store_too() -> None:
    lance_ops.write_dataset(pa.table({"id": [1]}), "memory://survey/crm/people.lance")
    found = survey_tables(StoreLocation("memory://survey"))
    assert [each.table for each in found.proposals] == ["crm/people.lance"]


def test_a_project_declares_landed_files_and_tables(tmp_path: Path, landing: Path, tables: Path) -> None:
    land(landing, "trips/2024-01-01.csv", "new/1.csv")
    home = tmp_path / "it's a # \\ lake"
    started = start_project(home, landing=str(landing), tables=str(tables))
    assert (started.home, started.package) == (str(home), "it_s_a_lake")
    assert started.datasets == ("crm/people", "new", "trips")
    assert dotenv_values(home / ".env") == {
        "DAGSTER_HOME": str(home),
        "LANCE_OPS_LAKE": str(tables),
        "LANCE_OPS_LANDING": str(landing),
    }
    assert sorted(str(path.relative_to(home)) for path in home.rglob("defs.yaml")) == [
        "it_s_a_lake/defs/crm_people/defs.yaml",
        "it_s_a_lake/defs/new/defs.yaml",
        "it_s_a_lake/defs/trips/defs.yaml",
    ]
    validator = jsonschema.Draft202012Validator(defs_schema())
    declared = {}
    for path in home.rglob("defs.yaml"):
        first, _, _ = path.read_text().partition("\n")
        schema = first.removeprefix("# yaml-language-server: $schema=")
        assert (path.parent / schema).resolve() == home / ".schemas/lance_components.json"
        document = yaml.safe_load(path.read_text())
        validator.validate(document)
        declared[document["attributes"]["name"]] = document["attributes"]
    assert declared["trips"]["uri"] == "${LANCE_OPS_LAKE}/trips.lance"
    assert declared["trips"]["raw"]["uri"] == "${LANCE_OPS_LANDING}/trips"
    assert [index["type"] for index in declared["trips"]["indices"]] == ["BTREE", "ZONEMAP"]
    assert "raw" not in declared["crm/people"]
    with dg.DagsterInstance.from_config(str(home)) as instance:
        assert instance.run_monitoring_enabled
    cloud = load_dagster_cloud_yaml((home / "dagster_cloud.yaml").read_text())
    assert [each.code_source and each.code_source.module_name for each in cloud.locations] == [
        "it_s_a_lake.definitions"
    ]


@pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
def test_a_project_loads_and_runs_a_backfill_of_the_ui_in_one_process(
    tmp_path: Path, landing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    land(landing, "trips/2024-01-01.csv")
    started = start_project(tmp_path / "lake of this test", landing=str(landing))
    monkeypatch.syspath_prepend(started.home)
    location = importlib.import_module(f"{started.package}.definitions").definitions()
    assert isinstance(location, dg.Definitions)
    assert dg.AssetKey(["trips", "batches"]) in location.resolve_all_asset_keys()
    of_backfills = location.resolve_implicit_global_asset_job_def()
    assert of_backfills.executor_def is dg.in_process_executor


def test_a_folder_with_files_is_refused_and_add_writes_only_what_is_missing(tmp_path: Path, landing: Path) -> None:
    land(landing, "a/1.csv")
    home = tmp_path / "lake"
    home.mkdir()
    (home / "pyproject.toml").write_text("mine")
    with pytest.raises(ConfigError, match="--add"):
        start_project(home, landing=str(landing))
    assert list(home.iterdir()) == [home / "pyproject.toml"]
    started = start_project(home, landing=str(landing), add=True)
    assert started.kept == ("pyproject.toml",)
    assert (home / "pyproject.toml").read_text() == "mine"
    assert {"dagster.yaml", "lake/defs/a/defs.yaml"} <= set(started.written)
    again = start_project(home, landing=str(landing), add=True)
    assert (again.written, set(again.kept)) == ((), {*started.written, "pyproject.toml"})


@pytest.mark.parametrize(
    ("folder", "package"),
    [("my-lake", "my_lake"), ("2024", "lake_2024"), ("json", "json_lake"), ("class", "lake_class"), ("ÄÖ", "lake")],
)
def test_a_package_has_a_name_that_python_does_not_know_yet(folder: str, package: str) -> None:
    assert NewProject(f"/home/{folder}", "/lake", None, ()).package == package


def test_the_delimiter_of_csv_is_the_one_that_gives_columns(landing: Path) -> None:
    texts = {
        "semicolons": "a;b;c\n1;2,5;Bern\n",
        "tabs": "a\tb\n1\t2\n",
        "one": "a\n1\n",
        "commas": 'a,b\n1,"x;y;z"\n',
    }
    for name, text in texts.items():
        (landing / name).mkdir(parents=True)
        (landing / name / "2024-01-01.csv").write_text(text)
        (landing / name / "2024-01-02.csv").write_bytes(b"\0junk")
    found = {each.name: each.raw or {} for each in survey_landing(StoreLocation(str(landing))).proposals}
    assert {name: raw.get("text") for name, raw in found.items()} == {
        "commas": None,
        "one": None,
        "semicolons": {"delimiter": ";", "decimal_point": ","},
        "tabs": {"delimiter": "\t"},
    }


def test_files_without_numbers_are_one_dataset_whatever_their_delimiter(landing: Path) -> None:
    texts = {
        "cities/bern": "a;b\n1;2,5\n",
        "cities/basel": "a;b\n2;3\n",
        "mixed/one": "a;b\n1;2\n",
        "mixed/two": "a,b\n1,2\n",
    }
    for name, text in texts.items():
        (landing / name).parent.mkdir(parents=True, exist_ok=True)
        (landing / f"{name}.csv").write_text(text)
    found = {each.name: each.raw or {} for each in survey_landing(StoreLocation(str(landing))).proposals}
    assert {name: raw.get("text") for name, raw in found.items()} == {
        "cities": {"delimiter": ";", "decimal_point": ","},
        "mixed/one": {"delimiter": ";"},
        "mixed/two": None,
    }


def test_a_survey_opens_each_file_once(landing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, plain = list[str](), RawReader._opened

    def recorded(
        reader: RawReader, file: RawFile, request: RawRequest, *, only_schema: bool
    ) -> AbstractContextManager[tuple[int, RawRequest]]:
        opened.append(Path(file.uri).name)
        return plain(reader, file, request, only_schema=only_schema)

    monkeypatch.setattr(RawReader, "_opened", recorded)
    names = [f"2024-01-0{day}.csv" for day in (1, 2, 3)] + ["bern.jsonl", "basel.jsonl"]
    land(landing, *names)
    for name in names[3:]:
        (landing / name).write_text('{"a": 1}\n')
    survey_landing(StoreLocation(str(landing)))
    assert len(set(opened)) == len(opened) and {*names[2:]} <= {*opened}
