"""Importing the library loads little, and reading loads only what it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import lance_ops

_MEASURE = """
import json, sys
before = set(sys.modules)
import lance_ops
print(json.dumps(sorted(sys.modules.keys() - before)))
"""


def test_importing_the_library_loads_no_other_package_and_few_modules() -> None:
    run = subprocess.run([sys.executable, "-c", _MEASURE], capture_output=True, text=True, check=True)
    loaded = json.loads(run.stdout)
    own = [name for name in loaded if name.partition(".")[0] == "lance_ops"]
    assert own == ["lance_ops"]  # public names load their modules when they are first used
    assert {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names == {"lance_ops"}
    assert len(loaded) < 60


def test_an_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'datasets'"):
        lance_ops.datasets  # type: ignore[attr-defined]  # noqa: B018 # what raises


def test_every_public_name_is_listed_and_resolves() -> None:
    assert set(lance_ops.__all__) <= set(dir(lance_ops))
    for name in lance_ops.__all__:
        assert getattr(lance_ops, name) is not None


def test_reading_a_local_dataset_loads_no_sql_and_no_network_package(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
import pyarrow as pa, lance_ops
lance_ops.write_dataset(pa.table({{"a": [1, 2]}}), {str(tmp_path / "t")!r})
assert lance_ops.dataset({str(tmp_path / "t")!r}).to_table().num_rows == 2
print(*({{"sqlglot", "fsspec", "sqlalchemy"}} & sys.modules.keys()))
assert lance_ops.dataset({str(tmp_path / "t")!r}).count_rows("a = 2") == 1
print("sqlglot" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True"]
