"""Check object paths: relative, separated by `/`, and unable to leave the store's root.

Paths come from manifests that other writers made, so every store checks every path.
"""

from __future__ import annotations

from collections.abc import Iterable

from lance_ops.core.errors import UnsafePath

__all__ = ["TEMPORARY_PREFIX", "check_directory", "check_path", "check_paths", "is_temporary"]

TEMPORARY_PREFIX = ".lance_ops_tmp."
"""The names of temporary objects begin with this. Readers of a dataset ignore such names."""


def is_temporary(path: str) -> bool:
    """Return whether a path names a temporary object."""
    return path.rpartition("/")[2].startswith(TEMPORARY_PREFIX)


def check_path(path: str) -> str:
    """Return `path` if it names an object beneath the root; raise `UnsafePath` otherwise.

    Refusing empty components refuses absolute paths, URLs (`scheme://`) and trailing slashes. A backslash is refused
    because other tools read it as a separator, a NUL because the operating system would cut the name there.
    """
    if not path:
        raise UnsafePath("an object's path is empty")
    if "\0" in path or "\\" in path:
        raise UnsafePath(f"{path!r}: no NUL and no backslash may stand in a path")
    if path[0] not in "/." and path[-1] != "/" and "//" not in path and "/." not in path:
        return path  # no component is empty or begins with a dot
    for part in path.split("/"):
        if part in ("", ".", ".."):
            raise UnsafePath(f"{path!r}: a path must be relative to the root, without '.', '..' or empty components")
    return path


def check_paths(paths: Iterable[str]) -> None:
    """Raise `UnsafePath` for the first path for which `check_path` does; for many safe paths it takes far less time."""
    checked = tuple(paths)
    try:
        check_path("/".join(checked))  # it has the components of all, and no others
    except UnsafePath:
        for path in checked:
            check_path(path)


def check_directory(prefix: str) -> str:
    """Return a directory without its trailing slash, `""` for the root; raise `UnsafePath` as `check_path` does."""
    trimmed = prefix.removesuffix("/")
    return check_path(trimmed) if trimmed or prefix else ""
