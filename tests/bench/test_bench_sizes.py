"""The page of the sizes that users have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import sizes
from tests.bench.sizes import Size, Taken, page


def test_the_page_says_first_what_is_slower() -> None:
    measured = {
        "many rows": {
            "open": {"lance": Taken(1.0, 100), "lance_ops": Taken(2.0, 50)},
            "scan": {"lance": Taken(4.0, 100), "lance_ops": Taken(0.5, 50)},
            "merge": {"lance": Taken(0, 0, "MemoryError"), "lance_ops": Taken(0.5, 50)},
        }
    }
    shown = page({"date": "some day", "scale": "1"}, measured)
    assert "**Slower than the reference**: many rows: open (0.50)." in shown
    assert "Geometric mean of the 2 ratios: 2.00." in shown
    assert "| scan | 4 | 100 | 0.5 | 50 | 8.00 |" in shown
    assert "| merge | failed: MemoryError | - | 0.5 | 50 |  |" in shown
    assert "scale" not in shown


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
