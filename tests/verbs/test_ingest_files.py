"""The verb `ingest_files`: it says of each file what would become of it, and takes these very files or none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from lance_ops.api import dataset, write_dataset
from lance_ops.core.errors import DatasetNotFound, InvalidInput, PlanOutdated, RawFileRefused
from lance_ops.verbs import (
    AbsentTable,
    Compact,
    IngestFiles,
    Preview,
    StoredPlan,
    Target,
    do_now,
    execute_plan,
    make_plan,
)
from tests.verbs.living import section


def landed(folder: Path, name: str, **columns: object) -> str:
    path = folder / f"{name}.parquet"
    pyarrow.parquet.write_table(pa.table(columns), path)
    return str(path)


def target(uri: str) -> Target:
    try:
        return dataset(uri)
    except DatasetNotFound:
        return AbsentTable.at(uri)


def planned(verb: IngestFiles, uri: str) -> tuple[StoredPlan, Preview]:
    plan, preview = make_plan(verb, target(uri))
    return StoredPlan.from_json(plan.to_json()), preview


def fates(preview: Preview) -> dict[str, str]:
    """Return what happens with each batch."""
    files = section(preview, "Files")
    return dict(zip(files["batch"], files["what happens"], strict=True))


@pytest.fixture
def table(tmp_path: Path, dataset_uri: str) -> str:
    """A table of one batch `first.parquet`, columns id and v."""
    do_now(IngestFiles((landed(tmp_path, "first", id=[1, 2], v=["a", "b"]),), isolated=False), target(dataset_uri))
    return dataset_uri


def test_a_table_is_planned_where_none_is_and_made_of_the_planned_files(tmp_path: Path, dataset_uri: str) -> None:
    files = (landed(tmp_path, "a", id=[1, 2], v=["x", "y"]), landed(tmp_path, "b", id=[3]))
    plan, preview = planned(IngestFiles(files), dataset_uri)
    assert preview.summary == "ingest 2 files of 2 batches, 3 rows"
    assert preview.after is not None and preview.after.rows == 3
    assert fates(preview) == {"a.parquet": "fits", "b.parquet": "fills v with nulls"}
    assert section(preview, "Columns afterwards")["change"] == ("new", "new")
    assert plan.read_version == 0 and not Path(dataset_uri).exists()
    with pytest.raises(DatasetNotFound, match="no dataset is there"):
        make_plan(Compact(), target(dataset_uri))
    done = execute_plan(plan, target(dataset_uri))
    assert (done.before.rows, done.after.rows, done.read_version, done.version) == (0, 3, 0, 1)
    assert done.sections[0].lines == (("a.parquet", "2"), ("b.parquet", "1"))
    again = execute_plan(plan, target(dataset_uri))
    assert (again.version, again.facts) == (1, {"ingested_batches": 0, "skipped_batches": 2, "ingested_rows": 0})
    other, _ = planned(IngestFiles((landed(tmp_path, "c", id=[4]),), isolated=False), dataset_uri + "-other")
    write_dataset(pa.table({"id": [1]}), dataset_uri + "-other")
    with pytest.raises(PlanOutdated, match="created since the plan"):
        execute_plan(other, target(dataset_uri + "-other"))


def test_the_preview_says_what_the_policies_do_to_each_file(tmp_path: Path, table: str) -> None:
    (tmp_path / "junk.parquet").write_bytes(b"junk")
    (tmp_path / "t.csv").write_text("id,v\n7,z\n")
    files = (
        str(tmp_path / "first.parquet"),
        landed(tmp_path, "wide", id=[5], v=["c"], w=[1.5]),
        landed(tmp_path, "small", id=pa.array([6], pa.int32()), v=["d"]),
        landed(tmp_path, "wrong", id=["x"], v=["e"]),
        str(tmp_path / "junk.parquet"),
        str(tmp_path / "t.csv"),
    )
    verb = IngestFiles(files, bad="set_aside")
    plan, preview = planned(verb, table)
    found = fates(preview)
    assert found["first.parquet"] == "skipped: the table holds it"
    assert found["small.parquet"] == "casts id: int32 to int64"
    assert "column 'w' (double) is not in the table" in found["wide.parquet"]
    assert "quarantined" in found["wrong.parquet"] and "column 'id' is int64 in the table" in found["wrong.parquet"]
    assert "quarantined" in found["junk.parquet"] and "4 bytes" in found["junk.parquet"]
    assert found["t.csv"] == "fits"
    assert preview.after is None, "no footer states the rows of text"
    assert preview.facts["refused_batches"] == 3
    done = execute_plan(plan, target(table))
    assert done.facts == {"ingested_batches": 2, "skipped_batches": 1, "ingested_rows": 2, "refused_batches": 3}
    assert done.problem.startswith("3 of 6 batches are set aside, the others are in the table: ")
    assert {key for key, _ in done.sections[0].lines} == {"wide.parquet", "wrong.parquet", "junk.parquet"}
    refused = make_plan(IngestFiles(files), target(table))[1]
    assert refused.does_nothing and refused.warnings[0].startswith("It would be refused: ")
    added = make_plan(IngestFiles(files[1:3], schema_mode="add", isolated=False), target(table))[1]
    assert fates(added)["wide.parquet"] == "adds w"
    assert section(added, "Columns afterwards")["change"][0] == "new"


def test_a_plan_takes_the_very_files_or_is_refused(tmp_path: Path, table: str) -> None:
    files = (landed(tmp_path, "a", id=[3], v=["x"]), landed(tmp_path, "b", id=[4], v=["y"]))
    plan, _ = planned(IngestFiles(files, isolated=False), table)
    landed(tmp_path, "b", id=[4, 5], v=["y", "z"])
    with pytest.raises(PlanOutdated, match=r"b\.parquet has changed since the plan"):
        execute_plan(plan, target(table))
    assert dataset(table).version == 1
    plan, _ = planned(IngestFiles(files, isolated=False), table)
    dataset(table).delete("id = 1")
    done = execute_plan(plan, target(table))
    assert (done.read_version, done.version, done.after.rows) == (1, 3, 4), "the deletion stays, and the batches come"
    transaction = dataset(table).read_transaction(3)
    assert transaction is not None and transaction.read_version == 1


def test_a_plan_is_refused_when_another_run_has_ingested_one_of_its_batches(tmp_path: Path, table: str) -> None:
    verb = IngestFiles((landed(tmp_path, "a", id=[3], v=["x"]),), isolated=False)
    both = replace(verb, files=(*verb.files, landed(tmp_path, "b", id=[4], v=["y"])))
    plan, _ = planned(both, table)
    do_now(verb, target(table))
    with pytest.raises(PlanOutdated, match=r"planned on version 1.*2 \(Append\)"):
        execute_plan(plan, target(table))
    assert dataset(table).count_rows() == 3
    assert do_now(verb, target(table)).facts["skipped_batches"] == 1


def test_a_plan_whose_batches_the_table_holds_is_repeated_without_an_error(tmp_path: Path, table: str) -> None:
    verb = IngestFiles((landed(tmp_path, "a", id=[3], v=["x"]),), isolated=False)
    plan, _ = planned(verb, table)
    execute_plan(plan, target(table))
    dataset(table).delete("id = 1")
    again = execute_plan(plan, target(table))
    assert (again.read_version, again.version, again.outcome.result.skipped) == (3, 3, ("a.parquet",))
    assert [batch.key for batch in again.outcome.batches] == ["a.parquet"]
    dataset(table, 1).restore()
    with pytest.raises(PlanOutdated, match=r"planned on version 1"):
        execute_plan(plan, target(table))


def test_a_plan_to_begin_anew_is_refused_when_rows_were_appended(tmp_path: Path, table: str) -> None:
    verb = IngestFiles((landed(tmp_path, "a", id=[3], v=["x"]),), schema_mode="overwrite", isolated=False)
    plan, preview = planned(verb, table)
    assert preview.after is not None and preview.after.rows == 1
    dataset(table).insert(pa.table({"id": [8], "v": ["z"]}))
    with pytest.raises(PlanOutdated, match=r"planned on version 1.*2 \(Append\)"):
        execute_plan(plan, target(table))
    assert dataset(table).count_rows() == 3
    assert execute_plan(planned(verb, table)[0], target(table)).after.rows == 1


class CountedText(str):
    """Text that counts its comparisons."""

    __slots__ = ()
    __hash__ = str.__hash__
    num_comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedText.num_comparisons += 1
        return str.__eq__(self, other)


def test_many_files_are_not_each_compared_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IngestFiles, "__post_init__", lambda _: None)  # it refuses text of another class
    monkeypatch.setattr(CountedText, "num_comparisons", 0)
    files = tuple(CountedText(f"{number}.csv") for number in range(1000))
    with pytest.raises(InvalidInput, match="'z'"):
        IngestFiles(files, batches=dict.fromkeys([*files, "z"], "monday")).found_batches({})
    assert len(IngestFiles(files, only=files).sources) == 1000
    assert CountedText.num_comparisons < 20_000


def test_two_files_of_one_name_or_one_file_twice_are_refused(tmp_path: Path, table: str) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    first, second = landed(tmp_path, "a", id=[3], v=["x"]), landed(inside, "a", id=[4], v=["y"])
    with pytest.raises(InvalidInput, match=r"a\.parquet have one name: give batch, or batches"):
        make_plan(IngestFiles((first, second)), target(table))
    keyed = IngestFiles((first, second), batches={second: "in/a"}, isolated=False)
    assert [batch.key for batch in keyed.found_batches({})] == ["a.parquet", "in/a"]
    assert len(IngestFiles((first, second), batch="both").found_batches({})[0].files) == 2
    for twice in ((first, first), (first, f"{inside}/../a.parquet")):
        for verb in (IngestFiles(twice, batch="b"), IngestFiles(twice, batches={twice[1]: "c"})):
            with pytest.raises(InvalidInput, match=r"a\.parquet twice"):
                make_plan(verb, target(table))
    with pytest.raises(InvalidInput, match="twice"):
        do_now(IngestFiles((first, first)), target(table))
    assert dataset(table).version == 1


def test_files_form_batches_by_keys_and_stay_in_their_folder(tmp_path: Path, table: str) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    files = (landed(inside, "a", id=[3], v=["x"]), landed(inside, "b", id=[4], v=["y"]))
    keyed = IngestFiles(files, batches=dict.fromkeys(files, "monday"), beneath=str(inside), isolated=False)
    assert [batch.key for batch in keyed.found_batches({})] == ["monday"]
    assert make_plan(keyed, target(table))[1].facts["batches"] == 1
    link = inside / "link.parquet"
    link.symlink_to(tmp_path / "first.parquet")
    with pytest.raises(RawFileRefused, match="symbolic link"):
        make_plan(IngestFiles((str(link),), beneath=str(inside)), target(table))
    with pytest.raises(RawFileRefused, match="it is not in"):
        make_plan(IngestFiles((str(tmp_path / "first.parquet"),), beneath=str(inside)), target(table))
    for wrong, message in (
        (IngestFiles(files, only=("c",)), "only names 'c'"),
        (IngestFiles(files, batch="x", batches={files[0]: "y"}), "either batch"),
        (IngestFiles(files, batches={"z": "y"}), "not in files"),
        (IngestFiles(files, limits={"rws": "1"}), "limits has no 'rws'"),
        (IngestFiles(files, limits={"rows": "many"}), "rows is a number"),
        (IngestFiles(files, table_schema="[]"), "table_schema is not"),
    ):
        with pytest.raises(InvalidInput, match=message):
            make_plan(wrong, target(table))
    assert make_plan(IngestFiles(), target(table))[1].does_nothing
    assert do_now(IngestFiles(), target(table)).version == 1
