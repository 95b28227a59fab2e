"""Every verb lives one life: planned, previewed, stored, executed as it is, with sizes before and after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from lance_ops.api import LanceDataset, dataset, write_dataset
from lance_ops.cli import app
from lance_ops.verbs import (
    ALL_VERBS,
    AddColumns,
    Branch,
    Cleanup,
    Clone,
    Compact,
    DeleteDuplicates,
    DeleteRows,
    DropIndex,
    Erase,
    IngestFiles,
    Measures,
    Migrate,
    Reindex,
    Repair,
    Restore,
    StoredPlan,
    Tag,
    Update,
    Upsert,
    Verb,
    Verify,
    options_of,
)
from tests.verbs.living import live

NUM_ROWS = 12


def landed(folder: Path) -> str:
    path = folder / "more.parquet"
    pyarrow.parquet.write_table(pa.table({"x": [100, 5], "s": ["new", "new"]}), path)
    return str(path)


EXAMPLES: Mapping[type[Verb], tuple[Callable[[Path], Verb], int, int]] = {
    IngestFiles: (lambda folder: IngestFiles((landed(folder),), isolated=False), 1, NUM_ROWS + 2),
    DeleteRows: (lambda _: DeleteRows("x < 3", "r"), 1, NUM_ROWS - 3),
    DeleteDuplicates: (lambda _: DeleteDuplicates(("s",)), 1, NUM_ROWS // 2),
    Update: (lambda _: Update({"s": "'new'"}, "x < 3"), 1, NUM_ROWS),
    Upsert: (lambda folder: Upsert((landed(folder),), ("x",)), 1, NUM_ROWS + 1),
    AddColumns: (lambda _: AddColumns({"y": "x + 1"}), 1, NUM_ROWS),
    Erase: (lambda _: Erase("x = 1", "r"), 4, NUM_ROWS - 1),  # a deletion, a rewrite of reserved ids, a new index
    Restore: (lambda _: Restore(1, reason="r"), 1, NUM_ROWS),
    Compact: (lambda _: Compact(), 2, NUM_ROWS),  # ids of fragments are reserved before they are rewritten
    Reindex: (lambda _: Reindex(create={"s_idx": "s"}), 1, NUM_ROWS),
    DropIndex: (lambda _: DropIndex("x_idx"), 1, NUM_ROWS),
    Cleanup: (lambda _: Cleanup(retain_versions=1), 0, NUM_ROWS),
    Verify: (lambda _: Verify(), 0, NUM_ROWS),
    Repair: (lambda _: Repair(level="quick"), 0, NUM_ROWS),
    Migrate: (lambda _: Migrate("2.1"), 2, NUM_ROWS),
    Tag: (lambda _: Tag("t"), 0, NUM_ROWS),
    Branch: (lambda _: Branch("b"), 0, NUM_ROWS),
    Clone: (lambda folder: Clone(str(folder / "copy.lance")), 0, NUM_ROWS),
}
"""By verb: options that do something to the table, the number of versions that they commit, and the rows afterwards."""


@pytest.fixture
def numbers(dataset_uri: str) -> LanceDataset:
    """Twelve rows in three fragments, with an index on x; version 2."""
    rows = pa.table({"x": range(NUM_ROWS), "s": [f"pair {x // 2}" for x in range(NUM_ROWS)]})
    write_dataset(rows, dataset_uri, max_rows_per_file=4).create_scalar_index("x", "BTREE")
    return dataset(dataset_uri)


@pytest.mark.parametrize("verb", ALL_VERBS, ids=lambda verb: verb.name)
def test_a_verb_is_previewed_stored_and_executed(verb: type[Verb], numbers: LanceDataset, tmp_path: Path) -> None:
    make, num_commits, num_rows = EXAMPLES[verb]
    before = Measures.of(numbers)
    preview, done = live(make(tmp_path), numbers)
    assert preview.summary and preview.before == before == done.before
    assert (done.read_version, done.version) == (2, 2 + num_commits)
    assert dataset(numbers.uri).version == done.version, "it reports the version that it made"
    assert done.after.rows == num_rows
    for measure in ("rows", "deleted_rows", "fragments") if preview.after else ():
        assert getattr(preview.after, measure) == getattr(done.after, measure), f"the estimate of {measure}"
    assert done.facts and not done.problem


def words(verb: Verb) -> list[str]:
    """Return the options that differ from their defaults, as a command line gives them."""
    found = []
    for name, option in options_of(type(verb)).items():
        value = getattr(verb, name)
        if value == option.default:
            continue
        if isinstance(value, Mapping):
            found += [f"{name}={key}={text}" for key, text in value.items()]
        else:
            found += [f"{name}={each}" for each in (value if isinstance(value, tuple) else (value,))]
    return found


def test_the_command_plan_stores_every_verb_as_it_is_given(numbers: LanceDataset, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    for verb in (EXAMPLES[kind][0](tmp_path) for kind in ALL_VERBS):
        planned = CliRunner().invoke(app, ["plan", numbers.uri, verb.name, *words(verb), "--save", str(file)])
        assert planned.exit_code == 0, planned.output
        stored = StoredPlan.from_json(file.read_text())
        assert (stored.verb, stored.read_version) == (verb, 2)
    assert dataset(numbers.uri).version == 2, "a plan changes nothing"
