"""The commands that name, restore, branch and copy versions."""

from __future__ import annotations

from lance_ops.api import dataset
from tests.cli.calls import answer, outcome, run, text


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
    assert text("branches", "delete", flights, "dev/x", "--yes") == "branch dev/x removed\n"
    assert list(answer("branches", "list", flights)) == ["other"]
    failed = run("branches", "delete", flights, "dev/x", "--yes")
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
