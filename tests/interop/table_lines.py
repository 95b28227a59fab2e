"""The versions in a model test: of the main branch, branches and clones, and the handles opened on them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.interop.table_model import State, Terse

__all__ = ["Hand", "Line", "found_files"]

OWN_FOLDERS = ("data", "_deletions", "_indices", "_transactions")


@dataclass
class Line(Terse):
    """A branch (or main branch): `states` has each version's content, `retained` the versions that still exist."""

    uri: str
    branch: str | None
    states: dict[int, State]
    retained: set[int]
    begun_from: Line | None = None
    """The line from which a branch or clone was created."""
    pin: str | None = None
    """The tag on that line that keeps the files of a shallow clone."""
    ids: dict[tuple[int, int], int] = field(default_factory=dict)
    """The id of each row, by its creating version and its key."""
    scanned: set[int] = field(default_factory=set)
    """The versions whose rows were compared with the model."""
    read_in_every_way: set[int] = field(default_factory=set)
    """The versions that filters, indices, positions and row ids were tried on."""

    def __repr__(self) -> str:
        return "/".join(filter(None, (Path(self.uri).stem, self.branch)))

    @property
    def version(self) -> int:
        return max(self.states)

    @property
    def begun_at(self) -> int:
        return min(self.states)

    @property
    def newest(self) -> State:
        return self.states[self.version]

    @property
    def has_files_elsewhere(self) -> bool:
        return self.branch is not None or self.pin is not None

    @property
    def folder(self) -> Path:
        return Path(self.uri, "tree", self.branch) if self.branch else Path(self.uri)

    def open(self, library: Any, version: int | None = None) -> Any:
        if self.branch is None:
            return library.dataset(self.uri, version=version)
        return library.dataset(self.uri).checkout_version((self.branch, version))

    def begin(self, version: int, uri: str, branch: str | None, pin: str | None = None) -> Line:
        """Return a new branch or clone of a version; its rows keep their ids."""
        ids = {row: row_id for row, row_id in self.ids.items() if row[0] <= version}
        return Line(uri, branch, {version: self.states[version]}, {version}, self, pin, ids)

    def files(self) -> set[str]:
        return {
            os.path.relpath(os.path.join(folder, name), self.folder)
            for own in OWN_FOLDERS
            for folder, _, names in os.walk(self.folder / own)
            for name in names
        }


@dataclass
class Hand(Terse):
    """A handle opened at a version of a line until it makes a change."""

    library: Any
    line: Line
    handle: Any

    def __repr__(self) -> str:
        return f"{self.library.__name__} at {self.line} {self.version}"

    @property
    def version(self) -> int:
        return int(self.handle.version)

    @property
    def planned(self) -> State:
        return self.line.states[self.version]

    @property
    def is_stale(self) -> bool:
        return self.version != self.line.version


def found_files(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the size and the time of each file that versions consist of, in all tables beneath a folder."""
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            if {*OWN_FOLDERS, "_versions"} & {*Path(path).parts} and not name.endswith(".json"):
                status = os.stat(path)
                found[path] = (status.st_size, status.st_mtime_ns)
    return found
