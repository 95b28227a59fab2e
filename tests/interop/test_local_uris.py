"""Every spelling of a local path that the reference opens is opened here, and names the same dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import LanceOpsError

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

NAMES = ("plain", "a b", "a%20b", "50%", "ü", "a#b", "a?b")

SPELLINGS = {
    "path": "{path}",
    "trailing slash": "{path}/",
    "doubled slash": "/{path}",
    "relative": "{name}",
    "with a dot": "./{name}",
    "with two dots": "../{folder}/{name}",
    "home": "~/{name}",
    "file, one slash": "file:{path}",
    "file, two slashes": "file://{path}",
    "file, four slashes": "file:///{path}",
    "file, host": "file://localhost{path}",
    "file, capitals": "FILE://{path}",
    "file, encoded": "file://{encoded}",
    "file, one slash, encoded": "file:{encoded}",
    "object store of files": "file-object-store://{path}",
}

REFUSED = {
    "relative file URI": "file:{name}",
    "file URI of a home": "file://~/{name}",
    "file URI of a host": "file://host{path}",  # the reference leaves the host out
    "variable": "$HOME/{name}",
}


@pytest.mark.parametrize("name", NAMES)
def test_every_local_path_and_uri_that_the_reference_opens_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    path = str(tmp_path / name)
    lance.write_dataset(pa.table({"id": range(3)}), path)
    parts = {"path": path, "name": name, "folder": tmp_path.name, "encoded": quote(path)}
    opened = 0
    for spelling, pattern in SPELLINGS.items():
        uri = pattern.format(**parts)
        if rows(lance, uri) == 3:
            assert rows(lance_ops, uri) == 3, spelling
            assert lance_ops.dataset(uri).uri == path, spelling
            opened += 1
    assert opened >= 8
    for spelling, pattern in REFUSED.items():
        assert rows(lance_ops, pattern.format(**parts)) is None, spelling


@pytest.mark.parametrize("uri", [b"/a", 3, None])
def test_what_is_no_text_and_no_path_is_refused_as_in_the_reference(uri: Any) -> None:
    for library in (lance, lance_ops):
        with pytest.raises((TypeError, ValueError)):
            library.dataset(uri)


def rows(library: Any, uri: str) -> int | None:
    """The rows of the dataset at a URI; None if the library does not open it."""
    try:
        return int(library.dataset(uri).count_rows())
    except (ValueError, OSError, LanceOpsError):
        return None
