from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import lance_ops
from tests.bench.answers import compare, write_answer
from tests.bench.results import OWN_FILES, TABLE, Cell, Run, Sample
from tests.bench.tables import __main__ as program
from tests.bench.tables.cases import LARGE, USUAL, Case, Sizes, case_named, cases_chosen
from tests.bench.tables.chart import chart
from tests.bench.tables.cold_process import ColdProcess, script_of
from tests.bench.tables.growth import lines_of
from tests.bench.tables.page import page
from tests.bench.tables.rounds import measure
from tests.bench.tables.tables import APPENDED, COLD, SOURCE, Table, copy_table
from tests.bench.tables.verbs import TAKEN

SMALLEST = Sizes(fragments=(1, 3), costly_fragments=3, columns=(10,), versions=(1, 4))
SCALE = 0.003
ROWS = 3_000

TABLES = tuple(dict.fromkeys(case.table for case in cases_chosen(SMALLEST, [])))

EFFECTS = {  # versions made, rows added
    "append": (1, APPENDED),
    "delete": (1, -ROWS // 100),
    "update": (1, 0),
    "optimize_indices": (1, 0),
    "btree_on_strings": (1, 0),
    "compact": (2, 0),
    "clean_up": (0, 0),
}


def cell(case: str, ours: float, theirs: float) -> Cell:
    samples = {"ours": (Sample(ours, ours, 1),) * 5, "pylance": (Sample(theirs, theirs, 1),) * 5}
    return Cell(case, "2.2", TABLE, samples=samples)


RUN = Run(
    {"date": "some day", "scale": "1"},
    (
        cell("fragments/1/0%/scan", 0.001, 0.002),
        cell("fragments/1/1%/scan", 0.002, 0.002),
        cell("fragments/201/0%/scan", 0.021, 0.012),
        cell("fragments/201/1%/scan", 0.042, 0.012),
        cell("versions/1/open_latest", 0.001, 0.005),
        cell("cold/1/scan", 2.0, 1.0),
        Cell("columns/10/scan", "2.2", TABLE, errors={"pylance": "RuntimeError: too wide\nand more"}),
    ),
)


@pytest.mark.interop
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_both_do_the_same_in_each_case_of_a_small_table(table: Table, tmp_path: Path) -> None:
    lance = pytest.importorskip("lance")
    root = tmp_path / "table"
    table.prepare(root, SCALE)
    source_version = lance_ops.dataset(str(root / SOURCE)).version
    for case in (case for case in cases_chosen(SMALLEST, []) if case.table == table):
        case.prepare(root)
        for name, module in (("ours", lance_ops), ("pylance", lance)):
            uri = str(root / case.start(root, name, 1))
            before = lance_ops.dataset(uri)
            num_rows = before.count_rows()
            result = case.verb.run(module, uri, case.verb.prepare(module, uri, 1))
            write_answer(root, name, case.verb.answer(module, uri, result))
            after = lance_ops.dataset(uri)
            made, added = EFFECTS.get(case.verb.name, (0, 0))
            if case.verb.name == "append" and table.axis == "versions":
                added = 1
            assert after.count_rows() - num_rows == added, (case.name, name)
            # A library may make more versions for one call, but a verb that reads makes none.
            assert (after.version > before.version) == (made > 0), (case.name, name)
        compare(case.name, root, ["ours", "pylance"])
        case.clear(root)
    assert lance_ops.dataset(str(root / SOURCE)).version == source_version
    assert {path.name for path in root.iterdir() if path.is_dir()} == {SOURCE}


def test_a_table_has_as_many_fragments_columns_and_versions_as_it_says(tmp_path: Path) -> None:
    datasets = {}
    for table in TABLES:
        table.prepare(tmp_path / table.name.replace("/", "-"), SCALE)
        datasets[table.name] = lance_ops.dataset(str(tmp_path / table.name.replace("/", "-") / SOURCE))
    assert [len(datasets[f"fragments/{size}/0%"].get_fragments()) for size in (1, 3)] == [1, 3]
    assert [fragment.num_deletions for fragment in datasets["fragments/3/1%"].get_fragments()].count(0) == 0
    assert datasets["fragments/3/1%"].count_rows() == ROWS - ROWS // 100
    assert len(datasets["columns/10"].schema) == 10
    assert [datasets[f"versions/{size}"].version for size in (1, 4)] == [1, 4]
    assert [version["version"] for version in datasets["versions/4"].versions()] == [1, 2, 3, 4]


def test_the_costly_verbs_find_what_they_are_there_for(tmp_path: Path) -> None:
    root = tmp_path / "table"
    Table("fragments", 3).prepare(root, SCALE)
    for name in ("optimize_indices", "clean_up"):
        case_named(f"fragments/3/0%/{name}").prepare(root)
    unindexed = lance_ops.dataset(str(root / "optimize_indices-source"))
    assert unindexed.stats.index_stats("id_idx")["num_unindexed_rows"] == ROWS // 100
    assert len(lance_ops.dataset(str(root / "clean_up-source")).versions()) > 10
    plan = lance_ops.dataset(str(root / SOURCE)).scanner(filter="id = 107").explain_plan()
    assert "id_idx" in plan


def test_a_read_answers_what_its_name_says(tmp_path: Path) -> None:
    root = tmp_path / "table"
    Table("fragments", 3, deleted=True).prepare(root, SCALE)
    uri = str(root / SOURCE)

    def rows(verb: str) -> Any:
        its = case_named(f"fragments/3/1%/{verb}").verb
        return its.answer(lance_ops, uri, its.run(lance_ops, uri, its.prepare(lance_ops, uri, 1))).num_rows

    assert rows("row_by_btree") == 1
    assert 0 < rows("range_by_btree") <= ROWS // 100
    assert rows("take") == TAKEN
    assert rows("offset") == 10
    assert 0 < rows("filter") == rows("filter_one_column") < ROWS // 100


def test_a_copy_shares_files_and_leaves_the_source_as_it_is(tmp_path: Path) -> None:
    Table("fragments", 3).prepare(tmp_path / "table", SCALE)
    source, copy = tmp_path / "table" / SOURCE, tmp_path / "copy"
    before = {path: path.read_bytes() for path in source.rglob("*") if path.is_file()}
    copy_table(source, copy)
    lance_ops.dataset(str(copy)).delete("id % 2 = 0")
    assert {path: path.read_bytes() for path in source.rglob("*") if path.is_file()} == before
    data = next((source / "data").iterdir())
    assert data.samefile(copy / "data" / data.name)
    assert lance_ops.dataset(str(source)).count_rows() == ROWS


@pytest.mark.interop
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_small_table_is_measured_for_both_by_processes_that_start_anew(tmp_path: Path) -> None:
    cases = cases_chosen(SMALLEST, ["fragments/3/1%/scan", "fragments/3/1%/append"])
    cells = list(measure(cases, tmp_path, scale=SCALE, seconds=0.0, min_rounds=1))
    assert [each.case for each in cells] == ["fragments/3/1%/scan", "fragments/3/1%/append"]
    assert not [each.errors for each in cells if each.errors]
    assert all(each.ratio(OWN_FILES, "cpu_seconds") for each in cells)
    assert not list(tmp_path.iterdir())


@pytest.mark.interop
@pytest.mark.parametrize("case", cases_chosen(SMALLEST, [COLD]), ids=lambda case: case.verb.name)
def test_a_cold_script_answers_the_same_for_both(case: Case, tmp_path: Path) -> None:
    root = tmp_path / "table"
    case.table.prepare(root, SCALE)
    for name in ("ours", "pylance"):
        uri = str(root / case.start(root, name, 0))
        variables: dict[str, Any] = {}
        exec(script_of(case.verb, name, uri), variables)
        answer = case.verb.answer(lance_ops, uri, variables["result"])
        assert answer.num_rows > 0
        write_answer(root, name, answer)
    compare(case.name, root, ["ours", "pylance"])


@pytest.mark.interop
@pytest.mark.skipif(sys.platform != "linux", reason="reads a process's usage in Linux's units")
def test_a_cold_process_is_measured_whole(tmp_path: Path) -> None:
    cases = cases_chosen(SMALLEST, ["cold/take"])
    (checked,) = measure(cases, tmp_path, scale=SCALE, seconds=0.0, min_rounds=0)
    assert not checked.errors
    root = tmp_path / "table"
    Table(COLD, 1).prepare(root, SCALE)
    process = ColdProcess(root, "ours")
    answer = process.ask(case="cold/1/take", files=SOURCE, check=False)
    assert list(root.glob("bytecode/**/lance_ops/api/__init__*.pyc"))  # later rounds compile no source
    assert Sample(**answer).cpu_seconds > 0
    assert Sample(**answer).peak_bytes > 1 << 20
    assert "no_such_table" in process.ask(case="cold/1/take", files="no_such_table", check=False)["error"]


def test_a_name_leads_back_to_its_case() -> None:
    cases = cases_chosen(LARGE, [])
    assert [case_named(case.name) for case in cases] == list(cases)
    assert len({case.name for case in cases}) == len(cases)
    assert set(cases_chosen(USUAL, [])) < set(cases)


def test_words_choose_the_cases_that_have_all_their_parts() -> None:
    def names(*words: str) -> list[str]:
        return [case.name for case in cases_chosen(USUAL, words)]

    assert names("40/scan") == ["fragments/40/0%/scan", "fragments/40/1%/scan"]
    assert names("versions/2000/list_versions", "cold/take") == ["versions/2000/list_versions", "cold/1/take"]
    assert {name.split("/")[0] for name in names("columns")} == {"columns"}
    with pytest.raises(SystemExit, match="no case has nothing_like_it, 40/list_versions"):
        names("scan", "nothing_like_it", "40/list_versions")


def test_the_page_says_first_what_is_slower() -> None:
    shown = page(RUN)
    slower = shown.partition("## Below 1.0")[2].partition("## Geometric means")[0]
    listed = [line.split("`")[1] for line in slower.splitlines() if line.startswith("- ")]
    assert listed[:3] == ["fragments/201/1%/scan", "cold/1/scan", "fragments/201/0%/scan"]
    assert listed[3:] == ["fragments/1%/scan", "fragments/0%/scan"]
    assert "- `fragments/1%/scan`: **0.2000 ms**, pylance 0.0500 ms" in slower
    assert "waits for the disk" not in slower
    appends = replace(RUN, cells=(*RUN.cells, cell("versions/1/append", 0.002, 0.001)))
    assert "An append of ours waits for the disk twice" in page(appends)
    assert "Not measured: `columns/10/scan`, pylance: RuntimeError: too wide" in slower
    assert "and more" not in shown
    assert "| all | 6 | 3 | 0.97 | 0.97 |" in shown
    assert "| `fragments/0%/scan` | 1 to 201 | 0.1000 | 0.0500 |" in shown
    assert "| scan | 2.00 (2.00) | 1.00 (1.00) | 0.57 (0.57) | 0.29 (0.29) |" in shown


def test_lines_join_the_sizes_of_one_verb_on_one_kind_of_table() -> None:
    lines = lines_of(each for each in RUN.cells if not each.errors)
    assert [line.name for line in lines] == ["fragments/0%/scan", "fragments/1%/scan"]
    assert lines[1].slope("ours") == pytest.approx(0.0002)


def test_the_chart_draws_a_line_for_each_contender_and_share_of_deleted_rows() -> None:
    drawn = ET.fromstring(chart(RUN))
    lines = drawn.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 4
    assert sum("stroke-dasharray" in line.attrib for line in lines) == 2


@pytest.mark.parametrize("words", [[], ["scan"]])
def test_only_a_whole_run_replaces_the_page(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen: list[Case] = []

    def measured(cases: tuple[Case, ...], root: Path, **how: float) -> tuple[Cell, ...]:
        chosen.extend(cases)
        return RUN.cells

    monkeypatch.setattr(program, "measure", measured)
    monkeypatch.setattr(program, "_DOCS", tmp_path / "docs")
    monkeypatch.setattr(sys, "argv", ["bench", *words])
    program.main()
    assert "cold/1/scan" in capsys.readouterr().out
    assert {case.verb.name for case in chosen} >= {"scan"}
    assert ({case.verb.name for case in chosen} == {"scan"}) == bool(words)
    written = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert written == ([] if words else ["bench-tables.md", "bench-tables.svg"])
