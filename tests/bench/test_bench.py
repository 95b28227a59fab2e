from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest

import lance_ops
from tests.bench.answers import compare, write_answer
from tests.bench.cases import ALL_CASES, Case, cases_named
from tests.bench.chart import chart
from tests.bench.contenders import contender, sync_all
from tests.bench.pairing import measure_all
from tests.bench.report import report
from tests.bench.results import OPERATIONS, OWN_FILES, RIVALS, Cell, Run, Sample, geometric_mean
from tests.bench.table_cases import ALL_TABLE_CASES, COMMITS, FEW_TAKEN, TAKEN, TableCase
from tests.bench.table_pairing import measure_tables


def samples(*seconds: float) -> tuple[Sample, ...]:
    return tuple(Sample(value, value, 1) for value in seconds)


def test_ratio_is_the_median_over_pairs_and_not_a_ratio_of_medians() -> None:
    cell = Cell("floats", "2.2", "scan", samples={"ours": samples(1, 2, 9), "pylance": samples(2, 2, 36)})
    assert cell.ratio(OWN_FILES) == 2


def test_size_ratio_is_above_one_when_our_files_are_smaller() -> None:
    assert Cell("floats", "2.2", "size", sizes={"ours": 50, "pylance": 100}).ratio(OWN_FILES) == 2


def test_geometric_mean_of_nothing_is_nothing() -> None:
    assert geometric_mean([]) is None
    assert geometric_mean([4.0, 0.25]) == pytest.approx(1)


def test_unsupported_cell_shows_in_the_table_in_the_chart_and_in_json() -> None:
    reason = "UnsupportedFeature: writing file version 2.0 is not supported"
    cell = Cell("floats", "2.0", "scan", samples={"pylance": samples(1.0)}, errors={"ours": reason})
    run = Run({"date": "some day"}, (cell,))
    assert "unsup." in report(run)
    assert reason in report(run)
    assert "scan of floats 2.0: no ratio" in chart(run)
    assert run.to_json()["cells"][0]["errors"] == {"ours": reason}


def test_chart_is_well_formed_when_ratios_lie_beyond_its_axis() -> None:
    cells = tuple(
        Cell("floats", "2.2", operation, samples={"ours": samples(1), "pylance": samples(theirs)})
        for operation, theirs in zip(OPERATIONS, (1e-6, 1e6, 1, 0.5, 2, 1), strict=True)
    )
    assert ET.fromstring(chart(Run({}, cells))).tag.endswith("svg")


@pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case.name)
def test_case_is_the_same_in_every_run(case: Case) -> None:
    table = case.table(scale=0.01)
    assert table.equals(case.table(scale=0.01))
    table.validate(full=True)


@pytest.mark.interop
def test_only_ours_is_durable_by_itself() -> None:
    assert {name: contender(name, "2.2").syncs for name in ("ours", "pylance", "parquet")} == {
        "ours": True,
        "pylance": False,
        "parquet": False,
    }


@pytest.mark.interop
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_files_that_a_contender_left_unsynced_are_all_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "written"
    contender("pylance", "2.2").write(pa.table({"id": [1]}), folder)
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}"))))
    sync_all(folder)
    assert set(synced) == {tmp_path, folder, *folder.rglob("*")}
    assert synced.index(folder) < synced.index(tmp_path)


def test_unknown_case_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(SystemExit, match="nothing_like_it"):
        cases_named("floats,nothing_like_it")


@pytest.mark.interop
@pytest.mark.skipif(sys.platform != "linux", reason="pins processes and reads /proc")
def test_small_case_is_measured_for_everyone_on_every_operation(tmp_path: Path) -> None:
    affinity = os.sched_getaffinity(0)
    cells = list(measure_all(cases_named("ints_small"), ["2.2"], tmp_path, scale=0.002, seconds=0.0))
    assert {cell.operation for cell in cells} == set(OPERATIONS)
    assert not [cell.errors for cell in cells if cell.errors]
    assert all(cell.ratio(rival) for cell in cells for rival in RIVALS if cell.applies(rival))
    assert os.sched_getaffinity(0) == affinity
    assert not list(tmp_path.iterdir())


@pytest.mark.interop
@pytest.mark.skipif(sys.platform != "linux", reason="pins processes and reads /proc")
def test_a_small_table_is_measured_for_both(tmp_path: Path) -> None:
    affinity = os.sched_getaffinity(0)
    case = next(case for case in ALL_TABLE_CASES if case.name == "delete_1_percent")
    (cell,) = measure_tables([case], tmp_path, scale=0.002, seconds=0.0)
    assert not cell.errors
    assert cell.ratio(OWN_FILES, "cpu_seconds")
    shown = report(Run({"date": "some day"}, (cell,)))
    assert "delete_1_percent" in shown
    assert Run({}, (cell,)).of_files.cells == ()
    assert os.sched_getaffinity(0) == affinity
    assert not list(tmp_path.iterdir())


_EFFECTS = {  # versions made, rows added
    "commits_alone": (COMMITS, COMMITS),
    "commits_8_writers": (COMMITS, COMMITS),
    "commit_100000_fragments": (1, 1),
    "delete_1_percent": (1, -20),
    "update_1_percent": (1, 0),
    "update_all": (1, 0),
    "merge_insert": (1, 10),
    "merge_insert_half": (1, 100),
    "merge_insert_by_index": (1, 0),
    "merge_insert_column": (1, 0),
    "add_column": (1, 0),
    "compact_with_index": (2, 0),
}


@pytest.mark.parametrize("case", ALL_TABLE_CASES, ids=lambda case: case.name)
def test_a_table_case_makes_the_expected_versions_and_rows(case: TableCase, tmp_path: Path) -> None:
    case.prepare(tmp_path / "source", 0.002)
    uri = str(tmp_path / case.start(tmp_path, "ours", 1))
    before = lance_ops.dataset(uri)
    result = case.run(lance_ops, uri, 1)
    after = lance_ops.dataset(uri)
    made, added = _EFFECTS.get(case.name, (0, 0))
    assert after.version - before.version == made
    assert after.count_rows() - before.count_rows() == added
    if case.name == "take_cold":
        assert isinstance(result, pa.Table)
        assert result.num_rows == FEW_TAKEN
    if case.name == "take_stable_row_ids":
        assert isinstance(result, pa.Table)
        assert 0 < result.num_rows < TAKEN
        assert len(after.get_fragments()) >= 10
        assert after.snapshot.manifest.uses_stable_row_ids


def test_contenders_with_different_answers_raise_an_error(tmp_path: Path) -> None:
    for name, answer in (("ours", 1), ("pylance", 2)):
        write_answer(tmp_path, name, pa.table({"result": [answer]}))
    compare("open_10000_versions", tmp_path, ["ours", "ours"])
    with pytest.raises(AssertionError, match="open_10000_versions"):
        compare("open_10000_versions", tmp_path, ["ours", "pylance"])


def test_module_shows_its_usage_without_importing_a_contender() -> None:
    shown = subprocess.run([sys.executable, "-m", "tests.bench", "--help"], capture_output=True, text=True, check=True)
    assert "vectors_768" in shown.stdout
