"""Whatever a manifest says, no verb leaves the root, takes much memory, or fails without a typed error."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from datetime import timedelta
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import lance_ops
from lance_ops import LanceDataset
from lance_ops.errors import LanceOpsError
from lance_ops.reading import scan_execution
from lance_ops.refs import drop_dataset
from tests.security.hostile_manifests import OUTSIDE, Change, changed, changes
from tests.security.watched_folder import watching

SECRET = b"kept safe: " + b"hunter2-hunter2" * 3
MAX_BYTES = 512 << 20
NOW = timedelta(0)


def _rows(table: LanceDataset) -> pa.Table:
    return pa.table({"id": [1000], "s": ["new"]})


VERBS: dict[str, Callable[[LanceDataset], object]] = {
    "count": lambda table: table.count_rows(),
    "scan": lambda table: list(islice(table.to_batches(), 50)),
    "read whole": lambda table: table.to_table(),
    "filter": lambda table: table.to_table(filter="id = 3"),
    "take": lambda table: table.take([0, 1]),
    "insert": lambda table: table.insert(_rows(table)),
    "delete": lambda table: table.delete("id = 3"),
    "update": lambda table: table.update({"s": "'x'"}, where="id = 4"),
    "merge": lambda table: table.merge_insert("id").when_matched_update_all().execute(_rows(table)),
    "compact": lambda table: table.optimize.compact_files(),
    "index": lambda table: table.create_scalar_index("id", "BTREE"),
    "optimize indices": lambda table: table.optimize.optimize_indices(),
    "clean up": lambda table: table.cleanup_old_versions(
        NOW, delete_unverified=True, error_if_tagged_old_versions=False
    ),
    "tag": lambda table: table.tags.create("new"),
    "branch": lambda table: table.create_branch("new"),
    "shallow clone": lambda table: table.shallow_clone(f"{table.uri}-shallow", table.version),
    "deep clone": lambda table: table.deep_clone(f"{table.uri}-deep", table.version),
    "restore": lambda table: table.restore(),
    "restore an earlier version": lambda table: lance_ops.dataset(table.uri, 1).restore(),
    "versions": lambda table: table.versions(),
    "transactions": lambda table: table.get_transactions(),
    "validate": lambda table: table.validate(),
    "statistics": lambda table: table.stats.data_stats(),
    "files": lambda table: table.all_files().read_all(),
    "drop": lambda table: drop_dataset(table.uri),
}


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let scans hold as much on every machine: they hold something for each core."""
    monkeypatch.setattr(scan_execution, "available_cores", lambda: 2)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table of several versions, with deletions, an index, a tag and a branch."""
    folder = tmp_path_factory.mktemp("sound")
    rows = pa.table({"id": range(20), "s": [f"row {number}" for number in range(20)]})
    made = lance_ops.write_dataset(rows, str(folder / "table"), max_rows_per_file=5)
    made.create_scalar_index("id", "BTREE")
    made.delete("id % 7 = 2")
    made.tags.create("v1", 1)
    made.create_branch("dev")
    made.insert(rows)
    return folder


def _reset_peak() -> int | None:
    """Forget the most memory this process had, and return what it has now; None where the system cannot."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return _status("VmRSS")
    except OSError:
        return None


def _status(name: str) -> int:
    line = next(each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith(f"{name}:"))
    return int(line.split()[1]) << 10


def check(sound: Path, verb: str, wanted: list[Change]) -> str:
    """Use a copy of the table with a hostile newest manifest; return the outcome."""
    with tempfile.TemporaryDirectory() as folder:
        root, outside = Path(folder, "table"), Path(folder, "outside")
        shutil.copytree(sound / "table", root)
        outside.mkdir()
        (outside / "secret.lance").write_bytes(SECRET)
        newest = min((root / "_versions").glob("*.manifest"))  # names count down
        newest.write_bytes(changed(newest.read_bytes(), wanted, str(outside)))
        before = _reset_peak()
        with watching(outside) as touched:
            try:
                VERBS[verb](lance_ops.dataset(str(root)))
                outcome = "done"
            except LanceOpsError as error:
                outcome = type(error).__name__
        if any(change.kind == "base" for change in wanted) and any(OUTSIDE in change.text for change in wanted):
            touched = [each for each in touched if not each.startswith("open ")]  # a local table may name a local base
        assert touched == []
        assert [path.name for path in outside.iterdir()] == ["secret.lance"]
        assert (outside / "secret.lance").read_bytes() == SECRET
        copies = [path for path in Path(folder).rglob("*") if path.is_file() and path.parent != outside]
        assert not [path for path in copies if SECRET in path.read_bytes()]
        assert {path.name for path in Path(folder).iterdir()} <= {"table", "outside", "table-shallow", "table-deep"}
        if before is not None:
            assert _status("VmHWM") - before < MAX_BYTES
        return outcome


def test_the_watch_sees_what_is_opened(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"")
    with watching(tmp_path) as touched:
        (tmp_path / "f").read_bytes()
        (tmp_path / "f").unlink()
    assert [event.split()[0] for event in touched] == ["open", "os.remove"]


@pytest.mark.parametrize("verb", list(VERBS))
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(wanted=changes())
def test_a_hostile_manifest_does_no_harm(sound: Path, verb: str, wanted: list[Change]) -> None:
    check(sound, verb, wanted)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("verb", list(VERBS))
@settings(max_examples=2000, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(wanted=changes())
def test_many_hostile_manifests_do_no_harm(sound: Path, verb: str, wanted: list[Change]) -> None:
    check(sound, verb, wanted)


@pytest.mark.parametrize(
    ("verb", "change", "outcome"),
    [
        ("read whole", Change("rows", 1, "", 1 << 31), "ReadTooLarge"),
        ("index", Change("rows", 1, "", (1 << 32) - 1), "ReadTooLarge"),
        ("scan", Change("rows", 1, "", 1 << 31), "done"),
        ("scan", Change("base", 0, "../outside", 1), "UnsafePath"),
        ("scan", Change("base", 0, "s3://bucket/table", 1), "UnsafePath"),
        ("deep clone", Change("base", 0, OUTSIDE, 2), "CorruptFile"),
        ("scan", Change("row ids", 0, "../outside/secret.lance", 5), "UnsafePath"),
    ],
)
def test_known_attacks_have_their_outcome(sound: Path, verb: str, change: Change, outcome: str) -> None:
    assert check(sound, verb, [change]) == outcome


@pytest.mark.parametrize("verb", list(VERBS))
def test_the_same_verbs_work_on_the_sound_table(sound: Path, verb: str) -> None:
    assert check(sound, verb, []) == "done"
