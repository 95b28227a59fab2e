"""What a path or a URI of a raw file names, and what its store says of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import pyarrow as pa
import pytest

from lance_ops.core.errors import RawFileNotAsListed, RawFileRefused
from lance_ops.maintenance.ingest import (
    RawFile,
    RawReader,
    RawReading,
    StatedFile,
    TextReading,
    found_file,
    raw_files,
)
from lance_ops.maintenance.ingest.raw_schemas import FoundSchemas, SchemaTask
from lance_ops.runners import InThreads

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HERE = RawReading(isolated=False)


@pytest.mark.parametrize(
    ("info", "reason"),
    [
        ({"size": None, "ETag": "a"}, "how long it is"),
        ({"size": 5}, "no ETag and no time"),
        ({"size": 5, "modified": "Thu, 01 Jan 2026 12:00:00 GMT"}, "no ETag and no time"),
    ],
)
def test_a_file_is_refused_if_its_store_does_not_say_when_it_changes(
    info: Mapping[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filesystem = SimpleNamespace(info=lambda path: info)
    monkeypatch.setattr(raw_files, "remote_file_system", lambda uri, options, **_: (filesystem, "in/a.csv"))
    with pytest.raises(RawFileRefused, match=f"a.csv.*{reason}"):
        found_file("dav://host/in/a.csv", {})


def test_a_file_whose_name_begins_with_two_dots_is_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "in" / "..x").mkdir(parents=True)
    for name in ("..a.csv", "..x/a.csv"):
        (tmp_path / "in" / name).write_text("a")
        found = found_file(str(tmp_path / "in" / name), {}, str(tmp_path / "in"))
        assert found.listed is not None and found.listed.path == name
        assert found_file(f"~/in/{name}", {}, "~/in") == found
    (tmp_path / "a.csv").write_text("a")
    with pytest.raises(RawFileRefused, match="it is not in"):
        found_file(str(tmp_path / "a.csv"), {}, str(tmp_path / "in"))


def test_a_file_is_read_anew_if_the_names_of_its_columns_are_others(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2\n")
    file = RawFile(str(tmp_path / "a.csv"), 4, "a")
    reading = RawReading(isolated=False, text=TextReading(header=False))
    schemas = FoundSchemas()
    for names in (("a", "b"), ("a", "c"), ("a", "b")):
        (found,) = schemas.read(SchemaTask((file,), reading, names), InThreads(1), None)
        assert found == pa.schema({name: pa.int64() for name in names})


@pytest.mark.parametrize("is_open", [False, True], ids=["before it is opened", "while it is read"])
def test_a_local_file_that_changes_after_it_was_found_is_refused(tmp_path: Path, is_open: bool) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n")
    file = found_file(str(path), {})
    with RawReader({}, HERE) as reader:
        rows = reader.batches(file)
        if is_open:
            next(rows)
        path.write_text("x\n1\n2\n")
        with pytest.raises(RawFileNotAsListed, match="a.csv.*it changed after it was listed"):
            list(rows)


@pytest.mark.parametrize("whole", [False, True], ids=["file", "folder"])
@pytest.mark.parametrize("is_open", [False, True], ids=["before it is opened", "while it is read"])
def test_a_local_file_that_is_moved_after_it_was_found_is_not_as_listed(
    tmp_path: Path, whole: bool, is_open: bool
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text("x\n1\n")
    file = found_file(str(folder / "a.csv"), {}, str(folder))
    with RawReader({}, HERE) as reader:
        rows = reader.batches(file)
        if is_open:
            next(rows)
        if whole:
            folder.rename(tmp_path / "out")
        else:
            (folder / "a.csv").rename(tmp_path / "out.csv")
        if is_open and not whole:
            assert list(rows) == [], "the open file is as it was listed"
        else:
            with pytest.raises(RawFileNotAsListed, match="a.csv: it (is not there any more|changed)"):
                list(rows)


def test_a_link_that_is_named_is_followed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "link.csv").symlink_to("a.csv")
    with RawReader({}, HERE) as reader:
        assert [batch.num_rows for batch in reader.batches(found_file(str(tmp_path / "link.csv"), {}))] == [1]


def test_a_file_of_a_store_that_changes_after_it_was_found_is_refused(tmp_path: Path) -> None:
    memory, path = fsspec.filesystem("memory"), f"/{tmp_path.name}/a.csv"
    memory.pipe(path, b"x\n1\n")
    file = found_file(f"memory:/{path}", {})
    with RawReader({}, HERE) as reader:
        assert [batch.num_rows for batch in reader.batches(file)] == [1]
        memory.pipe(path, b"x\n2\n")
        with pytest.raises(RawFileNotAsListed, match="a.csv: it changed after it was listed"):
            list(reader.batches(file))
        memory.rm(path)
        with pytest.raises(RawFileNotAsListed, match="a.csv: it is not there any more"):
            list(reader.batches(file))


SECOND = timedelta(seconds=1)
FRACTION = timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("listed", "now", "is_same"),
    [
        ((1, NOON, "a"), (1, NOON, "b"), False),
        ((1, NOON, "a"), (1, NOON + SECOND, "a"), True),
        ((1, NOON, "a"), (2, NOON, "a"), False),
        ((1, NOON, "a"), (1, NOON + SECOND, None), False),
        ((1, NOON + FRACTION, None), (1, NOON, None), True),
        ((1, NOON + FRACTION, None), (1, NOON + 2 * FRACTION, None), False),
        ((1, None, "a"), (1, NOON, None), True),
    ],
)
def test_what_a_store_states_is_compared_as_far_as_both_times_tell(
    listed: tuple[Any, ...], now: tuple[Any, ...], is_same: bool
) -> None:
    assert StatedFile(*listed).may_be_same(StatedFile(*now)) is is_same
    assert StatedFile(*now).may_be_same(StatedFile(*listed)) is is_same
