"""The output, effect and errors of each command on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import typer
from typer.testing import CliRunner, Result

from lance_ops.api import dataset, write_dataset
from lance_ops.cli import app, arguments, runners
from lance_ops.cli.arguments import byte_count, duration, storage_options
from lance_ops.cli.changing import change_commands
from lance_ops.cli.output import percent
from lance_ops.core.errors import StoreError
from lance_ops.maintenance.debt import payment
from lance_ops.maintenance.indexing import TaskSizes
from lance_ops.maintenance.indexing.segment_builder import SegmentBuilder
from lance_ops.runners import InThreads, Runner
from lance_ops.snapshot import Snapshot
from tests.pickling_runner import PicklingRunner


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def text(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def said(*arguments: str) -> str:
    """Return the first line that a command prints; sizes that changed stand below it."""
    return text(*arguments).splitlines()[0]


def outcome(*arguments: str) -> dict[str, Any]:
    """Return what a command did as JSON, without the sizes before and after."""
    done = answer(*arguments)
    assert set(done.pop("before")) == set(done.pop("after")) == {"rows", "deleted_rows", "fragments", "size_bytes"}
    return dict(done)


def answer(*arguments: str) -> Any:
    return json.loads(text(*arguments, "--json"))


@pytest.fixture
def flights(dataset_uri: str) -> str:
    """Three versions: twelve rows in three fragments, two of them deleted, the rest tagged and then indexed."""
    table = pa.table({"x": pa.array(range(12), pa.int64()), "carrier": ["UA", "AA", "B6"] * 4})
    write_dataset(table, dataset_uri, max_rows_per_file=4, transaction_properties={"lance_ops.batch.day": "t"})
    opened = dataset(dataset_uri)
    opened.delete("x IN (1, 5)")
    opened.tags.create("v1", 2)
    opened.create_scalar_index("x", "BTREE")
    return dataset_uri


def test_inspect_shows_the_dataset_s_properties(flights: str) -> None:
    shown = text("inspect", flights)
    assert "version    3 of 3" in shown
    assert "10 live, 2 deleted" in shown
    assert "v1 (version 2)" in shown
    for line in ("0 x int64 allowed", "1 carrier string allowed", "x_idx BTree x 100%"):
        assert line in " ".join(shown.split())


def test_inspect_as_json_has_every_fact(flights: str) -> None:
    facts = answer("inspect", flights)
    assert (facts["version"], facts["num_rows"], facts["num_deleted_rows"], facts["num_fragments"]) == (3, 10, 2, 3)
    assert facts["tags"] == {"v1": 2}
    assert [index["name"] for index in facts["indices"]] == ["x_idx"]
    assert facts["schema"][0] == {"id": 0, "name": "x", "type": "int64", "nullable": True}


def test_inspect_accepts_a_version_or_a_tag(flights: str) -> None:
    assert answer("inspect", flights, "--version", "1")["num_deleted_rows"] == 0
    assert answer("inspect", flights, "--version", "v1")["version"] == 2


def test_versions_lists_the_datasets_history(flights: str) -> None:
    lines = [line.split() for line in text("versions", flights).splitlines()]
    rows = {line[0]: line for line in lines if line[0].isdecimal()}
    assert list(rows) == ["1", "2", "3"]
    assert "v1" in rows["2"]
    assert "100%" in rows["3"]
    summaries = answer("versions", flights)
    assert [summary["num_rows"] for summary in summaries] == [12, 10, 10]
    assert [summary["batches"] for summary in summaries] == [["day"], [], []]
    assert [summary["version"] for summary in answer("versions", flights, "--limit", "1")] == [3]


def test_health_names_findings_and_fails_where_asked_to(flights: str) -> None:
    shown = text("health", flights)
    assert "16.7% of the stored rows are deleted" in " ".join(shown.split())
    assert "compact" in shown
    assert run("health", flights, "--fail-on", "warning").exit_code == 1
    assert run("health", flights, "--fail-on", "error").exit_code == 0
    report = answer("health", flights)
    assert report["findings"][0]["severity"] == "warning"
    assert report["deleted_ratio"] == pytest.approx(2 / 12)


def test_a_dataset_without_findings_is_healthy(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": [1]}), dataset_uri)
    assert "healthy" in text("health", dataset_uri, "--fail-on", "warning")


def test_verify_reports_a_complete_version(flights: str) -> None:
    assert "version 3 is whole" in text("verify", flights)
    assert answer("verify", flights, "--version", "1")["ok"] is True
    assert answer("verify", flights, "--version", "v1", "--quick", "--all-versions")["versions"] == [1, 2, 3]


def test_verify_goes_on_part_by_part(flights: str) -> None:
    numbers = np.random.default_rng(1).integers(0, 1 << 62, 200_000)
    dataset(flights).insert(pa.table({"x": numbers, "carrier": ["DL"] * len(numbers)}))
    part = answer("verify", flights, "--max-megabytes", "1")["next_part"]
    assert part is not None
    shown = text("verify", flights, "--max-megabytes", "1")
    assert "version 4 is whole" in shown and f"other files are left: go on with --first-part {part}" in shown
    assert answer("verify", flights, "--max-megabytes", "1", "--first-part", str(part))["ok"] is True
    assert "first_part belongs to max_megabytes" in run("verify", flights, "--first-part", "1").stderr


def test_cleanup_removes_named_versions_and_compact_leaves_fragments_alone(flights: str) -> None:
    assert answer("cleanup", flights, "--remove-version", "1", "--dry-run")["old_versions"] == [1]
    assert answer("cleanup", flights, "--remove-version", "1")["old_versions"] == 1
    assert [each["version"] for each in dataset(flights).versions()] == [2, 3]
    left = ("compact", flights, "--exclude-fragment", "2", "--max-bytes-per-file", "1000000")
    assert outcome(*left, "--data-storage-version", "2.1")["metrics"]["fragments_removed"] == 2
    assert 2 in dataset(flights).snapshot.fragments_by_id


def test_delete_counts_first_and_deletes_when_told(flights: str) -> None:
    shown = text("delete", flights, "carrier = 'UA' AND x > 0", "--dry-run")
    assert "delete 3 of 10 rows" in shown and "Rows that would go" in shown
    assert dataset(flights).count_rows() == 10
    assert outcome("delete", flights, "carrier = 'UA' AND x > 0") == {
        "num_deleted_rows": 3,
        "version": 4,
        "dry_run": False,
    }
    assert dataset(flights).count_rows() == 7
    assert "no row matches; version 4 stays" in text("delete", flights, "x = 77")


def test_compact_plans_and_then_merges(flights: str) -> None:
    planned = answer("compact", flights, "--dry-run")
    assert planned["dry_run"] and planned["preview"]["after"]["fragments"] == 1
    assert planned["preview"]["sections"][0]["lines"] == [["3", "0 … 2", "10", "2"]]
    assert "rewrite 3 fragments" in text("compact", flights, "--dry-run")
    assert len(dataset(flights).get_fragments()) == 3
    bounds = ("--max-source-fragments", "1", "--worst-first", "--max-commits", "3", "--max-seconds", "60")
    assert len(answer("compact", flights, "--dry-run", *bounds)["preview"]["sections"][0]["lines"]) == 1
    metrics = answer("compact", flights, *bounds)["metrics"]
    assert (metrics["fragments_removed"], metrics["fragments_added"]) == (3, 1)
    assert dataset(flights).to_table(filter="x = 7").num_rows == 1
    assert "nothing to compact" in text("compact", flights)


def test_compact_sorts_rows_by_columns(flights: str) -> None:
    assert "rewrite 3 fragments, sorted by x" in text("compact", flights, "--cluster-by", "x", "--dry-run")
    column = dataset(flights).schema.names[0]
    assert answer("compact", flights, "--cluster-by", column, "--z-order")["metrics"]["fragments_added"] == 1
    found = dataset(flights).to_table()[column].to_pylist()
    assert found == sorted(found)


def test_reindex_covers_new_rows_and_builds_requested_indices(flights: str) -> None:
    write_dataset(pa.table({"x": [100], "carrier": ["UA"]}), flights, mode="append")
    assert answer("inspect", flights)["indices"][0]["num_unindexed_rows"] == 1
    assert "x_idx (11 rows)" in text("reindex", flights)
    assert "every row is covered" in text("reindex", flights)
    built = answer("reindex", flights, "--create", "carrier", "--type", "BTREE", "--index", "by_carrier")
    assert [index["name"] for index in built["indices"]] == ["by_carrier", "x_idx"]


def test_reindex_gives_its_work_to_the_runner(flights: str, monkeypatch: pytest.MonkeyPatch) -> None:
    masters: list[str | None] = []
    runners: list[object] = []
    chosen, begin = InThreads(1), SegmentBuilder.__init__

    def runner(master: str | None) -> InThreads:
        masters.append(master)
        return chosen

    def recorded(builder: SegmentBuilder, snapshot: Snapshot, given: Runner | None, sizes: TaskSizes) -> None:
        runners.append(given)
        begin(builder, snapshot, given, sizes)

    monkeypatch.setattr(change_commands, "runner", runner)
    monkeypatch.setattr(SegmentBuilder, "__init__", recorded)
    text("reindex", flights, "--create", "carrier", "--spark", "local[2]")
    text("reindex", flights, "--index", "x_idx")
    assert masters == ["local[2]", None]
    assert runners == [chosen, chosen]


def test_reindex_without_an_index_says_how_to_build_one(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": [1]}), dataset_uri)
    assert "--create" in text("reindex", dataset_uri)


def test_cleanup_shows_and_then_removes_old_versions_but_keeps_tags(flights: str) -> None:
    options = ("cleanup", flights, "--older-than", "0s", "--keep-tagged")
    shown = text(*options, "--dry-run", "--files")
    assert "would remove" in shown and "1 version," in shown
    assert "version 2 is old but tagged: kept" in shown
    assert "_versions/" in shown
    assert answer(*options, "--dry-run")["stats"]["old_versions"] == 1
    assert len(dataset(flights).versions()) == 3
    assert answer(*options)["old_versions"] == 1
    assert [version["version"] for version in dataset(flights).versions()] == [2, 3]


def test_cleanup_stops_at_a_tag_unless_told_otherwise(flights: str) -> None:
    result = run("cleanup", flights, "--older-than", "0s")
    assert result.exit_code == 1
    assert "v1 (version 2)" in result.stderr
    assert len(dataset(flights).versions()) == 3


def test_restore_brings_a_version_back(flights: str) -> None:
    assert "version 1 restored: version 4" in text("restore", flights, "1")
    assert dataset(flights).count_rows() == 12
    assert outcome("restore", flights, "v1") == {"restored": 2, "version": 5, "dry_run": False}


def test_restore_takes_a_tag_of_the_opened_branch_only(flights: str) -> None:
    branch = dataset(flights).create_branch("trial", 1)
    branch.delete("x = 0")
    branch.tags.create("tried", branch.version)
    branch.delete("x = 2")
    result = run("restore", flights, "tried")
    assert result.exit_code == 1 and "tag 'tried' names a version of branch 'trial'" in result.stderr
    assert dataset(flights).version == 3
    assert answer("restore", branch.uri, "tried")["restored"] == branch.version - 1
    assert dataset(branch.uri).count_rows() == 11


def test_tags_are_made_moved_listed_and_removed(flights: str) -> None:
    assert "tag best names version 3" in text("tags", "create", flights, "best")
    assert answer("tags", "update", flights, "best", "v1") == {"tag": "best", "version": 2}
    assert {name: tag["version"] for name, tag in answer("tags", "list", flights).items()} == {"best": 2, "v1": 2}
    assert "best" in text("tags", "list", flights)
    text("tags", "delete", flights, "best")
    text("tags", "delete", flights, "v1")
    assert "no tags" in text("tags", "list", flights)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("inspect", "{missing}"), "no Lance dataset at"),
        (("inspect", "{flights}", "--version", "77"), "has no version 77"),
        (("inspect", "{flights}", "--version", "nope"), "has no tag 'nope'"),
        (("delete", "{flights}", "nope = 1"), "nope"),
        (("delete", "{flights}", "x = = 1"), "x = = 1"),
        (("reindex", "{flights}", "--create", "nope"), "nope"),
        (("reindex", "{flights}", "--index", "nope"), "nope"),
        (("tags", "create", "{flights}", "v1"), "exists already"),
        (("tags", "delete", "{flights}", "nope"), "has no tag 'nope'"),
    ],
)
def test_an_error_is_one_line_and_exit_code_1(flights: str, arguments: tuple[str, ...], message: str) -> None:
    result = run(*(argument.format(flights=flights, missing=f"{flights}.not") for argument in arguments))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert message in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect",),
        ("inspect", "{flights}", "--storage-option", "no-value"),
        ("cleanup", "{flights}", "--older-than", "two weeks"),
        ("cleanup", "{flights}", "--retain-versions", "0"),
        ("versions", "{flights}", "--limit", "0"),
        ("reindex", "{flights}", "--type", "ZONEMAP"),
        ("reindex", "{flights}", "--drop", "x_idx", "--type", "ZONEMAP"),
        ("merge", "{flights}", "{flights}", "--on", "x", "--if", "source.x > 1", "--delete-matched"),
        ("merge", "{flights}", "{flights}", "--on", "x", "--if", "source.x > 1", "--no-update"),
        ("nonsense",),
    ],
)
def test_an_invalid_command_line_is_exit_code_2(flights: str, arguments: tuple[str, ...]) -> None:
    result = run(*(argument.format(flights=flights) for argument in arguments))
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    if "{flights}" in arguments:
        assert dataset(flights).version == 3


def test_branches_are_begun_listed_and_removed(flights: str) -> None:
    assert text("branches", "list", flights) == "no branches\n"
    begun = answer("branches", "create", flights, "dev/x", "v1")
    assert begun == {"branch": "dev/x", "version": 2, "uri": f"{flights}/tree/dev/x"}
    assert "branch other begins with version 3" in text("branches", "create", flights, "other")
    assert answer("delete", begun["uri"], "x = 0")["version"] == 3
    listed = answer("branches", "list", flights)
    assert {name: (one["parent_version"], one["uri"]) for name, one in listed.items()} == {
        "dev/x": (2, begun["uri"]),
        "other": (3, f"{flights}/tree/other"),
    }
    shown = [line.split() for line in text("branches", "list", flights).splitlines()]
    assert [(line[:3], line[-1]) for line in shown if line[0] == "dev/x"] == [(["dev/x", "main", "2"], begun["uri"])]
    assert answer("inspect", begun["uri"])["num_rows"] == 9 and answer("inspect", flights)["num_rows"] == 10
    assert text("branches", "delete", flights, "dev/x") == "branch dev/x removed\n"
    assert list(answer("branches", "list", flights)) == ["other"]
    failed = run("branches", "delete", flights, "dev/x")
    assert failed.exit_code == 1 and "has no branch 'dev/x'" in failed.stderr


def test_a_clone_has_files_of_its_own_or_shares_them(flights: str) -> None:
    deep, shallow = f"{flights}-deep", f"{flights}-shallow"
    assert f"{deep} holds a copy of version 3: 10 rows" in text("clone", flights, deep)
    made = answer("clone", flights, shallow, "v1", "--shallow")
    assert made == {"uri": shallow, "version": 2, "shallow": True, "dry_run": False}
    assert not dataset(deep).base_paths() and len(dataset(shallow).base_paths()) == 1
    assert dataset(shallow).to_table() == dataset(deep).to_table()
    failed = run("clone", flights, deep)
    assert failed.exit_code == 1 and "holds a dataset already" in failed.stderr
    assert run("clone", flights, f"{deep}-2", "--target-storage-option", "x").exit_code == 2


def test_storage_options_reach_the_store(flights: str) -> None:
    assert answer("inspect", flights, "--storage-option", "some_key=a=b")["version"] == 3


@pytest.mark.parametrize(
    ("written", "meant"),
    [("90s", timedelta(seconds=90)), ("36h", timedelta(hours=36)), ("14d", timedelta(days=14)), ("2w", timedelta(14))],
)
def test_durations_have_units(written: str, meant: timedelta) -> None:
    assert duration(written) == meant
    with pytest.raises(typer.BadParameter):
        duration(written[:-1])


def test_percentages_below_the_whole_never_show_100() -> None:
    assert [percent(ratio) for ratio in (None, 0.0, 0.5, 0.99999, 1.0)] == ["-", "0.0%", "50.0%", "99.9%", "100%"]


def test_the_installed_command_starts_without_spark_or_dagster() -> None:
    script = (
        "import sys, lance_ops.cli; "
        "print(*({'pyspark', 'dagster', 'lance'} & sys.modules.keys())); "
        "sys.argv = ['lance-ops', '--help']; lance_ops.cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == ""
    assert "compact" in done.stdout


class TestSecretsOnTheCommandLine:
    SECRET = "hunter2hunter2"

    @pytest.mark.parametrize(
        "given",
        [
            ["--storage-option", "{}"],
            ["--storage-option", "={}"],
            ["--storage-option", "{}="],
            ["--storage-option", "aws_secret_access_key", "{}"],
            ["--storage-option", "allow_http={} x"],
            ["--storage-option", "aws_secret_acces_key={}"],
            ["--storage-option", "{}==x"],
            ["--storage-option", "allow_http={}"],
            ["--storage-option", "connect_timeout={}"],
            ["--storage-option", "client_max_retries={}"],
            ["--storage-option", "manifest_store={}"],
            ["--storage-option", "manifest_store=postgresql://u:p@ss:{}@h:5/db"],
            ["--storage-option", "manifest_store=host=db password={}"],
            ["--storage-option", "endpoint=http://u:{}@127.0.0.1:1"],
            ["--storage-option", "aws_secret_access_key=@env:{}"],
            ["--target-storage-option", "{}"],
        ],
    )
    @pytest.mark.parametrize("command", [("inspect",), ("tags", "list"), ("health", "--json"), ("clone", "copy.lance")])
    def test_a_wrong_option_is_reported_without_its_value(self, command: tuple[str, ...], given: list[str]) -> None:
        name, *rest = command
        result = run(
            name,
            *(rest if name == "tags" else ()),
            "s3://bucket/x",
            *(rest if name != "tags" else ()),
            *(each.replace("{}", self.SECRET) for each in given),
        )
        assert result.exit_code in (1, 2), result.output
        assert self.SECRET not in result.output + repr(result.exception)

    @pytest.mark.parametrize(
        "uri", ["s3://key:{}@bucket/x", "az://c/x?sv=1&sig={}", "https://{}@host/x", "gs://b/x?token={}"]
    )
    def test_a_uri_with_a_secret_is_refused_without_it(self, uri: str) -> None:
        result = run("inspect", uri.replace("{}", self.SECRET))
        assert result.exit_code == 1 and "storage_options" in result.output
        assert self.SECRET not in result.output

    def test_options_come_from_the_environment_and_from_files(
        self, dataset_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows = f"sqlite:///{tmp_path}/{self.SECRET}.db"
        write_dataset(pa.table({"x": [1]}), dataset_uri, storage_options={"manifest_store": rows})
        (tmp_path / "url").write_text(rows + "\n")
        (tmp_path / "options.json").write_text(json.dumps({"manifest_store": rows, "allow_http": True, "n": 3}))
        monkeypatch.setenv("ROWS", rows)
        opened: list[dict[str, str]] = []

        def recording(uri: str, version: Any, storage_options: dict[str, str]) -> Any:
            opened.append(storage_options)
            return dataset(uri, version, storage_options=storage_options)

        monkeypatch.setattr(arguments, "dataset", recording)
        for given in (
            ["--storage-option", "manifest_store=@env:ROWS"],
            ["--storage-option", f"manifest_store=@file:{tmp_path}/url"],
            ["--storage-options-file", f"{tmp_path}/options.json"],
        ):
            shown = run("inspect", dataset_uri, "--json", *given)
            assert shown.exit_code == 0, shown.output
            assert opened.pop()["manifest_store"] == rows
            assert self.SECRET not in shown.output
        monkeypatch.setenv("LANCE_OPS_STORAGE_OPTIONS_FILE", str(tmp_path / "options.json"))
        assert storage_options(["allow_http=false"], tmp_path / "options.json") == {
            "manifest_store": rows,
            "allow_http": "false",
            "n": "3",
        }

    def test_options_come_from_stdin(self, flights: str) -> None:
        given = json.dumps({"some_key": self.SECRET})
        result = CliRunner().invoke(app, ["inspect", flights, "--storage-options-file", "-", "--json"], input=given)
        assert result.exit_code == 0 and self.SECRET not in result.output

    @pytest.mark.parametrize(
        "content",
        [b'{"a": "hunter2hunter2"', b'["hunter2hunter2"]', b'{"a": ["hunter2hunter2"]}', b"hunter2hunter2\xff"],
    )
    def test_a_file_without_options_is_reported_without_its_content(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "options").write_bytes(content)
        result = run("inspect", "x", "--storage-options-file", str(tmp_path / "options"))
        assert result.exit_code == 2 and "--storage-options-file" in result.output
        assert self.SECRET not in result.output
        with pytest.raises(typer.BadParameter) as caught:
            storage_options(None, tmp_path / "options")
        assert caught.value.__cause__ is None and caught.value.__context__ is None

    @pytest.mark.parametrize("value", ["k=@env:NO_SUCH_VARIABLE", "k=@file:/no/such/file"])
    def test_a_missing_variable_or_file_is_a_usage_error(self, value: str) -> None:
        assert run("inspect", "x", "--storage-option", value).exit_code == 2


def test_debt_prices_what_is_owed_and_can_fail_a_script(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": range(3)}), dataset_uri)
    assert "compact" not in text("debt", dataset_uri, "--fail-if-owed")
    for number in range(12):
        write_dataset(pa.table({"x": [number]}), dataset_uri, mode="append")
    result = run("debt", dataset_uri, "--fail-if-owed", "--orphans")
    assert result.exit_code == 1 and "13 of 13 fragments are small" in result.stdout
    found = answer("debt", dataset_uri, "--target-rows", "5")
    # Rows are merged to three fragments of five rows.
    assert found["dues"][0]["step"] == "compact" and found["dues"][0]["gain_bytes"] == 10 * 4 * 1024**2
    assert found["read_amplification"] == pytest.approx(13 / 3, rel=0.01)


@pytest.fixture
def owing(dataset_uri: str) -> str:
    """Thirteen fragments of one row each."""
    write_dataset(pa.table({"x": range(13)}), dataset_uri, max_rows_per_file=1)
    return dataset_uri


def test_upkeep_shows_and_then_takes_the_steps_that_a_dataset_owes(owing: str) -> None:
    planned = text("upkeep", owing, "--dry-run")
    assert "would be done" in planned and "13 of 13 fragments are small" in planned
    steps = answer("upkeep", owing, "--dry-run")["steps"]
    assert [each["step"] for each in steps] == ["compact"] and dataset(owing).version == 1
    done = answer("upkeep", owing)
    assert (done["status"], done["spent_bytes"]) == ("done", steps[0]["cost_bytes"])
    assert [each["step"] for each in done["steps"]] == ["compact"] and done["after"]["read_amplification"] == 1
    assert len(dataset(owing).get_fragments()) == 1
    assert said("upkeep", owing) == said("upkeep", owing, "--dry-run") == "nothing is owed at version 3"


def test_upkeep_stays_within_its_budget(owing: str) -> None:
    for given in ((), ("--dry-run",)):
        assert said("upkeep", owing, "--budget", "10B", *given) == "the budget does not reach for compact"
    assert answer("upkeep", owing, "--budget", "10B")["status"] == "waiting" and dataset(owing).version == 1
    assert "version 1 to 3: rewrote" in text("upkeep", owing, "--budget", "1GiB")


def test_the_tasks_of_upkeep_may_run_elsewhere(owing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = PicklingRunner()
    monkeypatch.setattr(runners, "start_spark", lambda *_: elsewhere, raising=False)
    assert answer("upkeep", owing, "--spark", "local[2]")["status"] == "done" and elsewhere.jobs


def test_a_step_of_upkeep_that_fails_ends_with_its_error(owing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise StoreError("the store is away")

    monkeypatch.setattr(payment, "compact_files", fail)
    result = run("upkeep", owing, "--json")
    assert (result.exit_code, result.stderr) == (1, "error: the store is away\n")
    assert json.loads(result.stdout)["reason"] == "compact: the store is away"
    assert run("upkeep", owing).exit_code == 1


@pytest.mark.parametrize("command", ["health", "versions", "inspect", "debt"])
def test_a_newest_version_that_does_not_open_is_told_with_the_commands_that_mend_it(
    tmp_path: Path, command: str
) -> None:
    write_dataset(pa.table({"x": [1]}), str(tmp_path / "a"))
    (manifest,) = (tmp_path / "a" / "_versions").glob("*.manifest")
    manifest.write_bytes(b"junk")
    result = run(command, str(tmp_path / "a"))
    assert result.exit_code == 1 and manifest.name in result.stderr
    assert result.stderr.count("`lance-ops verify`") == result.stderr.count("`lance-ops repair`") == 1


def test_fleet_maintains_the_tables_beneath_a_root_and_fails_beyond_its_threshold(tmp_path: Path) -> None:
    for name, num_rows in (("a", 30), ("b/c", 1)):
        write_dataset(pa.table({"x": range(num_rows)}), str(tmp_path / name), max_rows_per_file=1)
    planned = text("fleet", str(tmp_path), "--dry-run", "--budget", "1GiB")
    assert "planned" in planned and "2 tables" in planned and "b/c" not in planned
    assert "waiting" in text("fleet", str(tmp_path), "--budget", "10B")
    done = answer("fleet", str(tmp_path), "--all")
    assert [(each["table"], each["status"]) for each in done["outcomes"]] == [("a", "done"), ("b/c", "nothing owed")]
    assert len(dataset(str(tmp_path / "a")).get_fragments()) == 1
    for manifest in (tmp_path / "a" / "_versions").glob("*.manifest"):
        manifest.write_bytes(b"junk")
    result = run("fleet", str(tmp_path))
    assert result.exit_code == 1 and "50% of the tables failed, more than 10%" in result.stdout


@pytest.mark.parametrize(
    ("written", "size"), [("7", 7), ("500MB", 500_000_000), ("2GiB", 2 << 30), ("1.5k", 1500), ("x", None), ("", None)]
)
def test_a_size_has_a_number_and_a_unit(written: str, size: int | None) -> None:
    if size is None:
        with pytest.raises(typer.BadParameter, match="no size"):
            byte_count(written)
    else:
        assert byte_count(written) == size
