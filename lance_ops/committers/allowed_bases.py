"""Decide which base paths of a manifest are followed. A table is not trusted: its manifest may name any place.

A base path is followed where the dataset's root is: on this machine for a local root, else in the root's bucket. It is
followed elsewhere only beneath a prefix that the user allows. The storage option `allowed_bases` and the environment
variable `LANCE_OPS_ALLOWED_BASES` hold such prefixes, separated by commas. A remote table never makes this process read
a local path, whatever is allowed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from lance_ops.core.errors import UnsafePath
from lance_ops.store import is_local, is_same_bucket, path_beneath

__all__ = ["ALLOWED_BASES_OPTION", "check_base_is_allowed", "with_allowed_bases", "with_prefixes"]

ALLOWED_BASES_OPTION = "allowed_bases"
_ENVIRONMENT = "LANCE_OPS_ALLOWED_BASES"


def check_base_is_allowed(root: str, base: str, storage_options: Mapping[str, str] | None) -> None:
    """Raise `UnsafePath` unless a manifest in `root` may make this process read and write files beneath `base`.

    It may on the same machine, in the same bucket, and beneath a prefix that the user allows.
    """
    if is_local(root) and is_local(base):
        return
    if is_local(base):
        raise UnsafePath(f"{root}: its base path {base!r} is a local path, which a remote table may not name")
    if is_same_bucket(root, base) or any(_is_beneath(prefix, base) for prefix in _prefixes(storage_options)):
        return
    raise UnsafePath(
        f"{root}: its base path {base!r} is in another store or bucket. If you trust the table, open it with "
        f'storage_options={{"{ALLOWED_BASES_OPTION}": "{base}"}} or set {_ENVIRONMENT}'
    )


def with_allowed_bases(
    root: str, storage_options: Mapping[str, str] | None, bases: Iterable[str]
) -> Mapping[str, str] | None:
    """Return the options of a handle on `root` that follows these bases too, because the caller has named them."""
    remote = [base for base in bases if not is_local(base) and not is_same_bucket(root, base)]
    return with_prefixes(storage_options or {}, remote) if remote else storage_options


def with_prefixes(storage_options: Mapping[str, str], prefixes: Iterable[str]) -> dict[str, str]:
    """Return the options with these prefixes added to `allowed_bases`."""
    allowed = dict.fromkeys((*_split(storage_options.get(ALLOWED_BASES_OPTION, "")), *prefixes))
    return {**storage_options, ALLOWED_BASES_OPTION: ",".join(allowed)} if allowed else dict(storage_options)


def _is_beneath(prefix: str, base: str) -> bool:
    return is_same_bucket(prefix, base) and path_beneath(prefix, base) is not None


def _prefixes(storage_options: Mapping[str, str] | None) -> list[str]:
    """Return the prefixes that the options and the environment allow. The environment is read at each call."""
    return [
        *_split((storage_options or {}).get(ALLOWED_BASES_OPTION, "")),
        *_split(os.environ.get(_ENVIRONMENT, "")),
    ]


def _split(prefixes: str) -> list[str]:
    return [prefix for each in prefixes.split(",") if (prefix := each.strip())]
