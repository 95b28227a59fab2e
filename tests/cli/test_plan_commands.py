"""`plan` and `execute` on the command line."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from lance_ops import verbs
from lance_ops.api import dataset, write_dataset
from lance_ops.cli import app
from lance_ops.verbs import ALL_VERBS, REASON_PROPERTY, Compact, Erase, IngestFiles, options_of
from tests.cli.calls import answer, outcome, run, text


def test_a_plan_is_shown_stored_and_executed(dataset_uri: str, tmp_path: Path) -> None:
    write_dataset(pa.table({"x": range(12)}), dataset_uri, max_rows_per_file=4)
    file = str(tmp_path / "plan.json")
    shown = text("plan", dataset_uri, "delete_rows", "predicate=x < 2", "reason=r", "--save", file)
    assert "delete 2 of 12 rows" in shown
    cost = text("plan", dataset_uri, "compact")
    assert "reads about" in cost and "; writes about" in cost
    assert "planned on version 1. It is executed on this version" in shown
    assert f"stored: lance-ops execute {dataset_uri} {file}" in shown
    assert dataset(dataset_uri).version == 1
    assert answer("execute", dataset_uri, file)["facts"] == {"matching_rows": 2}
    assert dataset(dataset_uri).count_rows() == 10
    refused = run("execute", dataset_uri, file)
    assert refused.exit_code == 1
    assert "planned on version 1" in refused.stderr


def test_a_plan_that_cannot_be_stored_is_not_made(
    dataset_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_dataset(pa.table({"x": range(12)}), dataset_uri)
    planned: list[object] = []
    monkeypatch.setattr(verbs, "make_plan", lambda *_, **__: planned.append(_))
    for place in (tmp_path / "absent" / "plan.json", tmp_path):
        refused = run("plan", dataset_uri, "compact", "--save", str(place))
        assert refused.exit_code == 2 and "--save" in refused.output and "Traceback" not in refused.output
    assert planned == []


def test_every_command_that_changes_rows_says_first_what_it_would_do(dataset_uri: str, tmp_path: Path) -> None:
    write_dataset(pa.table({"x": range(12)}), dataset_uri, max_rows_per_file=4)
    source = write_dataset(pa.table({"x": [1, 99]}), str(tmp_path / "in.lance")).uri
    dataset(dataset_uri).create_scalar_index("x", "BTREE")
    summaries = {
        ("delete", "x < 2"): "delete 2 of 12 rows",
        ("delete", "--keys", source, "--on", "x"): "delete 1 of 12 rows",
        ("update", "x=x + 1", "--where", "x > 8"): "update x of 3 of 12 rows",
        ("add-columns", "y=x"): "add y to 12 rows",
        ("merge", source, "--on", "x"): "insert 1, update 1 and delete 0 rows",
        ("merge", source, "--on", "x", "--delete-matched"): "insert 0, update 0 and delete 1 rows",
        ("erase", "x = 1", "--reason", "r"): "erase 1 rows, and what holds them",
        ("compact",): "rewrite 3 fragments",
        ("compact", "--cluster-by", "x"): "rewrite 3 fragments, sorted by x",
        ("reindex",): "every row is covered",
        ("reindex", "--rebuild"): "index 12 rows",
        ("reindex", "--create", "x", "--type", "ZONEMAP"): "index 12 rows",
        ("reindex", "--drop", "x_idx"): "drop index x_idx",
        ("migrate", "--data-storage-version", "2.1"): "rewrite 3 of 3 fragments in file version 2.1",
        ("restore", "1"): "restore version 1, which undoes 1 versions",
        ("verify", "--quick"): "quick verification of version 2: 5 files",
        ("duplicates", "--on", "x", "--keep", "first"): "delete 0 of 12 rows",
        ("clone", str(tmp_path / "copy.lance")): f"copy version 2 in {tmp_path / 'copy.lance'}: 12 rows",
    }
    for (command, *options), summary in summaries.items():
        found = answer(command, dataset_uri, *options, "--dry-run")
        assert found["dry_run"] and found["preview"]["summary"].startswith(summary), (command, options, found)
    for words, summary in {
        ("tags", "create", dataset_uri, "t", "1"): "create tag t at version 1",
        ("branches", "create", dataset_uri, "b"): "begin branch b with version 2",
    }.items():
        assert answer(*words, "--dry-run")["preview"]["summary"].startswith(summary)
    assert run("tags", "delete", dataset_uri, "t", "--dry-run").exit_code == 1, "there is no such tag"
    tried = {"tags", "branches", *(command for command, *_ in summaries)}
    elsewhere = {"cleanup", "ingest", "repair"}  # their dry runs have tests of their own
    assert {verb.command.split()[0] for verb in ALL_VERBS} == tried | elsewhere
    assert dataset(dataset_uri).version == 2 and not (tmp_path / "copy.lance").exists()
    assert not dataset(dataset_uri).tags.list() and not dataset(dataset_uri).branches.list()
    assert outcome("reindex", dataset_uri, "--drop", "x_idx") == {"indices": [], "version": 3, "dry_run": False}
    assert run("reindex", dataset_uri, "--drop", "x_idx", "--rebuild").exit_code == 2


def test_a_dry_repair_changes_nothing(dataset_uri: str) -> None:
    data = write_dataset(pa.table({"x": [1]}), dataset_uri)
    data.tags.create("gone", 1)
    data.insert(pa.table({"x": [2]}))
    data.snapshot.store.delete(data.snapshot.committer.location(1))
    repair = ("repair", dataset_uri, "--delete-dangling-tags")
    assert "gone" in text(*repair, "--dry-run")
    assert list(dataset(dataset_uri).tags.list()) == ["gone"]
    run(*repair)
    assert not dataset(dataset_uri).tags.list()


def test_a_change_states_its_reason_and_is_bounded(dataset_uri: str, tmp_path: Path) -> None:
    write_dataset(pa.table({"x": range(12)}), dataset_uri)
    source = write_dataset(pa.table({"x": [3, 4, 5]}), str(tmp_path / "in.lance")).uri
    changes = [("delete", "x < 3"), ("update", "x=x", "--where", "x > 8"), ("merge", source, "--on", "x")]
    for command, *options in changes:
        given = (command, dataset_uri, *options, "--reason", f"{command} of today", "--at-most-rows")
        before = dataset(dataset_uri).version
        refused = run(*given, "2")
        assert refused.exit_code == 1 and "3 rows match and at_most_rows is 2" in refused.stderr, command
        assert dataset(dataset_uri).version == before
        transaction = dataset(dataset_uri).read_transaction(answer(*given, "3")["version"])
        assert transaction is not None
        assert transaction.transaction_properties[REASON_PROPERTY] == f"{command} of today"


def test_a_deletion_or_a_restoration_without_a_reason_states_what_was_asked_for(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": range(12)}), dataset_uri)
    versions = [answer("delete", dataset_uri, "x < 3")["version"], answer("restore", dataset_uri, "1")["version"]]
    stated = [dataset(dataset_uri).read_transaction(version) for version in versions]
    assert [each and each.transaction_properties[REASON_PROPERTY] for each in stated] == [
        "on the command line: rows with x < 3",
        "on the command line: back to 1 instead of 2",
    ]


def test_a_verb_and_its_options_are_checked(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": [1]}), dataset_uri)
    assert (
        "there is no verb 'nothing': use one of ingest_files, delete_rows" in run("plan", dataset_uri, "nothing").stderr
    )
    assert run("plan", dataset_uri, "compact", "word").exit_code == 2


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("comp", ["compact"]),
        ("compact t.lance --cl", ["--cluster-by"]),
        ("plan t.lance clo", ["clone"]),
        ("plan t.lance compact max_source_", ["max_source_fragments=", "max_source_rows=", "max_source_bytes="]),
        ("plan t.lance nothing max_", []),
        ("verbs re", ["restore", "reindex", "repair"]),
    ],
)
def test_a_shell_completes_commands_options_verbs_and_their_options(words: str, offered: list[str]) -> None:
    environment = {
        "_LANCE_OPS_COMPLETE": "complete_bash",
        "COMP_WORDS": f"lance-ops {words}",
        "COMP_CWORD": str(len(words.split())),
    }
    completed = CliRunner().invoke(app, [], prog_name="lance-ops", env=environment)
    assert completed.stdout.split() == offered


def test_the_verbs_and_their_options_are_listed() -> None:
    assert list(answer("verbs")) == [verb.name for verb in ALL_VERBS]
    options = answer("verbs", "tag")
    assert options["action"] == {
        "type": "create|move|delete",
        "description": "What to do with the tag.",
        "required": False,
        "default": "create",
    }
    assert options["tag"]["required"] and options["version"]["type"] == "integer"
    assert "required" in text("verbs", "tag")


def test_a_repair_is_planned_when_the_newest_manifest_cannot_be_read(dataset_uri: str, tmp_path: Path) -> None:
    write_dataset(pa.table({"x": range(3)}), dataset_uri)
    write_dataset(pa.table({"x": [3]}), dataset_uri, mode="append")
    newest = min((Path(dataset_uri) / "_versions").glob("*.manifest"))  # the newest version's name comes first
    newest.write_bytes(b"garbage" * 50)
    file = str(tmp_path / "plan.json")
    assert "go back" in text("plan", dataset_uri, "repair", "restore_older_version=true", "--save", file)
    assert answer("execute", dataset_uri, file)["facts"] == {"actions": 1, "repaired_version": 2}
    assert dataset(dataset_uri).count_rows() == 3


def test_an_erasure_is_previewed_done_and_proven(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": range(4), "name": ["gone-7f3a" if x == 2 else "kept" for x in range(4)]}), dataset_uri)
    asked = ("erase", dataset_uri, "name = 'gone-7f3a'", "--reason", "request 12")
    assert "erase 1 rows, and what holds them" in text(*asked, "--dry-run")
    assert dataset(dataset_uri).version == 1
    done = answer(*asked, "--yes")
    assert (done["erased_rows"], done["is_proven"]) == (1, True)
    assert "Proven: no remaining file beneath the dataset's root holds the rows" in Path(done["report"]).read_text()
    assert not [path for path in Path(dataset_uri).rglob("*") if path.is_file() and b"gone-7f3a" in path.read_bytes()]
    (Path(dataset_uri) / "data" / "stray.lance").write_bytes(b"")
    refused = run(*asked, "--yes")
    assert refused.exit_code == 1
    assert "is not proven: data/stray.lance: no version names it" in refused.stderr


def test_a_command_explains_an_option_in_the_words_of_its_verb() -> None:
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    for command, verb, option in (
        ("compact", Compact, "max_source_bytes"),
        ("erase", Erase, "remove_tags"),
        ("ingest", IngestFiles, "schema_mode"),
    ):
        parameter = next(each for each in group.commands[command].params if each.name == option)
        assert getattr(parameter, "help", None) == options_of(verb)[option].described.description, command
