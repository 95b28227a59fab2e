"""What the caller allowed travels with a handle into tasks, and nothing that runs later may do more."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lance_ops
from lance_ops import LanceDataset
from lance_ops.cli import app
from lance_ops.errors import UnsafePath
from lance_ops.maintenance.compaction.compaction_plan import CompactionOptions, plan_compaction
from lance_ops.maintenance.compaction.rewriting import execute_rewrite
from tests.s3_server import S3Server
from tests.security.forging import with_file_of

pytestmark = pytest.mark.server

ROWS = pa.table({"id": list(range(10))})


@pytest.fixture
def elsewhere(s3_server: S3Server) -> LanceDataset:
    """Return a table in a bucket of its own."""
    return lance_ops.write_dataset(ROWS, s3_server.new_uri("other"), storage_options=s3_server.storage_options)


@pytest.fixture
def hostile(s3_server: S3Server, elsewhere: LanceDataset) -> LanceDataset:
    """Return a table of two fragments, whose first data file is in the other table's bucket."""
    made = lance_ops.write_dataset(ROWS, s3_server.new_uri("t"), storage_options=s3_server.storage_options)
    made.insert(ROWS)
    return with_file_of(elsewhere, made)


def test_a_task_of_a_compaction_follows_what_its_handle_was_allowed(
    hostile: LanceDataset, elsewhere: LanceDataset
) -> None:
    snapshot = hostile.snapshot
    (task,) = plan_compaction(snapshot, CompactionOptions()).tasks
    with pytest.raises(UnsafePath, match="allowed_bases"):
        execute_rewrite(pickle.loads(pickle.dumps(task)))
    options = {**snapshot.storage_options, "allowed_bases": elsewhere.uri}
    trusting = lance_ops.dataset(hostile.uri, storage_options=options)
    (task,) = plan_compaction(trusting.snapshot, CompactionOptions()).tasks
    assert sum(each.physical_rows for each in execute_rewrite(pickle.loads(pickle.dumps(task))).new_fragments) == 20


def test_maintenance_of_a_handle_that_allows_nothing_commits_nothing(hostile: LanceDataset) -> None:
    version = hostile.latest_version
    for use in (
        hostile.optimize.compact_files,
        lambda: hostile.create_scalar_index("id", "BTREE"),
        lambda: hostile.update({"id": "id + 1"}),
        lambda: hostile.delete("id = 1"),
    ):
        with pytest.raises(UnsafePath, match="allowed_bases"):
            use()
    assert hostile.latest_version == version


def test_the_command_line_allows_bases(
    hostile: LanceDataset, elsewhere: LanceDataset, s3_server: S3Server, tmp_path: Path
) -> None:
    options = tmp_path / "options.json"
    options.write_text(json.dumps(s3_server.storage_options))
    command = ["compact", hostile.uri, "--storage-options-file", str(options)]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code == 1 and "allowed_bases" in refused.output
    other = CliRunner().invoke(app, ["--allow-base", f"{elsewhere.uri}2", *command])
    assert other.exit_code == 1 and "allowed_bases" in other.output
    allowed = CliRunner().invoke(app, ["--allow-base", elsewhere.uri, *command])
    assert allowed.exit_code == 0, allowed.output
    assert lance_ops.dataset(hostile.uri, storage_options=s3_server.storage_options).to_table().num_rows == 20
