"""List a landing folder on a local disk: regular files, and what is set aside with the reason.

The system's own calls are used, because fsspec follows links and cannot tell them from files. The listing itself may
race with somebody who moves folders; `ListedFile` lets the reader refuse what such a race put into it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import field

from lance_ops.core.records import dataclass
from lance_ops.dagster.landing.landing_entries import LandedFile, SetAside
from lance_ops.maintenance.ingest import ListedFile, why_not_literal
from lance_ops.store import moment_of

__all__ = ["list_local"]

_LINK = "a symbolic link; copy the file here, or set raw.links to follow"


def list_local(folder: str, *, follow_links: bool) -> Iterator[LandedFile | SetAside]:
    """Yield what is beneath a folder: files, and what is set aside, in no order. A missing folder counts as empty."""
    folder = os.path.abspath(folder)
    try:
        status = os.stat(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    pending = [_Folder("", frozenset({(status.st_dev, status.st_ino)}))]
    while pending:
        current = pending.pop()
        try:
            with os.scandir(os.path.join(folder, current.path)) as entries:
                listed = list(entries)
        except OSError as error:
            if current.path:
                yield SetAside(current.path, f"cannot be listed: {error.strerror}", is_folder=True)
                continue
            raise
        for entry in listed:
            found = _look_at(folder, status, current, entry, follow_links=follow_links)
            if isinstance(found, _Folder):
                pending.append(found)
            elif found is not None:
                yield found


@dataclass(frozen=True)
class _Folder:
    path: str
    above: frozenset[tuple[int, int]] = field(repr=False)
    """The folders on the way here, itself included, by device and inode: a link to one of them would never end."""


def _look_at(
    folder: str, folder_status: os.stat_result, parent: _Folder, entry: os.DirEntry[str], *, follow_links: bool
) -> LandedFile | SetAside | _Folder | None:
    path = f"{parent.path}/{entry.name}" if parent.path else entry.name
    is_link = entry.is_symlink()
    try:
        status = entry.stat(follow_symlinks=follow_links)
    except FileNotFoundError:
        # Somebody removed the file, or a link leads nowhere.
        return SetAside(path, "a symbolic link that leads nowhere; remove it") if is_link else None
    except OSError as error:
        return SetAside(path, f"cannot be read: {error.strerror}", is_folder=_leads_to_folder(entry))
    is_folder = stat.S_ISDIR(status.st_mode)
    reason = _LINK if is_link and not follow_links else why_not_literal(entry.name)
    if reason is None and not is_folder and not stat.S_ISREG(status.st_mode):
        reason = "neither a file nor a folder; remove it"
    if reason is not None:
        # A link that is not followed may lead to a folder, so the pattern for files says nothing about it.
        leads_to_folder = is_folder or _leads_to_folder(entry)
        return SetAside(path, reason, leads_to_folder, target=_target(folder, entry) if is_link else None)
    if is_folder:
        inode = (status.st_dev, status.st_ino)
        if inode in parent.above:
            return SetAside(path, "a link to a folder above it; remove it", is_folder=True, is_repeated=True)
        return _Folder(path, parent.above | {inode})
    modified = moment_of(status.st_mtime)
    if modified is None:
        return SetAside(path, "its modification time is no date; set it with touch")
    return LandedFile(
        path=path,
        uri=entry.path,
        size_bytes=status.st_size,
        modified=modified,
        listed=ListedFile.of(folder, folder_status, path, status, follow_links=follow_links),
        moved=moment_of(status.st_ctime),
    )


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _target(folder: str, entry: os.DirEntry[str]) -> str | None:
    """Return the path beneath a folder to which a link leads; empty for the folder itself, None for another place."""
    root, target = os.path.realpath(folder), os.path.realpath(entry.path)
    if os.path.commonpath((root, target)) != root:
        return None
    return target[len(root) :].strip("/")
