"""The page of `report`: what it shows, that it stands alone, and that a table's own words stay words."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from lance_ops.api import LanceDataset, dataset, write_dataset
from lance_ops.cli import app
from lance_ops.maintenance.table_report import report_page, report_table

HOSTILE_INDEX = "<script>alert('x')</script>\"&"
HOSTILE = f"{HOSTILE_INDEX}\u202e"


class Seen(HTMLParser):
    """Collects a page's elements, the names of their attributes, and its words."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture
def table(dataset_uri: str) -> LanceDataset:
    """Three versions: two columns of which one has a hostile name, a commit message, a tag, an index, a branch."""
    rows = pa.table({"id": pa.array(range(1000), pa.int64()), HOSTILE: ["some text"] * 1000})
    write_dataset(rows, dataset_uri, max_rows_per_file=50)
    made = dataset(dataset_uri)
    made.delete("id < 400")
    made.tags.create("before", 1)
    made.create_branch("trial", 1)
    made.create_scalar_index("id", "BTREE", name=HOSTILE_INDEX)
    return write_dataset(rows.slice(0, 1), dataset_uri, mode="append", commit_message=HOSTILE)


def test_the_page_shows_health_debt_columns_and_versions_and_the_table_s_words_stay_words(
    table: LanceDataset, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["report", table.uri, "-o", str(page)])
    assert done.exit_code == 0, done.output
    seen = Seen(page.read_text())
    assert {"svg", "polyline", "circle", "table"} <= seen.elements
    assert not {"script", "img", "link", "iframe", "a"} & seen.elements
    assert not {"src", "href"} & {each for each in seen.attributes if not each.startswith("xmlns")}
    assert not any(name.startswith("on") for name in seen.attributes)
    for words in (
        HOSTILE,  # a column, and a commit message
        HOSTILE_INDEX,
        "Needs attention",
        "13 fragments have fewer than 786,432 rows",
        "compact",
        "tag before",
        "branch trial",
        "rows deleted",
    ):
        assert words in seen.words, words
    assert seen.words.count(HOSTILE) == 2
    assert any("times as much as it would without debt" in words for words in seen.words)


def test_the_report_as_json_has_the_sizes_of_columns(table: LanceDataset) -> None:
    done = CliRunner().invoke(app, ["report", table.uri, "--json", "--max-versions", "2"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    sizes = {column["name"]: column["size_bytes"] for column in told["columns"]}
    assert set(sizes) == {"id", HOSTILE} and all(size > 0 for size in sizes.values())
    assert [each["version"] for each in told["past"]] == [table.version - 1, table.version]
    assert [due["step"] for due in told["debt"]["dues"] if due["is_owed"]] == ["compact"]
    assert told["gaps"] == []


def test_a_damaged_data_file_is_a_gap_and_the_rest_is_reported(table: LanceDataset) -> None:
    damaged = Path(table.uri, "data", table.get_fragments()[0].data_files()[0].path)
    damaged.write_bytes(damaged.read_bytes()[:-8] + b"damaged!")
    report = report_table(dataset(table.uri).snapshot)
    [gap] = report.gaps
    assert gap.startswith("sizes of columns: ") and damaged.name in gap
    assert [column.size_bytes for column in report.columns] == [None, None]
    assert report.debt is not None and len(report.past) == table.version
    assert damaged.name in report_page(report)
