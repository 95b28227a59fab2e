"""The page of the sizes that users have."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.bench import sizes
from tests.bench.sizes import Measured, Size, Taken, page, recorded


def _sizes() -> dict[str, Measured]:
    rows = {
        "open": {"lance": Taken(1.0, 100), "lance_ops": Taken(2.0, 50)},
        "scan": {"lance": Taken(4.0, 100), "lance_ops": Taken(0.5, 1234)},
        "merge": {"lance": Taken(0, 0, "MemoryError"), "lance_ops": Taken(0.5, 50)},
    }
    columns = {"open": {"lance": Taken(0, 0, "Killed"), "lance_ops": Taken(0, 0, "MemoryError")}}
    return {"100 million rows": Measured("date: some day", rows), "10,000 columns": Measured("date: later", columns)}


def test_the_page_says_first_what_is_slower() -> None:
    shown = page(_sizes())
    assert "**Slower than the reference**: 100 million rows: open (0.50)." in shown
    assert "Geometric mean of the 2 ratios: 2.00." in shown
    assert "| scan | 4 | 100 | 0.5 | 1,234 | 8.00 |" in shown
    assert "| merge | failed: MemoryError | - | 0.5 | 50 |  |" in shown


def test_a_run_of_some_sizes_keeps_the_others_of_the_page() -> None:
    assert recorded(page(_sizes())) == _sizes()
    written = recorded(sizes.PAGE.read_text(encoding="utf-8"))
    assert written and all(measured.operations for measured in written.values())
    assert recorded(page(written)) == written


@pytest.mark.interop
def test_both_libraries_are_measured_on_the_table_that_ours_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[tuple[str, str, str]] = []

    def noted(name: str, operation: str, library: str, uri: str) -> Taken:
        taken.append((operation, library, Path(uri).name))
        if operation == "write":
            Path(uri).mkdir()
        assert Path(uri).is_dir()
        return Taken(1, 1)

    small = Size(lambda lib, uri: None, {"open": lambda lib, uri: None}, {"append": lambda lib, uri: None})
    monkeypatch.setitem(sizes.SIZES, "small", small)
    monkeypatch.setattr(sizes, "_in_a_process", noted)
    monkeypatch.setattr(sizes, "_copy_table", shutil.copytree)
    assert [operation for operation, _ in sizes._measure_size("small", tmp_path)] == ["write", "open", "append"]
    assert taken == [
        ("write", "lance", "lance.lance"),
        ("write", "lance_ops", "lance_ops.lance"),
        ("open", "lance", "table.lance"),
        ("open", "lance_ops", "table.lance"),
        ("append", "lance", "lance.lance"),
        ("append", "lance_ops", "lance_ops.lance"),
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["table.lance"]
