"""A byte that is changed anywhere, or a file cut or lost, is found, and a copy of the dataset mends it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_ops
from lance_ops.maintenance.verification import verify_uri
from tests.checksums import blob_bytes
from tests.maintenance.verification.planted_damages import make_dataset

DIRECTORIES = ("data", "_deletions", "_indices", "_transactions")


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of a dataset with every kind of file."""
    root = tmp_path_factory.mktemp("healthy") / "data.lance"
    make_dataset(root)
    return root


@pytest.fixture(scope="module")
def before(healthy: Path) -> tuple[pa.Table, int, list[bytes | None]]:
    """The rows of the healthy dataset, how many of them a filter finds, and its blobs."""
    opened = lance_ops.dataset(str(healthy))
    return opened.to_table().sort_by("x"), opened.count_rows("x > 1000"), blobs(opened)


@pytest.fixture(scope="module")
def parts(healthy: Path) -> list[Path]:
    """The files of the newest version, relative to the root."""
    assert lance_ops.dataset(str(healthy)).verify(level="quick").ok
    listed = lance_ops.dataset(str(healthy)).tracked_files(min_version=3).read_all()
    paths = {path for path in listed["path"].to_pylist() if path.startswith(DIRECTORIES)}
    assert len(paths) == 7  # three data files, a deletion file, two files of the index, a transaction
    sidecars = [path.relative_to(healthy) for path in healthy.glob("data/*/*.blob")]
    assert len(sidecars) == 3
    return sorted([*map(Path, paths), *sidecars])


def blobs(opened: lance_ops.LanceDataset) -> list[bytes | None]:
    """Return the blobs of rows that a sidecar of each fragment holds."""
    return [None if blob is None else blob.read() for blob in opened.take_blobs("blob", indices=[0, 150, 900, 1500])]


def harm(path: Path, how: str, at: float) -> None:
    data = path.read_bytes()
    place = min(int(at * len(data)), len(data) - 1)
    match how:
        case "lost":
            path.unlink()
        case "cut":
            path.write_bytes(data[:place])
        case "flipped":
            path.write_bytes(data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :])
        case "zeroed":
            path.write_bytes(data[:place] + bytes(len(data) - place))


@settings(max_examples=40)
@given(
    number=st.integers(0, 9),
    how=st.sampled_from(["lost", "cut", "flipped", "flipped", "zeroed"]),
    at=st.floats(0, 1, exclude_max=True),
)
def test_a_damaged_file_is_found_and_mended(
    healthy: Path,
    parts: list[Path],
    before: tuple[pa.Table, int, list[bytes | None]],
    number: int,
    how: str,
    at: float,
) -> None:
    part, (rows, num_found, of_blobs) = parts[number], before
    with tempfile.TemporaryDirectory() as folder:
        root = Path(shutil.copytree(healthy, Path(folder) / "data.lance"))
        harm(root / part, how, at)
        is_changed = not (root / part).exists() or (root / part).read_bytes() != (healthy / part).read_bytes()
        report = verify_uri(str(root))
        if not report.ok:
            assert {str(root / part), None} >= {finding.path for finding in report.damages if finding.fragment_id}
            opened = lance_ops.dataset(str(root))
            plan = opened.plan_repair(report, copy=str(healthy))
            assert plan.refusals == ()
            assert opened.repair(plan).failed == ()
        elif is_changed and part.parts[0] != "_transactions":  # only the mark of the checksums themselves is hidden
            assert str(root / part) in report.files_without_checksums
            assert part.suffix != ".blob" or report.findings or (root / part).stat().st_size == blob_bytes(root / part)
        mended = lance_ops.dataset(str(root))
        assert mended.verify().ok
        assert mended.to_table().sort_by("x") == rows
        assert mended.count_rows("x > 1000") == num_found
        assert how == "zeroed" or blobs(mended) == of_blobs
