"""A step that is attempted again does not apply a second time what an earlier attempt committed."""

# No postponed annotations here: Dagster compares the annotation of `context` as it stands.
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import dagster as dg
import pyarrow as pa
import pytest

from lance_ops.api import dataset
from lance_ops.core.errors import CommitStateUnknown, StoreError
from lance_ops.dagster import LanceIOManager, failures
from lance_ops.dagster.io import io_manager
from lance_ops.dagster.io.stored_dataset import StoredDataset
from lance_ops.dagster.ops import launch, table_ops, verb_ops
from lance_ops.snapshot import Snapshot
from lance_ops.verbs import (
    AddColumns,
    Branch,
    Clone,
    DeleteRows,
    DropIndex,
    Executed,
    Restore,
    Tag,
    Update,
    Upsert,
    Verb,
    do_now,
)
from tests.dagster.deployment import Deployment, output_metadata

pytestmark = pytest.mark.dagster

TIMES_TEN = Update(values={"id": "id * 10"})


class Killed(BaseException):
    """The process of the run dies here."""


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "_SECONDS_TO_WAIT", 0)


@pytest.fixture
def filled(deployment: Deployment) -> Deployment:
    """Ten rows in version 1."""
    deployment.fill(1)
    return deployment


def ids(filled: Deployment) -> list[int]:
    found: list[int] = filled.data.to_table(columns=["id"])["id"].to_pylist()
    return sorted(found)


def once(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Raise an error after the first commit of a verb that is done at once."""
    errors = [error]

    def failing(*args: Any, **options: Any) -> Executed:
        done = do_now(*args, **options)
        if errors:
            raise errors.pop()
        return done

    monkeypatch.setattr(verb_ops, "do_now", failing)


@pytest.mark.parametrize("error", [StoreError("503"), CommitStateUnknown("uuid", 2, "timeout")])
def test_a_store_that_fails_after_the_commit_does_not_apply_a_verb_twice(
    filled: Deployment, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    once(monkeypatch, error)
    metadata = output_metadata(filled.run("update", launch(TIMES_TEN, dry_run=False)))
    assert ids(filled) == [number * 10 for number in range(10)]
    assert metadata["lance/committed_before"] == 2
    assert filled.head_versions() == [2]


def test_a_store_that_fails_in_the_report_does_not_apply_a_verb_twice(
    filled: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise StoreError("503")

    monkeypatch.setattr(table_ops, "report_versions", failing)
    metadata = output_metadata(filled.run("update", launch(TIMES_TEN, dry_run=False)))
    assert ids(filled) == [number * 10 for number in range(10)]
    assert metadata["lance/new_versions"] == "unknown: the version sensor will record them"
    assert filled.data.version == 2


EVERY: dict[str, Verb] = {
    "update": TIMES_TEN,
    "delete_rows": DeleteRows(predicate="id < 5", reason="r"),
    "delete_rows by count": DeleteRows(predicate="id < 5", reason="r", at_most_rows=5),
    "restore": Restore(version=1, reason="r"),
    "add_columns": AddColumns(values={"twice": "id * 2"}),
}


@pytest.mark.parametrize("verb", EVERY.values(), ids=EVERY)
def test_a_run_that_was_killed_after_its_commit_reports_when_it_is_executed_again(
    filled: Deployment, monkeypatch: pytest.MonkeyPatch, verb: Verb
) -> None:
    killed = killed_after_commit(filled, monkeypatch, verb)
    version, rows = filled.data.version, filled.data.to_table()
    assert version == 2
    again = filled.run(verb.name, launch(verb, dry_run=False), **of_run(killed))
    assert output_metadata(again)["lance/committed_before"] == version
    assert filled.data.version == version and filled.data.to_table() == rows
    assert filled.head_versions() == [version]


def test_an_upsert_that_was_killed_after_its_commit_is_not_repeated(
    filled: Deployment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("id,city\n10,Basel\n")
    verb = Upsert(files=(str(rows),), on=("id",))
    killed = killed_after_commit(filled, monkeypatch, verb)
    filled.run("upsert", launch(verb, dry_run=False), **of_run(killed))
    assert filled.data.version == 2 and ids(filled) == list(range(11))


def test_a_run_that_succeeded_applies_its_verb_again_when_it_is_executed_again(filled: Deployment) -> None:
    done = filled.run("update", launch(TIMES_TEN, dry_run=False))
    filled.run("update", launch(TIMES_TEN, dry_run=False), **of_run(done.dagster_run))
    assert ids(filled) == [number * 100 for number in range(10)]


def test_a_run_that_is_executed_again_with_another_configuration_is_new_work(
    filled: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = killed_after_commit(filled, monkeypatch, TIMES_TEN)
    filled.run("update", launch(Update(values={"id": "id + 1"}), dry_run=False), **of_run(killed))
    assert ids(filled) == [number * 10 + 1 for number in range(10)]


def test_the_second_of_two_runs_that_were_killed_reports_what_the_first_committed(
    filled: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = killed_after_commit(filled, monkeypatch, TIMES_TEN)
    with monkeypatch.context() as patch:
        patch.setattr(Snapshot, "latest", dying)
        with pytest.raises(Killed):
            filled.run("update", launch(TIMES_TEN, dry_run=False), **of_run(first))
    second = filled.instance.get_runs(limit=1)[0]
    assert second.get_parent_run_id() == first.run_id
    filled.run("update", launch(TIMES_TEN, dry_run=False), **of_run(second, first))
    assert ids(filled) == [number * 10 for number in range(10)]


@pytest.fixture
def named(filled: Deployment) -> Deployment:
    """Two versions; tag `old`, branch `side` and an index exist already."""
    filled.data.create_scalar_index("id", "BTREE")
    filled.data.tags.create("old", 1)
    filled.data.create_branch("side", 1)
    return filled


def references(deployment: Deployment) -> tuple[object, ...]:
    data = deployment.data
    tags = {name: tag["version"] for name, tag in data.tags.list().items()}
    return tags, {*data.branches.list()}, len(data.describe_indices()), data.version


REFERENCES: dict[str, Verb] = {
    "create a tag": Tag(tag="new"),
    "create a tag of a version": Tag(tag="new", version=1),
    "move a tag": Tag(tag="old", version=2, action="move"),
    "delete a tag": Tag(tag="old", action="delete"),
    "create a branch": Branch(branch="new"),
    "create a branch of a tag": Branch(branch="new", tag="old"),
    "delete a branch": Branch(branch="side", action="delete"),
    "drop an index": DropIndex(index="id_idx"),
}


@pytest.mark.parametrize("verb", REFERENCES.values(), ids=REFERENCES)
def test_a_reference_that_a_killed_run_made_or_removed_is_found_by_the_run_in_its_place(
    named: Deployment, monkeypatch: pytest.MonkeyPatch, verb: Verb
) -> None:
    initial = references(named)
    killed = killed_after_commit(named, monkeypatch, verb)
    before = references(named)
    assert before != initial, "the killed run did it"
    assert named.run(verb.name, launch(verb, dry_run=False), **of_run(killed)).success
    assert references(named) == before


@pytest.mark.parametrize("shallow", [True, False])
def test_a_clone_that_a_killed_run_made_is_found_by_the_run_in_its_place(
    named: Deployment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shallow: bool
) -> None:
    verb = Clone(target=str(tmp_path / "copy.lance"), version=1, shallow=shallow)
    killed = killed_after_commit(named, monkeypatch, verb)
    dataset(verb.target).delete("id = 1")
    metadata = output_metadata(named.run("clone", launch(verb, dry_run=False), **of_run(killed)))
    assert (metadata["lance/cloned_version"], metadata["lance/rows"]) == (1, 10)
    other = Clone(target=verb.target, version=2, shallow=shallow)
    with pytest.raises(dg.Failure, match="holds a dataset already"):
        named.run("clone", launch(other, dry_run=False), **of_run(killed))


def test_a_store_that_fails_after_a_tag_was_written_does_not_fail_the_step(
    named: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    once(monkeypatch, StoreError("503"))
    assert named.run("tag", launch(Tag(tag="new"), dry_run=False)).success


@pytest.mark.parametrize(
    ("verb", "reason"),
    [
        (Tag(tag="old", version=1), "exists already"),
        (Branch(branch="side", version=1), "exists already"),
        (Tag(tag="none", action="delete"), "no tag"),
        (Branch(branch="none", action="delete"), "no branch"),
    ],
    ids=str,
)
def test_a_reference_of_another_writer_fails_each_attempt(named: Deployment, verb: Verb, reason: str) -> None:
    if isinstance(verb, Branch):
        time.sleep(1)  # a branch's file has whole seconds
    config, job = {verb.name: launch(verb, dry_run=False)}, named.names.of(verb.name)
    failed = named.location.run(job, config, raise_on_error=False)
    with pytest.raises(dg.Failure, match=reason):
        named.run(verb.name, launch(verb, dry_run=False), **of_run(failed.dagster_run))


def test_a_tag_that_another_writer_made_before_a_killed_run_is_not_taken_for_its_own(
    named: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = killed_after_commit(named, monkeypatch, Tag(tag="new"))
    with pytest.raises(dg.Failure, match="exists already"):
        named.run("tag", launch(Tag(tag="old", version=1), dry_run=False), **of_run(killed))


@pytest.mark.parametrize("verb", EVERY.values(), ids=EVERY)
def test_a_verb_whose_version_was_restored_away_is_executed_again(
    filled: Deployment, monkeypatch: pytest.MonkeyPatch, verb: Verb
) -> None:
    killed = killed_after_commit(filled, monkeypatch, verb)
    rows = filled.data.to_table()
    filled.data.checkout_version(1).restore()
    again = filled.run(verb.name, launch(verb, dry_run=False), **of_run(killed))
    assert "lance/committed_before" not in output_metadata(again)
    assert filled.data.version == 4 and filled.data.to_table() == rows


def dying(_: object) -> NoReturn:
    raise Killed


def killed_after_commit(filled: Deployment, monkeypatch: pytest.MonkeyPatch, verb: Verb) -> dg.DagsterRun:
    once(monkeypatch, Killed())
    with pytest.raises(Killed):
        filled.run(verb.name, launch(verb, dry_run=False))
    return filled.instance.get_runs(limit=1)[0]


def of_run(parent: dg.DagsterRun, root: dg.DagsterRun | None = None) -> dict[str, str]:
    """Return the tags of a run that executes another one again."""
    return {"dagster/parent_run_id": parent.run_id, "dagster/root_run_id": (root or parent).run_id}


DAYS = dg.StaticPartitionsDefinition(["1", "2"])


@dg.asset(metadata={"write_mode": "append"})
def events() -> pa.Table:
    return pa.table({"id": [1, 2]})


@dg.asset(metadata={"write_mode": "append"}, partitions_def=DAYS)
def daily(context: dg.AssetExecutionContext) -> pa.Table:
    return pa.table({"day": [int(context.partition_key)]})


@dg.multi_asset(outs={name: dg.AssetOut(metadata={"write_mode": "append"}) for name in ("left", "right")})
def both() -> tuple[pa.Table, pa.Table]:
    return pa.table({"id": [1]}), pa.table({"id": [2]})


@dataclass
class Lake:
    """Assets that an IO manager appends to datasets of a folder."""

    folder: Path
    instance: dg.DagsterInstance
    branch: str | None = None

    def materialize(self, asset: dg.AssetsDefinition, key: str | None = None, **tags: str) -> dg.DagsterRun:
        manager = LanceIOManager(base_uri=str(self.folder), branch=self.branch)
        dg.materialize([asset], resources={"io_manager": manager}, instance=self.instance, partition_key=key, tags=tags)
        return self.instance.get_runs(limit=1)[0]

    def killed(self, asset: dg.AssetsDefinition, key: str | None = None) -> dg.DagsterRun:
        """Materialize in a run that dies after the append."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(io_manager, "_metadata", lambda *_: dying(None))
            with pytest.raises(Killed):
                self.materialize(asset, key)
        return self.instance.get_runs(limit=1)[0]

    def rows(self, name: str) -> list[dict[str, int]]:
        stored = StoredDataset(str(self.folder / f"{name}.lance"), branch=self.branch).open()
        found: list[dict[str, int]] = stored.to_table().to_pylist()
        return found


@pytest.fixture(params=[None, "dev"])
def lake(request: pytest.FixtureRequest, tmp_path: Path, instance: dg.DagsterInstance) -> Lake:
    return Lake(tmp_path / "assets", instance, request.param)


def test_rows_that_a_killed_run_appended_are_not_appended_again(lake: Lake) -> None:
    killed = lake.killed(events)
    again = lake.materialize(events, **of_run(killed))
    assert lake.rows("events") == [{"id": 1}, {"id": 2}]
    (event,) = lake.instance.fetch_materializations(events.key, limit=1).records
    assert event.run_id == again.run_id and event.asset_materialization is not None
    assert event.asset_materialization.metadata["dagster/row_count"].value == 2
    assert event.asset_materialization.metadata["lance/written_rows"].value == 0
    lake.materialize(events, **of_run(again, killed))
    assert len(lake.rows("events")) == 4, "a run that succeeded is new work"


def restored(lake: Lake, name: str, version: int) -> None:
    opened = StoredDataset(str(lake.folder / f"{name}.lance"), branch=lake.branch).open()
    opened.checkout_version(version).restore()


def test_rows_that_a_restore_took_out_are_appended_by_the_next_attempt(lake: Lake) -> None:
    lake.materialize(events)
    before = StoredDataset(str(lake.folder / "events.lance"), branch=lake.branch).open().version
    killed = lake.killed(events)
    restored(lake, "events", before)
    assert len(lake.rows("events")) == 2
    lake.materialize(events, **of_run(killed))
    assert len(lake.rows("events")) == 4
    (event,) = lake.instance.fetch_materializations(events.key, limit=1).records
    assert event.asset_materialization is not None
    assert event.asset_materialization.metadata["lance/written_rows"].value == 2


def test_an_append_that_writes_nothing_says_so(lake: Lake) -> None:
    killed = lake.killed(events)
    again = lake.materialize(events, **of_run(killed))
    said = [entry.user_message for entry in lake.instance.all_logs(again.run_id)]
    version = StoredDataset(str(lake.folder / "events.lance"), branch=lake.branch).open().version
    told = f"version {version} holds the rows that an earlier attempt of this step appended"
    assert any(told in message for message in said)
    (event,) = lake.instance.fetch_materializations(events.key, limit=1).records
    assert event.asset_materialization is not None
    assert event.asset_materialization.metadata["lance/committed_before"].value == version


def test_a_killed_run_stops_no_append_of_another_partition_or_output(lake: Lake) -> None:
    killed = lake.killed(daily, "1")
    lake.materialize(daily, "2")
    lake.materialize(daily, "1", **of_run(killed))
    assert lake.rows("daily") == [{"day": 1}, {"day": 2}]
    killed = lake.killed(both)
    lake.materialize(both, **of_run(killed))
    assert lake.rows("left") == [{"id": 1}] and lake.rows("right") == [{"id": 2}]


def test_a_step_that_is_attempted_again_appends_once(lake: Lake) -> None:
    failures: list[Exception] = [StoreError("503")]

    @dg.asset(metadata={"write_mode": "append"}, retry_policy=dg.RetryPolicy(max_retries=1))
    def retried() -> pa.Table:
        return pa.table({"id": [1]})

    counted = io_manager._metadata

    def failing(*args: Any) -> dict[str, Any]:
        if failures:
            raise failures.pop()
        return counted(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(io_manager, "_metadata", failing)
        lake.materialize(retried)
    assert lake.rows("retried") == [{"id": 1}] and not failures
