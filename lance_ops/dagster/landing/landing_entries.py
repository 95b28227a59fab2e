"""What a listing of a landing folder yields: files, and what is set aside."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime

from lance_ops.core.records import dataclass
from lance_ops.maintenance.ingest import ListedFile, content_token, printable

__all__ = ["LandedFile", "SetAside"]


@dataclass(frozen=True)
class LandedFile:
    """A listed file: its path beneath the landing folder, and what identifies its content."""

    path: str
    uri: str
    size_bytes: int
    modified: datetime
    etag: str | None = None
    listed: ListedFile | None = field(default=None, compare=False, repr=False)
    """The identity of a local file, with which its reader compares the file that it opens."""
    moved: datetime | None = field(default=None, compare=False, repr=False)
    """When a local file came to its path, at the latest: copies and moves keep the time of modification."""

    @property
    def token(self) -> str:
        """An identity of the content: the store's ETag, or else size and modification time."""
        return content_token(self.size_bytes, self.modified, self.etag)

    @property
    def arrived(self) -> datetime:
        """When the file came into the folder, or changed there."""
        return self.modified if self.moved is None else max(self.modified, self.moved)


@dataclass(frozen=True)
class SetAside:
    """A file or folder that is not read. `path` is as listed, and may not be UTF-8; `name` can be shown anywhere."""

    path: str
    reason: str
    is_folder: bool = False
    is_repeated: bool = False
    """Whether the landing folder lists the files of this folder under another path."""
    target: str | None = None
    """The path beneath the landing folder to which a link leads; None for what is no such link."""

    @property
    def name(self) -> str:
        """The path on one line, with escapes for what is not printable or not UTF-8."""
        return printable(self.path)

    @property
    def sentence(self) -> str:
        """The name and the reason, with the remedy."""
        return f"{self.name}: set aside: {self.reason}"
