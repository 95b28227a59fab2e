"""What whoever writes into a landing folder may do: add rows, and nothing else."""

from __future__ import annotations

import io
import json
import os
import random
import socket
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_ops.api import dataset
from lance_ops.dagster.declaration import RawFiles, StoreLocation
from lance_ops.dagster.landing.landing import list_files, list_landing
from lance_ops.dagster.landing.landing_entries import LandedFile, Landing, SetAside
from lance_ops.errors import InvalidInput, RawFileRefused
from lance_ops.maintenance.ingest import RawFile, RawLimits, ingest
from lance_ops.maintenance.ingest.raw_files import RawReader, RawReading
from lance_ops.maintenance.ingest.raw_names import printable
from lance_ops.store import moment_of
from tests.fleeting_folders import fleeting_folder

pytestmark = pytest.mark.dagster

NOW = datetime(2100, 1, 1, tzinfo=UTC)
ROW = b"x\n1\n"
SECRET = "root:secret"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    landing = tmp_path / "landing"
    landing.mkdir()
    (tmp_path / "shadow").write_text(f"x\n{SECRET}\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.csv").write_text(f"x\n{SECRET}\n")
    return landing


def listed(folder: Path | str, **raw: str) -> Landing:
    return list_landing(RawFiles.model_validate({"uri": str(folder), **raw}), NOW)


def ingested(folder: Path, landing: Landing) -> set[str]:
    """Ingest all batches into a new table and return the values of its only column, as texts."""
    uri = str(folder.parent / "table.lance")
    ingest(uri, [batch.to_ingest() for batch in landing.ready])
    return set(map(str, dataset(uri).to_table()["x"].to_pylist()))


def reasons(landing: Landing) -> dict[str, str]:
    return {file.name: file.reason for file in landing.set_aside}


def read(file: RawFile) -> list[int]:
    """Read the only column of a file, in this process: what opens it is the same as with a process of its own."""
    with RawReader({}, RawReading(isolated=False)) as reader:
        return [value for batch in reader.batches(file) for value in batch["x"].to_pylist()]


def raw_files(landing: Landing) -> Iterable[RawFile]:
    return (file for batch in (*landing.ready, *landing.waiting) for file in batch.to_ingest().files)


class TestLinks:
    def test_links_to_files_and_folders_are_set_aside_and_the_rest_goes_on(self, folder: Path) -> None:
        (folder / "good.csv").write_bytes(ROW)
        (folder / "evil.csv").symlink_to("../shadow")
        (folder / "dir").symlink_to("../elsewhere")
        (folder / "nowhere.csv").symlink_to("missing")
        (folder / "sub").mkdir()
        (folder / "sub" / "absolute.csv").symlink_to(folder.parent / "shadow")
        (folder / "sub" / "loop").symlink_to("..")
        landing = listed(folder)
        assert ingested(folder, landing) == {"1"}
        found = reasons(landing)
        assert set(found) == {"evil.csv", "dir", "nowhere.csv", "sub/absolute.csv", "sub/loop"}
        assert all("a symbolic link" in reason for reason in found.values())

    def test_links_are_followed_if_the_declaration_says_so_and_a_loop_ends(self, folder: Path) -> None:
        (folder / "a.csv").symlink_to("../shadow")
        (folder / "dir").symlink_to("../elsewhere")
        (folder / "loop").symlink_to(".")
        (folder / "nowhere").symlink_to("missing")
        landing = listed(folder, links="follow")
        assert [batch.files[0].path for batch in landing.ready] == ["a.csv", "dir/a.csv"]
        assert ingested(folder, landing) == {SECRET}
        assert set(reasons(landing)) == {"loop", "nowhere"}

    def test_links_that_cannot_be_batches_are_not_reported(self, folder: Path) -> None:
        (folder / "..data").symlink_to("../elsewhere")
        (folder / "readme.txt").symlink_to("../shadow")
        (folder / "a.csv").symlink_to("../shadow")
        assert set(reasons(listed(folder, glob="*.csv"))) == {"a.csv"}

    def test_a_link_is_no_marker(self, folder: Path) -> None:
        (folder / "a.csv").write_bytes(ROW)
        (folder / "_SUCCESS").symlink_to("../shadow")
        landing = listed(folder, marker="_SUCCESS")
        assert not landing.ready
        assert set(reasons(landing)) == {"_SUCCESS"}

    def test_the_landing_folder_itself_may_be_a_link(self, folder: Path) -> None:
        (folder / "a.csv").write_bytes(ROW)
        (folder.parent / "link").symlink_to("landing")
        assert ingested(folder, listed(folder.parent / "link")) == {"1"}


class TestRaces:
    """Somebody changes the folder after it was listed."""

    def test_a_file_that_became_a_link_is_refused(self, folder: Path) -> None:
        (folder / "a.csv").write_bytes(ROW)
        landing = listed(folder)
        (folder / "a.csv").unlink()
        (folder / "a.csv").symlink_to("../shadow")
        with pytest.raises(RawFileRefused, match=r"a\.csv: a link took its place after it was listed"):
            ingested(folder, landing)
        assert not (folder.parent / "table.lance" / "_versions").exists()

    def test_a_folder_that_became_a_link_is_refused(self, folder: Path) -> None:
        (folder / "day").mkdir()
        (folder / "day" / "a.csv").write_bytes(ROW)
        landing = listed(folder)
        (folder / "day").rename(folder / "_day")
        (folder / "day").symlink_to("../elsewhere")
        with pytest.raises(RawFileRefused, match="a link took its place"):
            ingested(folder, landing)

    def test_another_file_of_the_same_size_and_time_is_refused(self, folder: Path) -> None:
        (folder / "a.csv").write_bytes(ROW)
        landing = listed(folder)
        times = (folder / "a.csv").stat()
        (folder / "b.csv").write_bytes(ROW.replace(b"1", b"2"))
        os.utime(folder / "b.csv", ns=(times.st_atime_ns, times.st_mtime_ns))
        (folder / "b.csv").rename(folder / "a.csv")
        with pytest.raises(RawFileRefused, match="it changed after it was listed"):
            ingested(folder, landing)

    @pytest.mark.parametrize("links", ["refuse", "follow"])
    def test_a_file_that_grew_is_refused(self, folder: Path, links: str) -> None:
        (folder / "a.csv").write_bytes(ROW)
        landing = listed(folder, links=links)
        (folder / "a.csv").write_bytes(ROW + b"2\n")
        with pytest.raises(RawFileRefused, match="it changed after it was listed"):
            ingested(folder, landing)

    def test_a_file_that_became_a_pipe_is_refused_without_waiting(self, folder: Path) -> None:
        (folder / "a.csv").write_bytes(ROW)
        landing = listed(folder)
        (folder / "a.csv").unlink()
        os.mkfifo(folder / "a.csv")
        with pytest.raises(RawFileRefused, match="not a regular file"):
            ingested(folder, landing)


class TestKinds:
    def test_pipes_and_sockets_are_set_aside(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        os.mkfifo(folder / "pipe.csv")
        monkeypatch.chdir(folder)  # the path of a socket may have 107 bytes
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("socket.csv")
        found = reasons(listed(folder))
        assert found == dict.fromkeys(["pipe.csv", "socket.csv"], "neither a file nor a folder; remove it")

    def test_a_time_that_is_no_date_is_none(self) -> None:
        """A disk may store such times, though not every disk that tests run on does."""
        assert moment_of(2.0**40) is None
        assert moment_of(0.0) == datetime(1970, 1, 1, tzinfo=UTC)


NAMES = [
    "a::b.csv",
    "simplecache::https:.csv",
    "%2e%2e%2fshadow.csv",
    "a?versionId=1.csv",
    "a#b.csv",
    "-rf.csv",
    "~root.csv",
    "$HOME.csv",
    "${HOME}.csv",
    "file:.csv",
    "c:\\shadow.csv",
    "*.csv",
    "[a].csv",
    "{a,b}.csv",
    "a b.csv",
    " .csv",
    "été.csv",
    "\N{RIGHT-TO-LEFT OVERRIDE}vsc.csv",
    "'; DROP TABLE x; --.csv",
    "x" * 251 + ".csv",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_read_literally(folder: Path, name: str) -> None:
    (folder / name).write_bytes(ROW)
    landing = listed(folder)
    assert not landing.set_aside
    assert ingested(folder, landing) == {"1"}


@pytest.mark.parametrize("uri", ["file://{}", "local://{}", "{}"])
def test_folders_whose_names_look_like_urls_are_read_literally(folder: Path, uri: str) -> None:
    deep = folder / "s3:" / "bucket::b" / "a%2f?b=c#d"
    deep.mkdir(parents=True)
    (deep / "a.csv").write_bytes(ROW)
    assert ingested(folder, listed(uri.format(folder))) == {"1"}


@pytest.mark.parametrize(
    ("name", "shown", "reason"),
    [
        (b"\xff.csv", "\\xff.csv", "its name is not UTF-8; rename it"),
        (b"a\nb.csv", "a\\u{a}b.csv", "its name holds a control character; rename it"),
        (b"\x1b[2J.csv", "\\u{1b}[2J.csv", "its name holds a control character; rename it"),
        ("a\u2028b.csv".encode(), "a\\u{2028}b.csv", "its name holds a line separator; rename it"),
    ],
)
def test_a_name_that_cannot_be_shown_is_set_aside_and_the_rest_goes_on(
    folder: Path, name: bytes, shown: str, reason: str
) -> None:
    (folder / "good.csv").write_bytes(ROW)
    with open(os.path.join(os.fsencode(folder), name), "wb") as file:
        file.write(ROW)
    landing = listed(folder)
    assert reasons(landing) == {shown: reason}
    assert ingested(folder, landing) == {"1"}


@settings(derandomize=True, max_examples=150, deadline=None)
@given(names=st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=4, unique=True))
def test_any_bytes_as_names_are_read_literally_or_set_aside(names: list[bytes]) -> None:
    """Each file holds its own number. Whatever is listed is read from that very file, and whatever is not is named."""
    names = [name.replace(b"/", b":").replace(b"\0", b"0") for name in names]
    names = list(dict.fromkeys(name for name in names if name not in (b".", b"..")))
    with fleeting_folder() as folder:
        for number, name in enumerate(names):
            with open(os.path.join(os.fsencode(folder), name + b".csv"), "wb") as file:
                file.write(b"x\n%d\n" % number)
        found = list(list_files(StoreLocation(str(folder))))
        assert {os.fsencode(file.path) for file in found} == {name + b".csv" for name in names}
        shown = {file.name for file in found if isinstance(file, SetAside)}
        assert all(name.isprintable() for name in shown)
        landing = listed(folder)
        assert {file.path for file in landing.set_aside} <= {file.path for file in found}
        for raw in raw_files(landing):
            assert read(raw) == [names.index(os.fsencode(os.path.basename(raw.uri))[: -len(".csv")])]


@given(st.text(max_size=20), st.text(max_size=20))
@settings(derandomize=True, deadline=None)
def test_different_names_are_shown_differently_on_one_line(first: str, second: str) -> None:
    assert printable(first).isprintable()
    assert (printable(first) == printable(second)) == (first == second)


def mutants(number: int) -> Iterator[tuple[str, bytes]]:
    """Yield endings and contents of small files with some bytes changed, more of them near the end."""
    table = pa.table({"x": list(range(50)), "y": [str(row) * (row % 4) for row in range(50)], "z": [[1.0, None]] * 50})
    parquet, arrow = io.BytesIO(), io.BytesIO()
    pa.parquet.write_table(table, parquet)
    with pa.ipc.new_file(arrow, table.schema) as writer:
        writer.write_table(table)
    text = "".join(json.dumps(row) + "\n" for row in table.to_pylist())
    seeds = [("parquet", parquet.getvalue()), ("arrow", arrow.getvalue()), ("json", text.encode()), ("csv", ROW * 20)]
    chance = random.Random(7)
    for _ in range(number):
        ending, content = chance.choice(seeds)
        changed = bytearray(content)
        for _ in range(chance.choice([1, 1, 2, 4, 16])):
            reach = len(changed) if chance.random() < 0.5 else min(len(changed), 1500)
            changed[len(changed) - 1 - chance.randrange(reach)] = chance.choice([0, 1, 127, 128, 255])
        yield ending, bytes(changed)


def test_a_damaged_file_gives_rows_or_is_refused(folder: Path) -> None:
    read_well = 0
    refused: list[str] = []
    with RawReader({}, RawReading(RawLimits(memory_bytes=512 * 1024**2))) as reader:
        for ending, content in mutants(400):
            path = folder / f"a.{ending}"
            path.write_bytes(content)
            try:
                for batch in reader.batches(RawFile(str(path), len(content), "t")):
                    batch.validate(full=True)
                read_well += 1
            except RawFileRefused as error:
                refused.append(error.path)
    assert read_well > 20 and len(refused) > 100
    assert all(os.path.dirname(path) == str(folder) for path in refused)


class TestStores:
    @pytest.fixture
    def root(self) -> Iterable[str]:
        filesystem = fsspec.filesystem("memory")
        yield "/hostile-landing"
        filesystem.rm("/hostile-landing", recursive=True)

    @pytest.mark.parametrize("name", ["a::b.csv", "a?versionId=1.csv", "a#b.csv", "%2e.csv", "simplecache::c.csv"])
    def test_a_name_in_a_store_is_read_literally(self, root: str, name: str) -> None:
        fsspec.filesystem("memory").pipe(f"{root}/{name}", ROW)
        (file,) = raw_files(listed(f"memory:/{root}"))
        assert read(file) == [1]

    @pytest.mark.parametrize("name", ["a\nb.csv", "sub/../a.csv", "sub//a.csv"])
    def test_a_name_that_a_store_may_read_as_another_is_set_aside(self, root: str, name: str) -> None:
        filesystem = fsspec.filesystem("memory")
        filesystem.pipe(f"{root}/good.csv", ROW)
        filesystem.store[f"{root}/{name}"] = filesystem.store[f"{root}/good.csv"]
        found = list(list_files(StoreLocation(f"memory:/{root}")))
        assert [file.path for file in found if isinstance(file, LandedFile)] == ["good.csv"]
        assert [file.path for file in found if isinstance(file, SetAside)] == [name]

    def test_a_chain_of_urls_is_no_landing_folder(self) -> None:
        with pytest.raises(InvalidInput, match="chains are not read"):
            listed("simplecache::memory://in")
