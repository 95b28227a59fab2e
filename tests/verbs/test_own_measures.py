from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from lance_ops.api import LanceDataset, dataset
from lance_ops.cli import app
from lance_ops.verbs import AddColumns, Branch, Cleanup, DropIndex, Reindex, Tag, Verb, do_now, make_plan
from tests.verbs.examples import made_table


@pytest.fixture
def numbers(dataset_uri: str) -> LanceDataset:
    """Twelve rows in three fragments, with an index on x; version 2."""
    return made_table(dataset_uri)


@pytest.mark.parametrize(
    ("verb", "changed"),
    [
        (Cleanup(retain_versions=1), {"versions": (2, 1)}),
        (Tag("t"), {"tags": (0, 1)}),
        (Branch("b"), {"branches": (0, 1)}),
        (AddColumns({"y": "x + 1"}), {"columns": (2, 3)}),
        (DropIndex("x_idx"), {"indices": (1, 0)}),
        (Reindex(create={"s_idx": "s"}), {"indices": (1, 2), "rows that an index lacks": (0, 0)}),
    ],
    ids=lambda value: value.name if isinstance(value, Verb) else "",
)
def test_the_measures_of_a_verb_stand_in_its_json_and_in_its_table(
    verb: Verb, changed: Mapping[str, tuple[int, int]], numbers: LanceDataset, tmp_path: Path
) -> None:
    file = tmp_path / "plan.json"
    file.write_text(make_plan(verb, numbers)[0].to_json())
    copy = str(tmp_path / "copy.lance")
    shutil.copytree(numbers.uri, copy)
    shown = CliRunner().invoke(app, ["execute", numbers.uri, str(file), "--json"])
    assert json.loads(shown.output)["own_measures"] == {name: list(counts) for name, counts in changed.items()}
    file.write_text(make_plan(verb, dataset(copy))[0].to_json())
    lines = CliRunner().invoke(app, ["execute", copy, str(file)]).output.splitlines()
    for name, (was, became) in changed.items():
        assert any(re.search(rf"{name}\W+{was}\W+{became}\b", line) for line in lines), name


def test_a_reindexing_shows_how_many_rows_the_indices_lacked(numbers: LanceDataset) -> None:
    numbers.insert(pa.table({"x": [20, 21], "s": ["new", "new"]}))
    done = do_now(Reindex(), numbers)
    assert done.own_measures == {"indices": (1, 1), "rows that an index lacks": (2, 0)}


def test_a_clean_up_may_remove_the_version_that_it_began_with(numbers: LanceDataset) -> None:
    dataset(numbers.uri).insert(pa.table({"x": [20], "s": ["new"]}))
    assert do_now(Cleanup(retain_versions=1), numbers).own_measures == {"versions": (3, 1)}
