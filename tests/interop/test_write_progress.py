"""Notes that a write leaves beside its data, and the metadata of deletion files: as the reference has them."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import InvalidInput
from lance_ops.progress import FileSystemFragmentWriteProgress

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

ROWS = pa.table({"id": range(20)})


def notes(folder: Path) -> dict[str, Any]:
    found = {path.name: json.loads(path.read_bytes()) for path in folder.iterdir()}
    for values in found.values():
        for file in values.get("files", ()):
            file["path"] = "…"
        values["physical_rows"] = values.get("physical_rows") or None  # 0 and null are both "not known"
    return found


def test_the_notes_of_a_write_are_the_reference_s(tmp_path: Path) -> None:
    from lance.progress import FileSystemFragmentWriteProgress as Theirs

    for name, library, kind in (("ours", lance_ops, FileSystemFragmentWriteProgress), ("theirs", lance, Theirs)):
        progress = kind(f"file://{tmp_path}/{name}", {"worker": "1"})
        library.write_dataset(ROWS, f"{tmp_path}/{name}.lance", progress=progress, max_rows_per_file=10)
    ours, theirs = notes(tmp_path / "ours"), notes(tmp_path / "theirs")
    assert len(ours["fragment_0.json"].pop("files")) == 1
    assert theirs["fragment_0.json"].pop("files") == []  # the reference names the file only in `LanceFragment.create`
    assert ours == theirs
    assert ours.keys() == {"fragment_0.json"}


def test_the_notes_of_one_fragment_have_its_id_and_its_file(tmp_path: Path) -> None:
    from lance.progress import FileSystemFragmentWriteProgress as Theirs

    for name, library, kind in (("ours", lance_ops, FileSystemFragmentWriteProgress), ("theirs", lance, Theirs)):
        progress = kind(str(tmp_path / name))
        made = library.LanceFragment.create(f"{tmp_path}/{name}.lance", ROWS, fragment_id=3, progress=progress)
        (noted,) = json.loads((tmp_path / name / "fragment_3.json").read_bytes())["files"]
        assert noted["path"] == made.files[0].path
    ours, theirs = notes(tmp_path / "ours"), notes(tmp_path / "theirs")
    for values in (ours, theirs):
        (noted,) = values["fragment_3.json"]["files"]
        noted["file_size_bytes"] = noted["file_size_bytes"] or None  # 0 and null are both "not known"
    assert ours == theirs
    assert ours.keys() == {"fragment_3.json"}


def test_a_write_that_fails_leaves_the_note_of_its_fragment(tmp_path: Path) -> None:
    progress = pickle.loads(pickle.dumps(FileSystemFragmentWriteProgress(str(tmp_path / "notes"), {"worker": "1"})))

    def batches() -> Any:
        yield from ROWS.to_batches()
        raise OSError("the source is gone")

    with pytest.raises(OSError, match="gone"):
        lance_ops.write_dataset(batches(), str(tmp_path / "table"), schema=ROWS.schema, progress=progress)
    found = notes(tmp_path / "notes")
    assert found["fragment_0.in_progress"]["metadata"] == {"worker": "1"}


@pytest.mark.parametrize("deleted", [3, 6000])
def test_a_deletion_file_has_the_reference_s_fields_and_json(tmp_path: Path, deleted: int) -> None:
    uri = str(tmp_path / "table")
    lance.write_dataset(pa.table({"id": range(9000)}), uri)
    lance.dataset(uri).delete(f"id < {deleted}")
    theirs = lance.dataset(uri).get_fragments()[0].metadata.deletion_file
    ours = lance_ops.dataset(uri).get_fragments()[0].metadata.deletion_file
    assert ours is not None
    assert ours.asdict() == theirs.asdict()
    assert ours.path(0) == theirs.path(0) and Path(ours.path(0, uri)).is_file()
    assert json.loads(ours.json()) == json.loads(theirs.json())
    assert type(ours).from_json(theirs.json()) == ours
    assert type(theirs).from_json(ours.json()) == theirs
    for text in ("", "[]", "{}", '{"file_type": "zip"}'):
        with pytest.raises(InvalidInput):
            type(ours).from_json(text)
